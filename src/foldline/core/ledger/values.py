"""Ids, URLs and numbers used in tool arguments, with the words that say what they were for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.ledger import names
from foldline.core.ledger.calls import Use, uses
from foldline.core.ledger.facts import ValueFact
from foldline.core.ledger.sentences import clip
from foldline.core.ledger.survey import argument_texts
from foldline.core.log.entries import Said

WORDS = 120
CITED = 8
MOST = 200  # values of one range, the newest
_KINDS = ("id", "url", "number")
_REASONS = ("description", "explanation", "reason", "purpose")
_SETTING = re.compile(
    r"(?:--?([A-Za-z][\w-]{0,40})[ =]|\b([A-Za-z][\w.-]{1,40}?)\s{0,2}[=:]\s{0,2})[\"']?(\w[\w./:#-]{0,200})"
)
WORKING_DIRECTORY = "working directory"


def _named(text: str) -> dict[str, str]:
    """Map the values that a text sets to what they are the value of: `port=8080`, `--port 8080`, `PORT: 8080`."""
    found: dict[str, str] = {}
    for flag, word, value in _SETTING.findall(text[:2_000]):
        if any(letter.isdigit() for letter in value):
            found.setdefault(value, (flag or word).lower())
    return found


def _of(use: Use) -> Iterator[ValueFact]:
    """Yield the values that one call addresses."""
    arguments = use.call.arguments
    given = arguments if isinstance(arguments, dict) else {"input": arguments}
    reason = next((value for key in _REASONS if isinstance(value := given.get(key), str)), "") or use.why
    for key, value in given.items():
        for body, text in argument_texts({key: value}):
            if body or key in _REASONS:
                continue
            settings = _named(text)
            for name in names.find(text):
                if name.kind in _KINDS:
                    what = settings.get(name.text, "")
                    whole = name.text == text and name.kind != "url"
                    what = what or (str(key).lower() if whole else "")
                    yield ValueFact(name.text, name.kind, clip(reason, WORDS), what, 1, (use.entry,))


def from_uses(calls: Sequence[Use], base: str = "") -> tuple[ValueFact, ...]:
    """Take the values from calls; `base` is the working directory, kept as a value of that name."""
    place = (ValueFact(base, "name", "", WORKING_DIRECTORY),) if base else ()
    return merge(place, tuple(fact for use in calls for fact in _of(use)))


def collect(entries: Sequence[Said], base: str = "") -> tuple[ValueFact, ...]:
    """Take the values from the calls in the entries."""
    return from_uses(uses(entries), base)


def merge(old: Sequence[ValueFact], new: Sequence[ValueFact]) -> tuple[ValueFact, ...]:
    """Merge the values of two ranges: a newer value of a name replaces the older, repeats are counted."""
    found: dict[tuple[str, str], ValueFact] = {}
    current: dict[str, str] = {}
    for fact in (*old, *new):
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
    settled = [fact for fact in facts if fact.name == WORKING_DIRECTORY]
    return (*settled, *[fact for fact in facts if fact.name != WORKING_DIRECTORY][-MOST:])
