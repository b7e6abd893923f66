"""How likely each name of the past is to be needed again: its worth, between 0 and 1.

`survey.py` notes where every name was met: in the arguments that address something (a path, a pattern, a
command), in bodies that were written, in the user's words, the assistant's, and in results. `worth` turns
that into a probability by a logistic formula. Its weights are one logistic regression over recorded sessions
of five projects; `tools/score_retention.py` makes such weights, also without the project that is scored.
`docs/evidence.md` has the numbers of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

from foldline.core.ledger.worth.survey import NameSurvey, Seen, is_file, stem

FEATURES = (
    "bias", "file", "directory", "identifier", "number", "id", "url", "flag",
    "addressed", "addressed_near", "addressed_far", "messages", "near", "middle", "user", "prompt", "said",
    "body", "results", "only_results", "defined", "directory_use", "unopened_user", "test", "modified", "crowd",
    "once", "length", "file_unopened", "identifier_addressed", "user_file", "asked_words", "recent_words",
    "home_near", "home_modified", "home_used", "pair", "sibling_near", "count", "again", "told",
)  # fmt: skip
WEIGHTS: tuple[float, ...] = (
    -1.90, 0.17, -0.14, -0.49, -0.22, -0.45, -0.36, -0.42, 1.10, 0.21, 0.37, -0.33, 0.83, -0.55, 0.05,
    0.34, -0.20, -0.29, -0.57, -0.82, -0.20, -0.07, -0.20, 0.43, -0.17, -0.38, -0.72, 0.44, 0.47, -0.09,
    0.52, 0.42, 0.16, 0.08, 0.17, -0.23, -0.59, -0.12, 0.36, -0.16, 0.30,
)  # fmt: skip


def _shares(seen: Seen, survey: NameSurvey) -> tuple[float, float, float]:
    """Return the rarity of a name's words: of all, of those that were asked for, of those just worked on."""
    every = asked = recent = 0.0
    for word in seen.pieces:
        rarity = survey.rarity.get(word, 1.0)
        every += rarity
        asked += rarity if word in survey.asked else 0.0
        recent += rarity if word in survey.recent else 0.0
    return every or 1.0, asked, recent


def features(seen: Seen, survey: NameSurvey) -> tuple[float, ...]:
    """Describe a name in numbers, in the order of `FEATURES`."""
    size = max(1, survey.size)
    log = math.log1p
    file = seen.kind == "path" and is_file(seen.key)
    age = (size - seen.last) / size
    addressed_age = (size - seen.last_addressed) / size if seen.last_addressed >= 0 else 9.0
    directory, directory_at = (
        survey.directories.get(seen.text.rpartition("/")[0][-60:], (0, -9 * size))
        if seen.kind == "path"
        else (0, -9 * size)
    )
    home = survey.names.get(seen.home) if seen.home else None
    home_age = (size - home.last_addressed) / size if home and home.last_addressed >= 0 else 9.0
    rarity, asked, recent = _shares(seen, survey)
    pair = file and seen.addressed == 0 and survey.stems.get(stem(seen.key), 0) > 0
    return (
        1.0,
        file,
        seen.kind == "path" and not file,
        seen.kind == "identifier",
        seen.kind == "number",
        seen.kind == "id",
        seen.kind == "url",
        seen.kind == "flag",
        log(seen.addressed),
        math.exp(-addressed_age / 0.1),
        math.exp(-addressed_age / 0.5),
        log(seen.messages),
        math.exp(-age / 0.1),
        math.exp(-age / 0.5),
        log(seen.user),
        seen.prompt,
        log(seen.said),
        log(seen.body),
        log(seen.results),
        seen.results > 0 and seen.results == seen.messages,
        seen.defined > 0,
        log(directory),
        seen.user > 0 and seen.addressed == 0,
        seen.kind == "path" and "test" in seen.key,
        log(seen.modified),
        log(seen.crowd),
        seen.messages == 1,
        min(len(seen.key), 40) / 40,
        file and seen.addressed == 0,
        seen.kind == "identifier" and seen.addressed > 0,
        file and seen.user > 0,
        asked / rarity,
        recent / rarity,
        math.exp(-home_age / 0.15),
        log(home.modified) if home else 0.0,
        log(home.addressed) if home else 0.0,
        pair,
        math.exp(-(size - directory_at) / size / 0.15),
        log(seen.count),
        seen.addressed > 1,
        seen.told > 0,
    )


def worth(seen: Seen, survey: NameSurvey, weights: Sequence[float] = WEIGHTS) -> float:
    """Estimate how likely a name is to be used again, from 0 to 1: 1 / (1 + exp(-weights . features))."""
    if len(weights) != len(FEATURES):
        raise ValueError(f"{len(weights)} weights for {len(FEATURES)} features")
    total = sum(map(mul, weights, features(seen, survey)))
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))
