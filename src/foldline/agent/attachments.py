"""What a prompt brings along: `@path` a file or a picture, `@session` what is relevant of another session."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from foldline.agent.tools.read import CHARACTERS, picture_in
from foldline.agent.workspace import Workspace
from foldline.core.log.messages import Media, Message, Text
from foldline.errors import InputError
from foldline.session.session import Session

REFERENCE = re.compile(r"(?<![\w@])@(\"[^\"\n]+\"|[^\s@,;:!?()\[\]{}<>\"']+)")
HITS = 12  # messages of another session that are taken along
LONGEST = 8  # words of the prompt, the longest, by which they are found
WORDS = re.compile(r"\w{3,}")


async def attached(text: str, workspace: Workspace, session: Session | None = None) -> tuple[Message, ...]:
    """Return a prompt as messages: the user's words, and what they refer to, which is data.

    A name that is neither a file nor a session stays a word. Raises InputError for what cannot be sent.
    """
    parts: list[Text | Media] = []
    for name in dict.fromkeys(found.group(1).strip('"') for found in REFERENCE.finditer(text)):
        taken = await asyncio.to_thread(_file, name, workspace)
        if taken is None and session is not None:
            taken = await _session(name, text, session)
        parts += [taken] if taken is not None else []
    said = Message("user", (Text(text),))
    return (said, Message("user", tuple(parts), injected=True)) if parts else (said,)


def _file(name: str, workspace: Workspace) -> Text | Media | None:
    """Return a file as a part of a message; None where there is none of that name that may be read."""
    try:
        path = workspace.resolve(name.rstrip("."))
        if path.is_dir():
            return _folder(path)
        file = workspace.open(path)
    except (InputError, OSError):
        return None
    with file:
        if picture := picture_in(file, path.name):
            return picture
        data = file.read(CHARACTERS * 4 + 1)
        size = os.fstat(file.fileno()).st_size
    if b"\0" in data[:8_192]:
        raise InputError(f"@{name} is binary and no picture: it cannot be attached")
    text = data.decode("utf-8", "replace")
    if len(text) > CHARACTERS:
        text = f"{text[:CHARACTERS]}\n[… the beginning of {size:,} bytes: use read for more]"
    return Text(f'<file path="{workspace.shown(path)}">\n{text}\n</file>')


def text_of(name: str, workspace: Workspace) -> str | None:
    """Return the beginning of a text file, for a fold; None where there is none that may be read."""
    try:
        with workspace.open(workspace.resolve(name)) as file:
            data = file.read(CHARACTERS * 4)
    except (InputError, OSError):
        return None
    return None if b"\0" in data[:8_192] else data.decode("utf-8", "replace")[:CHARACTERS]


def _folder(path: Path) -> Text:
    names = sorted(f"{one.name}/" if one.is_dir() else one.name for one in path.iterdir())
    return Text(f'<folder path="{path}">\n' + "\n".join(names[:500]) + "\n</folder>")


async def _session(name: str, text: str, session: Session) -> Text | None:
    """Return what another session of the store says to the words of the prompt; None where there is none."""
    ids = [info.id for info in await session.store.sessions()]
    found = [one for one in ids if one == name] or [one for one in ids if one.startswith(name)]
    if len(found) != 1 or len(name) < 4:
        return None
    words = sorted(set(WORDS.findall(text.replace(name, "").lower())), key=len, reverse=True)[:LONGEST]
    hits = await session.recall(" ".join(words), HITS, sessions=found, for_model=True) if words else []
    told = [await session.read(hit.entry, limit=1_500, session=hit.session, for_model=True) for hit in hits]
    body = "\n".join(f"[{one.entry}, {hit.role}] {one.text}" for one, hit in zip(told, hits, strict=True))
    shown = body or "(nothing in it matches the words of the prompt)"
    return Text(f'<session id="{found[0]}">\n{shown}\n</session>')
