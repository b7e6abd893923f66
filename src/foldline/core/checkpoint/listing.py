"""The two blocks at the end of a checkpoint that list the files that were changed, and those that were read.

Code writes them from the ledger, a model never does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from foldline.core.ledger.facts.kinds import FileFact
from foldline.core.ledger.facts.touches import folders, relative

Count = Callable[[str], int]

_BLOCKS = (("modified-files", ("modified", "created", "deleted")), ("read-files", ("read",)))

_BLOCK = re.compile(
    r"^<(read|modified)-files>[ \t]*\n((?:(?!<(?:read|modified)-files>).*\n)*?)</\1-files>[ \t]*(?:\n+|\Z)",
    re.MULTILINE,
)  # one that was never closed is prose
_MARK = re.compile(r" \((created|modified|deleted)\)$")
_MORE = re.compile(r"\(\d+ more\)$")
_QUOTED = re.compile(r"`(.*)`(?: \((created|modified|deleted)\))?$")
_AMBIGUOUS = re.compile(r"/: |, [^/]*$|^[`<\s]|\s$| \((?:created|modified|deleted)\)$|^\(\d+ more\)$|\n")
"""A path that could be mistaken for several, for a mark or for the end of a block is put in backticks."""


def write(files: Sequence[FileFact], base: str, count: Count, most: int) -> list[str]:
    """Write the two blocks in `most` tokens, modified files first in line, the newest first.

    The folder of an existing file is not listed as a file, even if it had been deleted before.
    """
    lines: list[str] = []
    inside = {folder for fact in files if fact.status != "deleted" for folder in folders(fact.path)}
    for tag, wanted in _BLOCKS:
        found = [fact for fact in reversed(files) if fact.status in wanted and fact.path not in inside]
        size = len(found)
        while size and count("\n".join(_lines_of(found[:size], base))) > most:
            size = size * 4 // 5
        block = _lines_of(found[:size], base)
        if block and size < len(found):
            block.append(f"({len(found) - size} more)")
        most -= count("\n".join(block))
        if block:
            lines[:0] = [f"<{tag}>", *block, f"</{tag}>"]
    return lines


def _lines_of(files: Sequence[FileFact], base: str) -> list[str]:
    """Write files one line a folder (`folder/: a.py, b.py`), those that were deleted marked."""
    folders: dict[str, list[str]] = {}
    alone: list[str] = []
    for fact in files:
        path = relative(fact.path, base)
        mark = " (deleted)" if fact.status == "deleted" else ""
        folder, _, name = path.rpartition("/")
        if _AMBIGUOUS.search(path):
            alone.append(f"`{' '.join(path.split())}`{mark}")
        elif folder:
            folders.setdefault(folder, []).append(name + mark)
        else:
            alone.append(path + mark)
    named = [f"{at}/: {', '.join(many)}" if many[1:] else f"{at}/{many[0]}" for at, many in folders.items()]
    return named + alone


def read(text: str) -> tuple[list[FileFact], str]:
    """Read the blocks of a page back: the files, oldest first, and the page without them."""
    blocks = {f"{match[1]}-files": match[2] for match in _BLOCK.finditer(text)}
    found = [
        FileFact(path, mark or wanted[0])
        for tag, wanted in reversed(_BLOCKS)
        for line in reversed(blocks.get(tag, "").split("\n"))
        for path, mark in reversed(list(_paths(line)))
    ]
    return found, without(text)


def without(text: str) -> str:
    """Take the blocks out of a text."""
    return _BLOCK.sub("", text).rstrip()


def _paths(line: str) -> Iterator[tuple[str, str]]:
    """Yield each path of a line, and what it is marked as ("": nothing)."""
    if quoted := _QUOTED.match(line):
        yield quoted[1], quoted[2] or ""
    elif line.strip() and not _MORE.match(line):
        folder, several, rest = line.partition("/: ")
        for path in [f"{folder}/{name}" for name in rest.split(", ")] if several else [line]:
            mark = _MARK.search(path)
            yield (path[: mark.start()], mark[1]) if mark else (path, "")
