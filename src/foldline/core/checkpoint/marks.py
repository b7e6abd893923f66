"""Marks on the lines of a summary: names that stand nowhere, values that were replaced, claims, rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from foldline.core.checkpoint.essentials import Essential, current_values, spaced
from foldline.core.checkpoint.evidence import Evidence
from foldline.core.checkpoint.last_test_run import last_failed, mark_claim
from foldline.core.checkpoint.origin_check import OriginCheck
from foldline.core.checkpoint.sections import heading_of
from foldline.core.ledger.facts.kinds import Ledger, ValueFact
from foldline.core.ledger.text import names

UNVERIFIED = "(unverified)"
LONG_NUMBER = 5  # digits from which a number has to stand somewhere
SHORT = 12  # characters below which a text may stand in a line by chance


def marked(
    body: str, ledger: Ledger, facts: Sequence[Essential], evidence: Evidence, origins: OriginCheck
) -> tuple[str, tuple[str, ...]]:
    """Mark the lines of a summary that do not quote the ledger; return also the names that stand nowhere."""
    quoted = {spaced(fact.line) for fact in facts}
    quoted |= {spaced(row) for fact in facts if fact.kind != "value" for row in fact.text.split("\n")}
    superseded = _Superseded(ledger.values)
    failed = last_failed(ledger.commands)
    unverified: dict[str, None] = {}
    rows: list[str] = []
    heading = ""
    for row in body.split("\n"):
        heading = heading_of(row) or heading
        if _quotes(spaced(row), quoted):
            rows.append(row)
            continue
        marked = superseded.mark(row)
        marked = _mark_names(marked, evidence, unverified)
        rows.append(origins.mark(mark_claim(marked, failed), heading))
    return "\n".join(rows), tuple(unverified)


def _quotes(row: str, quoted: Iterable[str]) -> bool:
    """Whether a line holds a text of the ledger word for word; a short text only counts as the whole line."""
    return any(
        words in row and (len(words) >= SHORT or row.strip("-* ") == words) for words in quoted if words
    )


def _mark_names(row: str, evidence: Evidence, unverified: dict[str, None]) -> str:
    """Mark the names of a line that stand nowhere."""
    for name in dict.fromkeys(names.in_line(row)):
        if _checked(name) and not evidence.stands(name):
            unverified[name.text] = None
            border = re.compile(
                rf"(?<![\w./\-]){re.escape(name.text)}(?![\w/\-])(?::\d+)*+[`'\")\]>*]*+(?! \(unverified)"
            )
            row = border.sub(lambda found: f"{found[0]} {UNVERIFIED}", row)
    return row


def _checked(name: names.Name) -> bool:
    """Whether a name must stand somewhere: prose such as `read/write` only looks like a path."""
    if name.kind == "number":
        return len(name.text) >= LONG_NUMBER
    if name.kind == "path":
        parts = name.text.strip("/").split("/")
        looks = "." in parts[-1] or len(parts) > 2 or name.text.startswith(("/", "./", "../", "~/"))
        return looks and not re.search(r"[*{}<>$]|\.\.\.", name.text)
    return name.kind in ("url", "id")


class _Superseded:
    """Older values of the names whose newest value is known."""

    def __init__(self, values: Sequence[ValueFact]) -> None:
        self._newest = current_values(values)
        if not self._newest:
            self._pattern = None
            return
        known = sorted((re.escape(name) for name in self._newest), key=len, reverse=True)
        self._pattern = re.compile(
            rf"(?<![\w\-])(?P<name>{'|'.join(known)})(?![\w\-])[`'\"*]{{0,3}}\s*"
            r"(?:=|:|\bis\b|\bto\b|->|→)?\s*"
            r"(?P<value>[`'\"]?[\w./:#\-]*\d[\w./:#\-]*)(?P<close>[`'\"]?)(?! \(superseded)",
            re.IGNORECASE,
        )

    def mark(self, row: str) -> str:
        """Mark the values in a line that were replaced since, but where the line gives the newest as well."""
        return self._pattern.sub(lambda found: self._judged(found, row), row) if self._pattern else row

    def _judged(self, found: re.Match[str], row: str) -> str:
        newest = self._newest[found["name"].casefold()].value
        value = found["value"].strip("`'\"").rstrip(".:")
        given = re.search(rf"(?<![\w.]){re.escape(newest)}(?!\w)", row)
        if given or not _same_shape(value, newest):
            return found[0]
        return f"{found[0]} (superseded: now {newest})"


def _same_shape(one: str, other: str) -> bool:
    """Whether two values could be one and the other of the same thing."""
    if one.isdigit() or other.isdigit():
        return one.isdigit() and other.isdigit()
    return ("://" in one) == ("://" in other) and ("/" in one) == ("/" in other)
