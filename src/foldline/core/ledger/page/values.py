"""Ids, URLs and numbers with what they were for; the directory that all paths are relative to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foldline.core.ledger.facts.kinds import ValueFact
from foldline.core.ledger.facts.values import BASE
from foldline.core.ledger.page.items import LABELS, MARK, unticked
from foldline.core.ledger.page.sheet import CONTEXT, Sheet
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip

SHARE = 0.04  # of the budget
LONGEST_NAME = 60
LONGEST_REASON = 90

_LINE = re.compile(rf"- ([^`=]{{1,{LONGEST_NAME}}}) = `([^`]*)`(?: \((.*)\))?$")
_KINDS = ("id", "url", "number", "name")


def line_of(fact: ValueFact) -> str:
    """Write one value with its name, or its kind where it has none."""
    words = f" ({clip(fact.words, LONGEST_REASON)})" if fact.words else ""
    return f"{MARK}{_name(fact)} = `{unticked(fact.value)}`{words}"


def _name(fact: ValueFact) -> str:
    name = re.sub(r":\s+", ":", unticked(fact.name).replace("=", " "))
    return name[:LONGEST_NAME].strip(" :") or fact.kind


def base_of(facts: Sequence[ValueFact]) -> str:
    """Return the directory that paths are spelled from, or ""."""
    return next((fact.value for fact in facts if fact.name == BASE), "")


def write(sheet: Sheet, facts: Sequence[ValueFact], most: int) -> None:
    """Write the base directory and the newest values, as many as fit."""
    lines = [line_of(fact) for fact in reversed(facts)]
    sheet.add(CONTEXT, sorted(lines, key=lambda line: not line.startswith(f"{MARK}{BASE} =")), most)


def read(line: str) -> ValueFact | None:
    """Read a line back; None where it is no value's."""
    match = None if line.removeprefix(MARK).startswith(LABELS) else _LINE.match(line)
    if match is None:
        return None
    name, value, words = match.groups()
    kinds = [found.kind for found in names.find(value) if found.kind in _KINDS]
    kind = kinds[0] if kinds else "name"
    is_kind = name == kind or (name in _KINDS and not kinds)
    return ValueFact(value, kind, words or "", "" if is_kind else name)
