"""Patch texts into the files they touch: the `*** Begin Patch` form and unified diffs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foldline.core.ledger.facts.shell import Effect

_SCANNED = 400_000
_HEADER = re.compile(
    r"^\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>[^\n]{1,400})$"
    r"|^\*\*\* Move to: (?P<moved>[^\n]{1,400})$"
    r"|^--- (?P<old>[^\t\n]{1,400})(?:\t[^\n]*)?\n\+\+\+ (?P<new>[^\t\n]{1,400})(?:\t[^\n]*)?$"
    r"|^[+](?P<line>(?![+])[^\n]*\w[^\n]*)$",
    re.MULTILINE,
)
_STATUS = {"Add": "created", "Update": "modified", "Delete": "deleted"}


def is_patch(text: str) -> bool:
    """Whether a text carries a patch in one of the two forms."""
    head = text[:_SCANNED]
    return "*** Begin Patch" in head or bool(re.search(r"^--- \S[^\n]*\n\+\+\+ \S", head, re.MULTILINE))


def patched(text: str) -> Iterator[Effect]:
    """Yield each file of a patch, with what becomes of it."""
    current: Effect | None = None
    for match in _HEADER.finditer(text[:_SCANNED]):
        if match.group("moved") and current:
            yield Effect(current.path, "deleted")
            current = Effect(match.group("moved").strip(), "created", current.path)
            continue
        if current:
            yield current
        current = _file(match)
    if current:
        yield current


def _file(match: re.Match[str]) -> Effect | None:
    """Read the header of one file."""
    if match.group("verb"):
        return Effect(match.group("path").strip(), _STATUS[match.group("verb")])
    if match.group("new") is None:
        return None
    old, new = (re.sub(r"^[ab]/", "", match.group(name).strip()) for name in ("old", "new"))
    if new == "/dev/null":
        return Effect(old, "deleted")
    return Effect(new, "created" if old == "/dev/null" else "modified")
