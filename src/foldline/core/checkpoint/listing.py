"""The two blocks at the end of a page that list the files that were changed, and those that were read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from foldline.core.ledger.facts.kinds import FileFact
from foldline.core.ledger.text.paths import by_folder, of_folder, relative

Count = Callable[[str], int]

_BLOCKS = (("modified-files", ("modified", "created", "deleted")), ("read-files", ("read",)))

_BLOCK = re.compile(r"^<(read|modified)-files>\n(.*?)^</\1-files>$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r" \((created|modified|deleted)\)$")
_MORE = re.compile(r"\(\d+ more\)$")
_QUOTED = re.compile(r"`(.*)`(?: \((created|modified|deleted)\))?$")
_AMBIGUOUS = re.compile(r"/: |, [^/]*$|^[`<\s]|\s$| \((?:created|modified|deleted)\)$|^\(\d+ more\)$|\n")
"""A path that could be mistaken for several, for a mark or for the end of a block stands in backticks."""


def write(files: Sequence[FileFact], base: str, count: Count, most: int) -> list[str]:
    """Write the two blocks in `most` tokens, modified files first in line, the newest first."""
    lines: list[str] = []
    folders = {folder for fact in files if fact.status != "deleted" for folder in _folders(fact.path)}
    for tag, wanted in _BLOCKS:
        found = [
            fact
            for fact in reversed(files)
            if fact.status in wanted and not (fact.status == "deleted" and fact.path in folders)
        ]
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


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in: such a one was made again if it had been deleted."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _lines_of(files: Sequence[FileFact], base: str) -> list[str]:
    """Write files by folder, those that were deleted marked."""
    plain: list[str] = []
    quoted: list[str] = []
    for fact in files:
        path = relative(fact.path, base)
        mark = " (deleted)" if fact.status == "deleted" else ""
        if _AMBIGUOUS.search(path):
            quoted.append(f"`{' '.join(path.split())}`{mark}")
        else:
            plain.append(path + mark)
    return by_folder(plain) + quoted


def read(text: str) -> tuple[list[FileFact], str]:
    """Read the blocks of a page back: the files, oldest first, and the page without them."""
    blocks = {match.group(1): match.group(2) for match in _BLOCK.finditer(text)}
    found = [
        FileFact(path, mark or status)
        for status, block in blocks.items()
        for line in reversed(block.split("\n"))
        for path, mark in reversed(list(_marked_paths(line)))
    ]
    return found, _BLOCK.sub("", text)


def paths_in(line: str) -> list[str]:
    """Return the paths of one line of a block."""
    return [path for path, _ in _marked_paths(line)]


def _marked_paths(line: str) -> Iterator[tuple[str, str]]:
    """Yield each path of a line, and what it is marked as ("": nothing)."""
    quoted = _QUOTED.match(line)
    if quoted:
        yield quoted[1], quoted[2] or ""
    elif line.strip() and not _MORE.match(line):
        for path in of_folder(line):
            mark = _MARK.search(path)
            yield (path[: mark.start()], mark[1]) if mark else (path, "")
