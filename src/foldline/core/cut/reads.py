"""Reads of files that a later read of the same file makes superfluous."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.messages import ToolCall

_PATH_KEYS = """
path file_path filepath filename file_name file target_file absolute_path relative_path notebook_path uri
"""
# an argument or a tool name with one of these words changes the file instead of reading it
_CHANGING = """
append content contents copy create data delete diff edit edits exec execute insert mkdir move new old patch
remove rename replace replacement run save text touch update upload write
"""
PATH_KEYS = frozenset(_PATH_KEYS.split())
CHANGING = frozenset(_CHANGING.split())
READING_COMMANDS = frozenset(("view", "read", "open", "cat", "show"))


class Read(msgspec.Struct, frozen=True):
    """A call that reads a path: the tool, the path, the other arguments in a normal form ("" for none)."""

    tool: str
    path: str
    rest: str


def read_of(call: ToolCall) -> Read | None:
    """Return what a call reads, or None where it does not read one path.

    Told by the shape of the arguments, so that it works whatever the tool is called: one path, and nothing
    in the arguments or the name that says the file is changed.
    """
    arguments = call.arguments
    if not isinstance(arguments, dict) or _changes(call.name):
        return None
    paths = [key for key in arguments if key.lower() in PATH_KEYS]
    if len(paths) != 1 or not isinstance(path := arguments[paths[0]], str):
        return None
    if len(arguments) == 1:
        return Read(call.name, _plain(path), "")
    rest = {
        key: arguments[key] for key in sorted(arguments) if key != paths[0] and arguments[key] is not None
    }
    if any(map(_changes, rest)) or not _reads(rest.get("command")):
        return None
    return Read(call.name, _plain(path), encode(rest).decode() if rest else "")


def _reads(command: Any) -> bool:
    return command is None or (isinstance(command, str) and command.lower() in READING_COMMANDS)


def _plain(path: str) -> str:
    return path.strip().removeprefix("file://").removeprefix("./")


@lru_cache(maxsize=1_024)  # the names of tools and of their arguments: few, and asked for at every call
def _changes(name: str) -> bool:
    return not CHANGING.isdisjoint(_words(name))


def _words(name: str) -> frozenset[str]:
    """The lower-case words in a name such as `old_string`, `newText` or `str-replace`."""
    spaced = "".join(f" {c}" if c.isupper() else c if c.isalnum() else " " for c in name)
    return frozenset((*spaced.lower().split(), *name.lower().replace("-", "_").split("_")))


def superseded(reads: Mapping[int, tuple[Read, int]]) -> set[int]:
    """Return the indices of reads that a later one covers.

    `reads` maps an index, higher for later, to a read and the size of its result. Covered is a read with the
    same arguments, or one of the same tool and path where the later read takes the whole file (the path and
    nothing else). The later result must be at least half as large: a note such as "unchanged since the last
    read", or an error, covers nothing.
    """
    covered: set[int] = set()
    largest: dict[Read, int] = {}  # by read, and by whole file (tool and path, no rest)
    for index in sorted(reads, reverse=True):
        read, size = reads[index]
        whole = Read(read.tool, read.path, "")
        if 2 * max(largest.get(read, -1), largest.get(whole, -1)) >= max(size, 1):
            covered.add(index)
        largest[read] = max(size, largest.get(read, -1))
    return covered
