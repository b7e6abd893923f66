"""read: a file, or a part of it, with line numbers; pictures as pictures."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from foldline.agent.tools.tool import AgentTool, Arguments, Output, number, text
from foldline.agent.workspace import Workspace
from foldline.core.log.messages import Media
from foldline.errors import InputError
from foldline.session.tools import Tool

LINES = 2_000  # lines at once, unless fewer are asked for
CHARACTERS = 60_000  # characters at once
LONGEST = 2_000  # characters of a line that are shown
PICTURE = 5_000_000  # bytes; Anthropic takes no larger picture
PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def make(workspace: Workspace) -> AgentTool:
    """Return the tool."""

    async def run(given: Arguments) -> Output | str:
        path = workspace.resolve(given["path"])
        answer = await asyncio.to_thread(shown, path, given.get("offset", 1), given.get("limit", LINES))
        workspace.touch("read", path)
        return answer

    about = Tool(
        "read",
        f"Read a text file with line numbers, {LINES} lines at once, or see a PNG, JPEG, GIF or WebP.",
        {
            "path": text("The file, relative to the working folder."),
            "offset": number("The first line, 1 by default."),
            "limit": number("How many lines."),
        },
        ("path",),
    )
    return AgentTool(about, run, reads=True)


def shown(path: Path, offset: int, limit: int) -> Output | str:
    """Return a part of a file; raises InputError where it cannot be shown."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: use find") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if picture := picture_of(data, path.name):
        return Output(f"{path.name}, {len(data):,} bytes:", (picture,))
    if b"\0" in data[:8_192]:
        raise InputError(f"{path} is binary, {len(data):,} bytes: it cannot be read as text")
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines:
        return "(an empty file)"
    if offset > len(lines):
        raise InputError(f"the file has {len(lines)} lines only")
    return numbered(lines, offset, limit)


def numbered(lines: list[str], offset: int, limit: int) -> str:
    """Return lines with their numbers, as many as fit, and where to go on."""
    found: list[str] = []
    size = 0
    for place, line in enumerate(lines[offset - 1 : offset - 1 + limit], offset):
        cut = line if len(line) <= LONGEST else f"{line[:LONGEST]}… [{len(line) - LONGEST} more characters]"
        size += len(cut) + 8
        if found and size > CHARACTERS:
            break
        found.append(f"{place:>6}\t{cut}")
    after = offset + len(found)
    if after <= len(lines):
        found.append(f"[{len(lines) - after + 1} more lines: read with offset {after}]")
    return "\n".join(found)


def picture_of(data: bytes, name: str) -> Media | None:
    """Return a picture as a part of a message, None where it is none; raises InputError for a large one."""
    mime = next((mime for head, mime in PICTURES.items() if data.startswith(head)), None)
    if mime is None or (mime == "image/webp" and data[8:12] != b"WEBP"):
        return None
    if len(data) > PICTURE:
        raise InputError(f"{name}: {len(data):,} bytes; pictures of at most {PICTURE:,} can be sent")
    return Media("image", mime, data=base64.b64encode(data).decode("ascii"), name=name)
