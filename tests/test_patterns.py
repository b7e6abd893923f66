"""Every pattern takes time in step with its text, whatever the text is.

The hostile texts are made from the pattern itself: each place of it that may repeat is filled to the end, and
what leads up to a place is said over and over without what should follow. A long run: it measures time.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from pathlib import Path
from re import _parser as syntax
from typing import Any

import msgspec
import pytest

import foldline

LONG = 8_000  # characters; a pattern that takes quadratic time needs 625 times as long for 200,000
QUICK = 0.002  # seconds for LONG: nothing to look at
GROWTH = 9  # times as long as a quarter of LONG takes: a linear pattern 4, a quadratic one 16
ANY_TEXT = ("a", "A", "0", " ", "\n", " \n", "-", "/", "a/", "@/", "a.", "aB", "_", "a-", "@", "<", "[", "(", "{", "`", '"', "'", "\\", "a=", "a b ", "$a")  # fmt: skip
MATCHED = {"_FORM", "_NOTICE", "_FORMS", "_BY_HEAD", "_BY_WHOLE", "_COMMANDS", "_QUOTED", "CALL", "RESULT"}
"""Patterns that are only tried at one place at a time, by a name that is not their own."""
BOUNDED = {
    "core.ledger.facts.commands:_OUTPUT_CUT": 400,
    "core.ledger.text.origin:_OUTPUT": 400,
    "core.ledger.text.sentences:_NUMBERING": 40,
    "core.ledger.text.wording:": 320,
    "core.ledger.facts.outcomes:_ERROR": 320,
    "core.lab.entities:_PATH": 400,
    "core.secrets.places:_PLACES": 4_400,
}
"""Patterns that see a few characters of any text, and how many."""
APART = ("foldline.adapters", "foldline.pytest_plugin")
"""What needs a framework, or is loaded by pytest."""


def patterns_in(value: Any, name: str, depth: int = 5) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns that a value of a module holds, by name."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield name, value
    elif depth and isinstance(value, dict):
        for key, one in value.items():
            yield from patterns_in(one, f"{name}[{key}]", depth - 1)
    elif depth and isinstance(value, tuple | list):
        for at, one in enumerate(value):
            yield from patterns_in(one, f"{name}[{at}]", depth - 1)
    elif depth and isinstance(value, msgspec.Struct):
        yield from patterns_in(msgspec.structs.astuple(value), name, depth - 1)


def all_patterns() -> dict[str, tuple[re.Pattern[str], bool]]:
    """Return every pattern that stands in a module, and whether texts are searched for it."""
    found: dict[str, tuple[re.Pattern[str], bool]] = {}
    for info in pkgutil.walk_packages(foldline.__path__, "foldline."):
        if info.name.startswith(APART) or info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        source = Path(module.__file__ or "").read_text(encoding="utf8")
        for name in re.findall(r"^(\w+)\b[^=\n]*=", source, re.MULTILINE):
            searched = re.search(rf"\b{name}\.(?:search|finditer|findall|sub|split)\b", source)
            matched = re.search(rf"\b{name}\.(?:match|fullmatch)\b", source) or name in MATCHED
            for path, pattern in patterns_in(getattr(module, name, None), name):
                key = f"{info.name.removeprefix('foldline.')}:{path}"
                found[key] = (pattern, bool(searched or not matched))
    return found


def hostile(pattern: re.Pattern[str], size: int) -> list[str]:
    """Return texts that lead a pattern on."""
    made = [("", unit) for unit in ANY_TEXT] + list(pumps(syntax.parse(pattern.pattern, pattern.flags)))
    return list({f"{before}{unit * (size // len(unit))}"[:size]: None for before, unit in made if unit})


def pumps(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what stands before a place of a pattern that repeats, and what is repeated there."""
    for op, given in tree:
        match str(op):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                if given[1] > 100:
                    yield before, witness(given[2])
                yield from pumps(given[2], before)
            case "SUBPATTERN":
                yield from pumps(given[3], before)
            case "ATOMIC_GROUP":
                yield from pumps(given, before)
            case "BRANCH":
                for branch in given[1]:
                    yield from pumps(branch, before)
            case _:
                pass
        before += witness([(op, given)])
        yield "", before
        yield "", f"{before}\n"


def witness(tree: Any) -> str:
    """Return a short text that a pattern, or most of it, matches."""
    said = ""
    for op, given in tree:
        match str(op):
            case "LITERAL":
                said += chr(given)
            case "ANY" | "NOT_LITERAL":
                said += "a"
            case "IN":
                said += next((letter for letter in "a0 -_/.A\n~" if _holds(given, letter)), "")
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                said += witness(given[2]) * max(given[0], min(int(given[1]), 1))
            case "SUBPATTERN":
                said += witness(given[3])
            case "ATOMIC_GROUP":
                said += witness(given)
            case "BRANCH":
                said += witness(given[1][0])
            case _:
                pass
    return said


SETS = {
    "DIGIT": r"\d",
    "NOT_DIGIT": r"\D",
    "SPACE": r"\s",
    "NOT_SPACE": r"\S",
    "WORD": r"\w",
    "NOT_WORD": r"\W",
}


def _holds(given: Any, letter: str) -> bool:
    """Whether a set of characters holds one."""
    kinds = [str(op) for op, _ in given]
    found = any(
        (kind == "LITERAL" and one == ord(letter))
        or (kind == "RANGE" and one[0] <= ord(letter) <= one[1])
        or (kind == "CATEGORY" and re.match(SETS[str(one).removeprefix("CATEGORY_")], letter))
        for kind, (_, one) in zip(kinds, given, strict=True)
    )
    return found != ("NEGATE" in kinds)


def seconds(pattern: re.Pattern[str], text: str, *, searched: bool) -> float:
    start = time.thread_time()
    _ = pattern.sub("", text) if searched else pattern.match(text)
    return time.thread_time() - start


PATTERNS = all_patterns()


@pytest.mark.soak
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_step_with_the_text(name: str) -> None:
    pattern, searched = PATTERNS[name]
    bound = next((most for known, most in BOUNDED.items() if name.startswith(known)), None)
    for text in hostile(pattern, bound or LONG):
        took = seconds(pattern, text, searched=searched)
        if bound:
            assert took < 25 * QUICK, text[:80]
        elif took > QUICK:
            whole, quarter = (
                min(seconds(pattern, one, searched=searched) for _ in range(3))
                for one in (text, text[: LONG // 4])
            )
            assert whole < GROWTH * max(quarter, QUICK / 4), text[:80]
