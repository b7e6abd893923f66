"""Recall: the folded past, searched, read and listed, by the user and as tools by the model.

Recall does not find itself: its own calls and answers in the log are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from foldline.core.checkpoint.serialize import serialize
from foldline.core.cut.recalled import is_recall
from foldline.core.log.entries import Said
from foldline.core.view import ViewState
from foldline.errors import InputError
from foldline.session.links import handed_from
from foldline.session.shared import Shared
from foldline.stores.base import Hit, Store

SPARE: Final = 3  # times as many hits are looked for as were asked for, because recall's own are left out
LINE: Final = 160  # characters of an entry that a list shows
PASSAGE: Final = 8_000  # characters of an entry that one reading shows
UNCUT: Final = 1_000_000_000


class FoldedEntry(msgspec.Struct, frozen=True):
    """An entry that the view does not show as it was received.

    `how` is folded (it is not in the view), or what was done to it there: blanked, elided, stripped, repaired.
    """

    entry: str
    role: str
    how: str
    text: str
    tokens: int
    at: float | None


class Passage(msgspec.Struct, frozen=True):
    """A piece of an entry as text: `offset` characters from its beginning, of `total`; `at` is Unix time."""

    session: str
    entry: str
    role: str
    text: str
    offset: int
    total: int
    at: float | None

    @property
    def next_offset(self) -> int | None:
        """Where to read on; None at the end."""
        end = self.offset + len(self.text)
        return end if end < self.total else None


async def search(store: Store, sessions: Sequence[str], query: str, limit: int) -> list[Hit]:
    """Return messages that match, of the first session before those it was handed off from; the best first."""
    found: list[Hit] = []
    for session in sessions:
        if len(found) >= limit:
            break
        hits = await store.search(query, session, limit * SPARE, on_path=True)
        entries = await store.entries(session, [hit.entry for hit in hits])
        said = zip(hits, entries, strict=True)
        found += [hit for hit, entry in said if isinstance(entry, Said) and not is_recall(entry.message)]
    return found[: max(limit, 0)]


async def read(
    store: Store, sessions: Sequence[str], entry: str, offset: int = 0, limit: int = PASSAGE
) -> Passage:
    """Return a piece of an entry as text; raises InputError where no session has that message."""
    for session in sessions:
        found = await store.entry(session, entry)
        if isinstance(found, Said):
            text = as_text(found)
            start = min(max(offset, 0), len(text))
            piece = text[start : start + max(limit, 1)]
            return Passage(session, entry, found.message.role, piece, start, len(text), found.at)
    raise InputError(f"this session has no message {entry!r}: take the id from a search or a list")


def as_text(entry: Said) -> str:
    """Return all that a message holds as text: words, thinking, calls with arguments, results; media named."""
    whole = serialize([entry], result_cap=UNCUT, thinking=True, redact=False)
    return whole.removeprefix("<conversation>").removesuffix("</conversation>").strip()


async def folded(
    store: Store, session: str, fold: ViewState, limit: int = 50, before: str | None = None
) -> list[FoldedEntry]:
    """Return what the view does not show as it was received, oldest first: the newest `limit` of it.

    `before` is the entry of an earlier list from which to go on backwards. Reads the path once and holds no more
    than is returned. Raises InputError where `before` is not on the path.
    """
    shown = {entry.id for entry in (*fold.leading, *fold.quoted, *fold.kept)}
    newest: deque[tuple[Said, str]] = deque(maxlen=max(limit, 0))
    async for entry in store.path(session):
        if entry.id == before:
            break
        if not isinstance(entry, Said) or is_recall(entry.message):
            continue
        edits = fold.edits.get(entry.id, ())
        if entry.id not in shown or edits:
            newest.append((entry, edits[0].kind if entry.id in shown and edits else "folded"))
    else:
        if before is not None:
            raise InputError(f"{before!r} is not on the path of this session")
    return [_listed(entry, how) for entry, how in newest]


def _listed(entry: Said, how: str) -> FoldedEntry:
    line = " ".join(as_text(entry)[: LINE * 4].split())
    text = line if len(line) <= LINE else f"{line[: LINE - 1]}…"
    return FoldedEntry(entry.id, entry.message.role, how, text, entry.tokens, entry.at)


class Recall:
    """The folded past of one session, and of those that it was handed off from."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def search(self, query: str, limit: int) -> list[Hit]:
        """Return messages that match, folded ones included; see `search`."""
        return await search(self._shared.store, await self._sessions(), query, limit)

    async def read(self, entry: str, offset: int = 0, limit: int = PASSAGE) -> Passage:
        """Return a piece of a message as text; see `read`."""
        return await read(self._shared.store, await self._sessions(), entry, offset, limit)

    async def folded(self, limit: int, before: str | None) -> list[FoldedEntry]:
        """Return what the view does not show as it was received; see `folded`."""
        shared = self._shared
        await shared.load()
        return await folded(shared.store, shared.id, shared.cursor.fold, limit, before)

    async def _sessions(self) -> list[str]:
        await self._shared.load()
        return await handed_from(self._shared.store, self._shared.id)
