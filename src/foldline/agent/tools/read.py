"""read: a file, or a part of it, with line numbers; pictures as images."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from foldline.agent.tools.toolbox import AgentTool, Arguments, Output, number, text
from foldline.agent.workspace import Workspace
from foldline.core.log.messages import Media
from foldline.errors import InputError
from foldline.session.definitions import Tool

LINES = 2_000  # the default limit
CHARACTERS = 60_000  # per call
LONGEST = 2_000  # characters of a line that are shown
PIECE = 65_536  # characters in memory at a time
COUNTED = 1_000_000  # at most so many of the lines that follow are counted
PICTURE = 5_000_000  # bytes, the limit of Anthropic
PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def make(workspace: Workspace) -> AgentTool:
    """Return the tool."""

    async def run(arguments: Arguments) -> Output | str:
        path = workspace.resolve(arguments["path"])
        answer = await asyncio.to_thread(
            read_part, workspace, path, arguments.get("offset", 1), arguments.get("limit", LINES)
        )
        workspace.touch("read", path)
        return answer

    about = Tool(
        "read",
        f"Read a text file with line numbers, {LINES} lines at a time, or view a PNG, JPEG, GIF or WebP.",
        {
            "path": text("The file, relative to the working folder."),
            "offset": number("The first line, 1 by default."),
            "limit": number("How many lines."),
        },
        ("path",),
    )
    return AgentTool(about, run, reads=True, uses=workspace.path_argument)


def read_part(workspace: Workspace, path: Path, offset: int, limit: int) -> Output | str:
    """Return a part of a file; raises InputError if it cannot be shown."""
    try:
        with workspace.open(path) as file:
            size = os.fstat(file.fileno()).st_size
            if picture := picture_in(file, path.name):
                return Output(f"{path.name}, {size:,} bytes:", (picture,))
            if b"\0" in file.read(8_192):
                raise InputError(f"{path} is binary, {size:,} bytes: it cannot be read as text")
            file.seek(0)
            return numbered(rows(file), offset, limit)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: use find") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def rows(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of a file, long ones cut; the file is never in memory as a whole."""
    with TextIOWrapper(file, "utf-8", "replace") as text:
        while line := text.readline(LONGEST + 1):
            cut, piece = 0, line
            while not piece.endswith("\n") and (piece := text.readline(PIECE)):
                cut += len(piece.removesuffix("\n"))
            cut += max(0, len(line.removesuffix("\n")) - LONGEST)
            start = line.removesuffix("\n")[:LONGEST]
            yield f"{start}… [{cut} more characters]" if cut else start


def numbered(lines: Iterator[str], offset: int, limit: int) -> str:
    """Return lines with their numbers, as many as fit, and where to continue."""
    shown: list[str] = []
    size = number = 0
    for number, line in enumerate(lines, 1):
        if number < offset:
            continue
        size += len(line) + 8
        if len(shown) == limit or (shown and size > CHARACTERS):
            left = 1 + sum(1 for _ in islice(lines, COUNTED))
            count = f"more than {COUNTED:,}" if left > COUNTED else f"{left}"
            return "\n".join([*shown, f"[{count} more lines: read with offset {number}]"])
        shown.append(f"{number:>6}\t{line}")
    if not number:
        return "(an empty file)"
    if not shown:
        raise InputError(f"the file has only {number} lines")
    return "\n".join(shown)


def picture_in(file: BinaryIO, name: str) -> Media | None:
    """Return a picture as a message part, None for other files; raises InputError if it is too large."""
    start = file.read(12)
    file.seek(0)
    mime = next((mime for head, mime in PICTURES.items() if start.startswith(head)), None)
    if mime is None or (mime == "image/webp" and start[8:12] != b"WEBP"):
        return None
    data = file.read(PICTURE + 1)
    if len(data) > PICTURE:
        raise InputError(f"{name} is too large: pictures of at most {PICTURE:,} bytes can be sent")
    return Media("image", mime, data=base64.b64encode(data).decode("ascii"), name=name)
