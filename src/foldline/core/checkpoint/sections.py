"""A summary's sections: put lines under one of its headings."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)[\s:#]*$")
_NOTHING = re.compile(r"^[-*\s]*\(?(?:none|nothing|n/a|keine|aucune|ninguno)\)?\.?\s*$", re.IGNORECASE)


def plain(heading: str) -> str:
    """Return a heading in the form in which headings are compared."""
    return " ".join(heading.casefold().replace("&", "and").replace("*", "").split())


def heading_of(row: str) -> str:
    """Return the heading that a line is, in its plain form; "" for any other line."""
    found = _HEADING.match(row)
    return plain(found[2]) if found else ""


def put_under(text: str, lines: Sequence[str], headings: Sequence[str]) -> str:
    """Put lines at the end of the first section that has one of the headings (in their order of preference).

    A "(none)" that stood there goes. Where no such section stands, one with the first heading is added at the
    end.
    """
    if not lines:
        return text
    rows = text.split("\n")
    for heading in headings:
        for index, row in enumerate(rows):
            found = _HEADING.match(row)
            if found and plain(found[2]) == plain(heading):
                return "\n".join(_filled(rows, index, lines))
    return "\n".join([text.rstrip(), "", f"## {headings[0]}", *lines]).lstrip("\n")


def _filled(rows: list[str], heading: int, lines: Sequence[str]) -> list[str]:
    """The rows with lines added to the section that starts at `heading`."""
    end = next((i for i in range(heading + 1, len(rows)) if _HEADING.match(rows[i])), len(rows))
    body = [row for row in rows[heading + 1 : end] if not _NOTHING.match(row)]
    while body and not body[-1].strip():
        body.pop()
    gap = [""] if end < len(rows) else []
    return [*rows[: heading + 1], *body, *lines, *gap, *rows[end:]]
