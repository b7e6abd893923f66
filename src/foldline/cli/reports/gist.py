"""A checkpoint in short, for people: the story, the state, the rules; whatever headings it has."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint.conversation import gap_line, line_of, read
from foldline.core.ledger.facts.kinds import SPOKEN, Item

WIDEST = 160  # characters of a line
REQUESTS = 10  # requests of the story, the newest
NEWEST = 8  # lines of the newest request
ITEMS = 5  # lines of any other part
RULES = 12

_CONVERSATION = "conversation"
_STORY = ("goal", "task", "requests & intent", _CONVERSATION)
_STATE = (
    "state",
    "progress",
    "done",
    "in progress",
    "blocked",
    "next steps",
    "current work",
    "remaining work",
)
_RULES = ("constraints & preferences", "rules", "user requests & constraints")


class Part(msgspec.Struct, frozen=True):
    """Some lines under a heading; `left_out` are how many stand before the last ones (`newest`), or after."""

    heading: str
    lines: list[str]
    left_out: int = 0
    newest: bool = False


def in_short(summary: str) -> list[Part]:
    """Return the parts of a checkpoint that say what happened, where things stand, and what holds.

    A text without any of the usual headings is cut to the beginning of each of its sections.
    """
    sections = _sections(summary)
    story = [_story(name, rows) for name, rows in sections if name.casefold() in _STORY]
    state = [_cut(name, rows, ITEMS) for name, rows in sections if name.casefold() in _STATE]
    rules = [_cut(name, rows, RULES, widest=None) for name, rows in sections if name.casefold() in _RULES]
    found = [part for part in (*story, *state, *rules) if part.lines]
    return found or [part for part in (_cut(name, rows, ITEMS) for name, rows in sections) if part.lines]


def _sections(summary: str) -> list[tuple[str, list[str]]]:
    """Split a checkpoint at its headings; lines of tags and lines that say nothing are left out.

    What was said may have headings of its own: a conversation ends at one of the page's, or with the page.
    """
    found: list[tuple[str, list[str]]] = [("", [])]
    inside = ""
    for line in summary.splitlines():
        if line.startswith("## " if found[-1][0].casefold() == _CONVERSATION else "#"):
            found.append((line.lstrip("# ").strip(), []))
        elif line in ("<read-files>", "<modified-files>"):
            inside = line.replace("<", "</")
        elif line == inside:
            inside = ""
        elif not inside and line.strip("-* ") not in ("", "(none)") and not line.startswith(("<", "</")):
            found[-1][1].append(line)
    return found


def _cut(name: str, rows: Sequence[str], most: int, widest: int | None = WIDEST) -> Part:
    """Return the first lines of a section; one line too many is shown."""
    shown = rows if len(rows) <= most + 1 else rows[:most]
    return Part(name, [_clipped(row, widest) for row in shown], len(rows) - len(shown))


def _story(name: str, rows: Sequence[str]) -> Part:
    """Return of each request what was asked and what was said last, and more of the newest."""
    requests: list[list[Item]] = []
    items = read("\n".join(rows)) if name.casefold() == _CONVERSATION else []
    if not items:
        return _cut(name, rows, ITEMS)
    for item in items:
        if item.kind == "user" or not requests:
            requests.append([])
        requests[-1].append(item)
    told: list[Item] = []
    for request in requests[-REQUESTS:-1]:
        closing = [item for item in request[1:] if item.kind in SPOKEN]
        told += [request[0], *closing[-1:]]
    *_, (asked, *since) = requests
    told += [asked, *since[1 - NEWEST :]]
    lines = [_clipped(line.split("\n")[0]) for item in told for line in _written(item)]
    return Part(name, lines, len(rows) - len(lines), newest=True)


def _written(item: Item) -> list[str]:
    return gap_line(item) if item.kind == "gap" else [line_of(item, item.text)]


def _clipped(line: str, widest: int | None = WIDEST) -> str:
    return line if widest is None or len(line) <= widest else f"{line[: widest - 1].rstrip()}…"
