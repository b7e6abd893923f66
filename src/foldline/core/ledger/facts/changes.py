"""How a file was changed: its new lines that tell something, or the names that came and went."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from foldline.core.ledger.facts.edits import FileEdit
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip

LINE = 90  # characters of a line that is shown
LONGEST = 420  # characters of a note
NAMES = 6  # names that came
DEFINED = 12  # names that a new file defines
TELLING = 8  # lines that tell something
SIGNATURES = 4  # of them, definitions
GONE = 3  # names that went
SCANNED = 20_000  # characters of one edit that are read

_DEFINED = re.compile(
    r"^\s{0,8}(?:export |default |pub |public |private |static |async |abstract )*"
    r"(?:func(?: \([^)]*\))?|def|class|interface|type|struct|enum|trait|fn|function)\s+(\w+)",
    re.MULTILINE,
)


_SIGNATURE = re.compile(
    r"(?:export |default |pub |public |private |protected |static |async |abstract )*"
    r"(?:func|def|class|interface|type|struct|enum|trait|fn|function)\b.{3,}"
)
_VALUE = re.compile(
    r"(?:(?:export|const|let|var|final|static|public|private|readonly|val)\s+)*"
    r"[\"']?[\w.$-]{2,40}[\"']?(?:\s*:\s*\w{2,20})?\s*(?::=|[:=])\s*"
    r"(?:\"[^\"]{1,60}\"|'[^']{1,60}'|-?\d[\w.]{0,20}|#[0-9a-fA-F]{3,8}|true|false|True|False)\s*[,;]?"
)
"""A name that is given a plain value."""
_FIELD = re.compile(
    r"[A-Z]\w+\s+\*?[\w.\[\]]+\s+`\w+:\"[^`]+`|(?:readonly )?\w{2,40}\??: [\w.\[\]<>| ]{3,60};"
)
"""A field of a structure with its type."""


def notes(edits: Iterable[FileEdit]) -> dict[str, str]:
    """Return how each file was changed, by its key; files of which nothing short can be said are left out."""
    of: dict[str, list[FileEdit]] = {}
    for edit in edits:
        if not edit.shown:
            of.setdefault(edit.path, []).append(edit)
    return {path: note for path, made in of.items() if (note := _note(made))}


def _note(edits: Sequence[FileEdit]) -> str:
    if edits[-1].whole:
        found = list(dict.fromkeys(_DEFINED.findall(edits[-1].new[:SCANNED])))[:DEFINED]
        return _listed("defines", found)
    came: dict[str, None] = {}
    went: dict[str, None] = {}
    for edit in edits:
        old, new = _lines(edit.old), _lines(edit.new)
        for line in old:
            if line not in new and came.pop(line, line) is not None:
                went[line] = None
        came.update((line, None) for line in new if line not in old)
    if len(came) == 1 and len(went) <= 1 and "`" not in f"{came}{went}":
        before = f"`{clip(next(iter(went)), LINE)}` became " if went else "added "
        return f"{before}`{clip(next(iter(came)), LINE)}`"
    if telling := _telling(came):
        return clip(_listed("now has", [_quoted(line) for line in telling]), LONGEST)
    added, gone = _names(came), _names(went)
    parts = (
        _listed("adds", [name for name in added if name not in gone][:NAMES]),
        _listed("removes", [name for name in gone if name not in added][:GONE]),
    )
    return clip("; ".join(filter(None, parts)), LONGEST)


def _telling(lines: Collection[str]) -> list[str]:
    """Return the newest lines that say something by themselves: definitions, plain values, fields."""
    signatures = [line for line in lines if _SIGNATURE.match(line)][-SIGNATURES:]
    values = [line for line in lines if _is_value(line)][-(TELLING - len(signatures)) :]
    return [*signatures, *values]


def _is_value(line: str) -> bool:
    return len(line) <= LINE and bool(_VALUE.fullmatch(line) or _FIELD.fullmatch(line))


def _quoted(line: str) -> str:
    return clip(line.rstrip("{:;, ").replace("`", "'"), LINE)


def _lines(text: str) -> dict[str, None]:
    return dict.fromkeys(line.strip() for line in text[:SCANNED].split("\n") if line.strip())


def _names(lines: Iterable[str]) -> dict[str, None]:
    found = (name for line in lines for name in names.find(line))
    return dict.fromkeys(name.text for name in found if name.kind == "identifier" and "`" not in name.text)


def _listed(label: str, found: Sequence[str]) -> str:
    return f"{label} {', '.join(f'`{name}`' for name in found)}" if found else ""
