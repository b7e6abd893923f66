"""References in a prompt: `@path` attaches a file or a picture, `@session` parts of another session."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Sequence
from itertools import islice

from foldline.agent.tools.read import CHARACTERS, picture_in
from foldline.agent.tools.search import files
from foldline.agent.workspace import Workspace
from foldline.core.log.messages import Media, Message, Text
from foldline.errors import InputError
from foldline.session.session import Session

REFERENCE = re.compile(r"(?<![\w@])@(\"[^\"\n]+\"|[^\s@,;:!?()\[\]{}<>\"']+)")
HITS = 12  # messages of another session that are attached
SEARCH_WORDS = 8  # the longest words of the prompt, which find these messages
WORDS = re.compile(r"\w{3,}")
COMPLETIONS = 8
MAX_FILES = 5_000  # of the folder, for completion


async def attach_references(
    text: str, workspace: Workspace, session: Session | None = None
) -> tuple[Message, ...]:
    """Return a prompt as messages: the user's text, and what it refers to as injected data.

    A name that is neither a file nor a session stays text. Raises InputError for a file that cannot be sent.
    """
    parts: list[Text | Media] = []
    for name in dict.fromkeys(match.group(1).strip('"') for match in REFERENCE.finditer(text)):
        part = await asyncio.to_thread(_file_part, name, workspace)
        if part is None and session is not None:
            part = await _session_part(name, text, session)
        parts += [part] if part is not None else []
    prompt = Message("user", (Text(text),))
    return (prompt, Message("user", tuple(parts), injected=True)) if parts else (prompt,)


def _file_part(name: str, workspace: Workspace) -> Text | Media | None:
    """Return a file or a folder's listing as a message part; None if no readable file has that name."""
    try:
        path = workspace.resolve(name.rstrip("."))
        if path.is_dir():
            names = sorted(f"{item.name}/" if item.is_dir() else item.name for item in path.iterdir())
            return Text("\n".join((f'<folder path="{path}">', "\n".join(names[:500]), "</folder>")))
        file = workspace.open(path)
    except (InputError, OSError):
        return None
    with file:
        if picture := picture_in(file, path.name):
            return picture
        data = file.read(CHARACTERS * 4 + 1)
        size = os.fstat(file.fileno()).st_size
    if b"\0" in data[:8_192]:
        raise InputError(f"@{name} is binary and not a picture: it cannot be attached")
    text = data.decode("utf-8", "replace")
    if len(text) > CHARACTERS:
        text = f"{text[:CHARACTERS]}\n[… the beginning of {size:,} bytes: use read for more]"
    return Text(f'<file path="{workspace.shown(path)}">\n{text}\n</file>')


def text_of(name: str, workspace: Workspace) -> str | None:
    """Return the beginning of a text file, for a fold; None if it may not be read."""
    try:
        with workspace.open(workspace.resolve(name)) as file:
            data = file.read(CHARACTERS * 4)
    except (InputError, OSError):
        return None
    return None if b"\0" in data[:8_192] else data.decode("utf-8", "replace")[:CHARACTERS]


class Completion:
    """Completes commands, and references to the files of a folder, which are listed once, in a thread."""

    def __init__(self, commands: Iterable[str], workspace: Workspace) -> None:
        self._commands = [f"/{name}" for name in commands]
        self._workspace = workspace
        self._files: list[str] = []

    def load(self) -> None:
        """List the files of the folder."""
        paths = islice(files(self._workspace.root), MAX_FILES)
        self._files = [self._workspace.shown(path) for path in paths]

    def __call__(self, word: str, first: bool) -> Sequence[str]:
        """Return completions of a word, the likeliest first."""
        if word.startswith("/"):
            return [name for name in self._commands if name.startswith(word)] if first else ()
        typed = word[1:].strip('"').lower()
        starting = [name for name in self._files if name.lower().startswith(typed)]
        others = [
            name for name in self._files if typed in name.lower() and name not in starting[:COMPLETIONS]
        ]
        names = (*starting, *others)[:COMPLETIONS]
        return [f"@{name}" if REFERENCE.fullmatch(f"@{name}") else f'@"{name}"' for name in names]


async def _session_part(name: str, text: str, session: Session) -> Text | None:
    """Return what another session says to the prompt; None if not exactly one session has that name."""
    ids = [info.id for info in await session.store.sessions()]
    found = [id_ for id_ in ids if id_ == name] or [id_ for id_ in ids if id_.startswith(name)]
    if len(found) != 1 or len(name) < 4:
        return None
    words = sorted(set(WORDS.findall(text.replace(name, "").lower())), key=len, reverse=True)[:SEARCH_WORDS]
    hits = await session.recall(" ".join(words), HITS, sessions=found, for_model=True) if words else []
    lines: list[str] = []
    for hit in hits:
        passage = await session.read(hit.entry, limit=1_500, session=hit.session, for_model=True)
        lines.append(f"[{passage.entry}, {hit.role}] {passage.text}")
    body = "\n".join(lines) or "(nothing in it matches the words of the prompt)"
    return Text(f'<session id="{found[0]}">\n{body}\n</session>')
