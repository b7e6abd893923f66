"""How likely each name of the past is to be needed again: its worth, between 0 and 1.

`survey.py` notes where every name was met: in the arguments that address something (a path, a pattern, a
command), in bodies that were written, in the user's words, the assistant's, and in results. `worth` turns
that into a probability by a logistic formula. Its weights are one logistic regression over recorded sessions
of five projects; `tools/score_retention.py` makes such weights, also without the project that is scored.
`docs/evidence.md` has the numbers of both.
"""

from __future__ import annotations

import math
from operator import mul

import msgspec

from foldline.core.ledger.worth.survey import NameSurvey, Seen, is_file, stem

NEAR, FAR = 0.1, 0.5  # shares of the range over which what was done a while ago fades to a third
NEARBY = 0.15  # the same for what was done to a name's neighbours
NEVER = 9.0  # the age, in ranges, of what never happened
LONG = 40  # characters of a name beyond which longer says no more


class Features(msgspec.Struct, frozen=True, gc=False):
    """One number for each thing that is known of a name; or the weight that each of these things has.

    Counts stand as log(1 + count), ages as exp(-age): 1 is now, 0 long ago.
    """

    bias: float  # 1 for every name
    file: float  # it is a path with a suffix
    directory: float  # it is a path without one
    identifier: float  # it is a word of code
    number: float  # it is a number
    id: float  # it is an id
    url: float  # it is a URL
    flag: float  # it is a command line's flag
    addressed: float  # how often calls addressed it
    addressed_near: float  # how lately a call addressed it
    addressed_far: float  # the same, fading slower
    messages: float  # how many messages hold it
    near: float  # how lately it was met
    middle: float  # the same, fading slower
    user: float  # how many messages of the user hold it
    prompt: float  # the newest request that names anything names it
    said: float  # how many messages of the assistant say it
    body: float  # how many bodies that were written hold it
    results: float  # how many results hold it
    only_results: float  # results alone hold it
    defined: float  # a line that defines it was shown
    directory_use: float  # how often calls addressed its directory
    unopened_user: float  # the user named it and no call addressed it
    test: float  # it is a path of a test
    modified: float  # how often calls changed it
    crowd: float  # how many names stood beside it where these were fewest
    once: float  # one message alone holds it
    length: float  # how long it is
    file_unopened: float  # it is a file that no call addressed
    identifier_addressed: float  # it is a word of code that a call addressed
    user_file: float  # it is a file that the user named
    asked_words: float  # share of its words that the newest request has
    recent_words: float  # share of its words that were said lately
    home_near: float  # how lately a call addressed the file that it was met in
    home_modified: float  # how often calls changed that file
    home_used: float  # how often calls addressed that file
    pair: float  # it is a file that no call addressed, beside one (its test, its source) that a call did
    sibling_near: float  # how lately a call addressed its directory
    count: float  # how often it was met
    again: float  # calls addressed it more than once
    told: float  # a summary of an earlier part holds it


WEIGHTS = Features(
    bias=-1.90,
    file=0.17,
    directory=-0.14,
    identifier=-0.49,
    number=-0.22,
    id=-0.45,
    url=-0.36,
    flag=-0.42,
    addressed=1.10,
    addressed_near=0.21,
    addressed_far=0.37,
    messages=-0.33,
    near=0.83,
    middle=-0.55,
    user=0.05,
    prompt=0.34,
    said=-0.20,
    body=-0.29,
    results=-0.57,
    only_results=-0.82,
    defined=-0.20,
    directory_use=-0.07,
    unopened_user=-0.20,
    test=0.43,
    modified=-0.17,
    crowd=-0.38,
    once=-0.72,
    length=0.44,
    file_unopened=0.47,
    identifier_addressed=-0.09,
    user_file=0.52,
    asked_words=0.42,
    recent_words=0.16,
    home_near=0.08,
    home_modified=0.17,
    home_used=-0.23,
    pair=-0.59,
    sibling_near=-0.12,
    count=0.36,
    again=-0.16,
    told=0.30,
)


def features(seen: Seen, survey: NameSurvey) -> Features:
    """Describe a name in numbers."""
    size = max(1, survey.size)
    log = math.log1p
    kind = seen.kind
    file = kind == "path" and is_file(seen.key)
    age = (size - seen.last) / size
    addressed_age = _age(seen.last_addressed, size)
    uses, used_at = _directory_use(seen, survey)
    home = survey.names.get(seen.home) if seen.home else None
    home_age = _age(home.last_addressed, size) if home else NEVER
    every, asked, recent = _rarities(seen, survey)
    return Features(
        bias=1.0,
        file=file,
        directory=kind == "path" and not file,
        identifier=kind == "identifier",
        number=kind == "number",
        id=kind == "id",
        url=kind == "url",
        flag=kind == "flag",
        addressed=log(seen.addressed),
        addressed_near=math.exp(-addressed_age / NEAR),
        addressed_far=math.exp(-addressed_age / FAR),
        messages=log(seen.messages),
        near=math.exp(-age / NEAR),
        middle=math.exp(-age / FAR),
        user=log(seen.user),
        prompt=seen.prompt,
        said=log(seen.said),
        body=log(seen.body),
        results=log(seen.results),
        only_results=0 < seen.results == seen.messages,
        defined=seen.defined > 0,
        directory_use=log(uses),
        unopened_user=seen.user > 0 and seen.addressed == 0,
        test=kind == "path" and "test" in seen.key,
        modified=log(seen.modified),
        crowd=log(seen.crowd),
        once=seen.messages == 1,
        length=min(len(seen.key), LONG) / LONG,
        file_unopened=file and seen.addressed == 0,
        identifier_addressed=kind == "identifier" and seen.addressed > 0,
        user_file=file and seen.user > 0,
        asked_words=asked / every,
        recent_words=recent / every,
        home_near=math.exp(-home_age / NEARBY),
        home_modified=log(home.modified) if home else 0.0,
        home_used=log(home.addressed) if home else 0.0,
        pair=file and seen.addressed == 0 and survey.stems.get(stem(seen.key), 0) > 0,
        sibling_near=math.exp(-(size - used_at) / size / NEARBY),
        count=log(seen.count),
        again=seen.addressed > 1,
        told=seen.told > 0,
    )


def _age(at: int, size: int) -> float:
    """How long ago a place in the range is, in ranges; negative places never were."""
    return (size - at) / size if at >= 0 else NEVER


def _directory_use(seen: Seen, survey: NameSurvey) -> tuple[int, float]:
    """Return how often calls addressed the directory of a path, and where last."""
    never = (0, -NEVER * max(1, survey.size))
    if seen.kind != "path":
        return never
    return survey.directories.get(seen.text.rpartition("/")[0][-60:], never)


def _rarities(seen: Seen, survey: NameSurvey) -> tuple[float, float, float]:
    """Return the rarity of a name's words: of all, of those that were asked for, of those just worked on."""
    every = asked = recent = 0.0
    for word in seen.pieces:
        rarity = survey.rarity.get(word, 1.0)
        every += rarity
        asked += rarity if word in survey.asked else 0.0
        recent += rarity if word in survey.recent else 0.0
    return every or 1.0, asked, recent


def worth(seen: Seen, survey: NameSurvey) -> float:
    """Estimate how likely a name is to be used again, from 0 to 1: 1 / (1 + exp(-WEIGHTS . features))."""
    total = sum(map(mul, msgspec.structs.astuple(WEIGHTS), msgspec.structs.astuple(features(seen, survey))))
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))
