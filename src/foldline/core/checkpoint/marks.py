"""Marks on the lines of a model's summary: names that stand in no entry."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foldline.core.checkpoint.evidence import UNVERIFIED, Evidence
from foldline.core.ledger.text import names

LONG_NUMBER = 5  # digits from which a number has to stand somewhere


def marked(body: str, quoted: Sequence[str], evidence: Evidence) -> tuple[str, tuple[str, ...]]:
    """Mark the names that stand nowhere, but in lines that quote a rule; return also those names."""
    unverified: dict[str, None] = {}
    rows = [
        row if any(words and words in row for words in quoted) else _mark_names(row, evidence, unverified)
        for row in body.split("\n")
    ]
    return "\n".join(rows), tuple(unverified)


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
