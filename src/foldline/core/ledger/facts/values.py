"""Ids, URLs and numbers used in tool arguments, with the words that say what they were for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from foldline.core.ledger.facts.calls import Use, argument_texts
from foldline.core.ledger.facts.kinds import FileFact, ValueFact
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip, word_set

CARRIED = 80  # values from fold to fold: the newest
WORDS = 120
CITED = 8
MOST = 200  # values of one range, the newest
_KINDS = ("id", "url", "number")
_REASONS = ("description", "explanation", "reason", "purpose")
_SETTING = re.compile(
    r"(?:--?([A-Za-z][\w-]{0,40})[ =]|\b([A-Za-z][\w.-]{1,40}?)\s{0,2}[=:]\s{0,2})[\"']?(\w[\w./:#-]{0,200})"
)
BASE = "base directory"  # what the paths of a checkpoint are relative to
BELOW = 0.5  # share of the files used that lie below a directory from which it is the base
_SEARCHES = ("pattern", "regex", "regexp", "glob", "query", "search")  # arguments whose value is looked for

_DUMMY = re.compile(r"1234\d*\Z|(\d)\1{3,}\Z")
"""A number that somebody made up."""
_COUNTING = 5  # digits in a row, up or down, from which a number is made up too
_PLACES = word_set(
    "n offset limit start end line lines head tail count skip page start_line end_line line_start line_end "
    "head_limit "
    "max_lines max_output_tokens timeout_ms yield_time_ms"
)
"""Arguments whose numbers say where a call looked and how far, not what was found."""


_GIT = re.compile(r"(?:^|[\s;&|])git ")


def _named(text: str) -> dict[str, str]:
    """Map the values that a text sets to their names: `port=8080`, `--port 8080`, `PORT: 8080`."""
    found: dict[str, str] = {}
    git = bool(_GIT.search(text))  # its flags stand before what they are not about: `--stat 18879723`
    for flag, word, value in _SETTING.findall(text[:2_000]):
        if flag and git:
            continue
        if any(letter.isdigit() for letter in value):
            found.setdefault(value, (flag or word).lower())
    return found


def base_of(root: str, files: Sequence[FileFact]) -> str:
    """Return the directory `root` (with its last slash) if most of the files used lie below it, else ""."""
    below = sum(fact.path.startswith(root) for fact in files)
    return root if root and below >= BELOW * len(files) else ""


def _of(use: Use) -> Iterator[ValueFact]:
    """Yield the values that one call addresses."""
    arguments = use.call.arguments
    given = arguments if isinstance(arguments, dict) else {"input": arguments}
    reason = next((value for key in _REASONS if isinstance(value := given.get(key), str)), "") or use.why
    for key, value in given.items():
        if str(key).lower() in _SEARCHES:
            continue
        for body, text in argument_texts({key: value}):
            if body or key in _REASONS:
                continue
            settings = _named(text)
            for name in names.find(text):
                if name.kind in _KINDS:
                    what = settings.get(name.text, "")
                    what = "" if what == "n" else what  # `sed -n 960,1165p`
                    whole = name.text == text and name.kind != "url"
                    if whole and not what and name.kind == "number" and str(key).lower() in _PLACES:
                        continue
                    what = what or (str(key).lower() if whole else "")
                    yield ValueFact(name.text, name.kind, clip(reason, WORDS), what, 1, (use.entry,))


def collect(
    calls: Sequence[Use], base: str = "", replaced: AbstractSet[str] = frozenset()
) -> tuple[ValueFact, ...]:
    """Take the values from calls, but for those that edits replaced; `base` is the directory of the paths."""
    place = (ValueFact(base, "name", "", BASE),) if base else ()
    found = (fact for use in calls for fact in _of(use) if _says(fact) and fact.value not in replaced)
    return merge(place, tuple(found))


def _says(fact: ValueFact) -> bool:
    """Whether a value says what it is: a bare number does not, unless the words beside it name it."""
    if fact.kind == "number" and _is_dummy(fact.value):
        return False
    return bool(fact.name) or fact.kind != "number" or fact.value in fact.words


def _is_dummy(number: str) -> bool:
    row = "0123456789"
    return bool(_DUMMY.match(number)) or (len(number) >= _COUNTING and (number in row or number in row[::-1]))


def _base(old: Sequence[ValueFact], new: Sequence[ValueFact]) -> ValueFact | None:
    """Return the base directory of both ranges: the one that holds the other, or what they share."""
    places = [fact for fact in (*old, *new) if fact.name == BASE]
    if not places:
        return None
    parts = [fact.value.split("/")[:-1] for fact in places]
    shared = 0
    while all(len(part) > shared and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    return msgspec.structs.replace(places[0], value="/".join(parts[0][:shared]) + "/") if shared > 1 else None


def merge(old: Sequence[ValueFact], new: Sequence[ValueFact]) -> tuple[ValueFact, ...]:
    """Merge the values of two ranges: a newer value of a name replaces the older, repeats are counted."""
    found: dict[tuple[str, str], ValueFact] = {}
    current: dict[str, str] = {}
    base = _base(old, new)
    for fact in (base, *old, *new):
        if fact is None or (fact.name == BASE and fact is not base):
            continue
        if fact.name:
            stale = current.get(fact.name, fact.value)
            if stale != fact.value:
                found.pop((stale, fact.name), None)
            current[fact.name] = fact.value
        known = found.pop((fact.value, fact.name), None)
        if known:
            fact = msgspec.structs.replace(  # noqa: PLW2901  the fact and what was known of it
                fact,
                words=fact.words or known.words,
                uses=known.uses + fact.uses,
                entries=tuple(dict.fromkeys((*known.entries, *fact.entries)))[-CITED:],
            )
        found[fact.value, fact.name] = fact
    facts = list(found.values())
    settled = [fact for fact in facts if fact.name == BASE]
    return (*settled, *[fact for fact in facts if fact.name != BASE][-MOST:])


def bound(facts: Sequence[ValueFact]) -> tuple[ValueFact, ...]:
    """Return the values that are carried on to the next fold."""
    return tuple(facts[-CARRIED:])
