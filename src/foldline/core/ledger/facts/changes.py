"""How a file was changed: its one new line, or the names that came and went."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from foldline.core.ledger.facts.edits import FileEdit
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip

LINE = 90  # characters of a line that is shown
LONGEST = 200  # characters of a note
NAMES = 6  # names that came
GONE = 3  # names that went
SCANNED = 20_000  # characters of one edit that are read

_DEFINED = re.compile(
    r"^\s{0,8}(?:export |default |pub |public |private |static |async |abstract )*"
    r"(?:func(?: \([^)]*\))?|def|class|interface|type|struct|enum|trait|fn|function)\s+(\w+)",
    re.MULTILINE,
)


def notes(edits: Iterable[FileEdit]) -> dict[str, str]:
    """Return how each file was changed, by its key; files of which nothing short can be said are left out."""
    of: dict[str, list[FileEdit]] = {}
    for edit in edits:
        if not edit.shown:
            of.setdefault(edit.path, []).append(edit)
    return {path: note for path, made in of.items() if (note := _note(made))}


def _note(edits: Sequence[FileEdit]) -> str:
    if edits[-1].whole:
        found = list(dict.fromkeys(_DEFINED.findall(edits[-1].new[:SCANNED])))[:NAMES]
        return _listed("defines", found)
    came: list[str] = []
    went: list[str] = []
    for edit in edits:
        old, new = _lines(edit.old), _lines(edit.new)
        came += [line for line in new if line not in old]
        went += [line for line in old if line not in new]
    if len(came) == 1 and len(went) <= 1 and "`" not in f"{came}{went}":
        before = f"`{clip(went[0], LINE)}` became " if went else "added "
        return f"{before}`{clip(came[0], LINE)}`"
    added, gone = _names(came), _names(went)
    parts = (
        _listed("adds", [name for name in added if name not in gone][:NAMES]),
        _listed("removes", [name for name in gone if name not in added][:GONE]),
    )
    return clip("; ".join(filter(None, parts)), LONGEST)


def _lines(text: str) -> dict[str, None]:
    return dict.fromkeys(line.strip() for line in text[:SCANNED].split("\n") if line.strip())


def _names(lines: Iterable[str]) -> dict[str, None]:
    found = (name for line in lines for name in names.find(line))
    return dict.fromkeys(name.text for name in found if name.kind == "identifier" and "`" not in name.text)


def _listed(label: str, found: Sequence[str]) -> str:
    return f"{label} {', '.join(f'`{name}`' for name in found)}" if found else ""
