"""Recall: search, read and list folded messages, for the user and as tools for the model.

Recall's own calls and results in the log are left out. `for_model` also leaves out messages that the user
excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, cast

import msgspec

from foldline.arguments import check
from foldline.core.checkpoint.serialize import serialize
from foldline.core.cut.edits import Edits
from foldline.core.cut.exclude import excluded, is_excluded, left_of
from foldline.core.cut.notes import is_recall
from foldline.core.log.entries import EXCLUDED, Compacted, Said
from foldline.core.view import ViewState
from foldline.errors import InputError
from foldline.session.links import handed_from
from foldline.session.shared import Shared
from foldline.stores.base import Hit, backwards
from foldline.stores.search import searched_as

LINE: Final = 160  # characters of an entry in a list, at most
PASSAGE: Final = 8_000  # characters of one read by default
UNCUT: Final = 1_000_000_000
_READ_FOR_LINE: Final = 4 * LINE  # characters of a text that are read for its line in a list

HIDDEN: Final = ("folded", "excluded")  # states in which a message, or part of it, is not sent to the model
Standing = Literal["kept", "folded", "blanked", "reduced", "elided", "stripped", "repaired", "excluded"]


class EntryInfo(msgspec.Struct, frozen=True):
    """A message of a session's path, and its state in the view.

    `how` is kept (in the view as received), folded (not in the view), excluded (by the user, in part or
    whole), or the change that the view makes: blanked, reduced, elided, stripped, repaired. `tokens` is the
    size as received, `text` the beginning on one line, `at` Unix time.
    """

    entry: str
    role: str
    how: Standing
    text: str
    tokens: int
    at: float | None
    pinned: bool = False


class Passage(msgspec.Struct, frozen=True):
    """A piece of an entry as text: `offset` characters from its beginning, of `total`; `at` is Unix time.

    `next_offset` is where the next piece starts; None at the end.
    """

    session: str
    entry: str
    role: str
    text: str
    offset: int
    total: int
    at: float | None
    next_offset: int | None


class Recall:
    """Searches a session, the sessions that were handed off to it, and others of its store."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def recall(
        self, query: str, limit: int = 20, *, sessions: Sequence[str] | None = None, for_model: bool = False
    ) -> list[Hit]:
        """Search all messages, folded ones included, then the sessions that were handed off to this one.

        With `sessions`, search only those, in the same store. The best hits come first, those with only some
        of the words last. `for_model` leaves out excluded messages. Raises InputError for an unknown
        session.
        """
        check(query=query)
        store, found = self._shared.store, list[Hit]()
        for session in await self._sessions_to_search(sessions, for_model=for_model):
            if sum(not hit.partial for hit in found) >= limit:
                break
            edits = await self._exclusions(session) if for_model else {}
            hits = await store.search(query, session, limit + len(edits), on_path=True)
            found += [hit for hit in hits if not is_excluded(hit.entry, edits)]
        found.sort(key=lambda hit: hit.partial)
        return found[: max(limit, 0)]

    async def read(
        self,
        entry: str,
        offset: int = 0,
        limit: int = PASSAGE,
        *,
        session: str | None = None,
        for_model: bool = False,
    ) -> Passage:
        """Read a message as text, `limit` characters from `offset`; `session` names another session.

        `for_model` leaves out excluded messages. Raises InputError for an unknown message or session.
        """
        sessions = None if session is None else [session]
        for searched in await self._sessions_to_search(sessions, for_model=for_model):
            found = await self._shared.store.entry(searched, entry)
            if for_model and isinstance(found, Said):
                found = left_of(found, await self._exclusions(searched))
                if found is None:
                    raise InputError(f"the user excluded entry {entry} from the context")
            if isinstance(found, Said | Compacted) and (role := searched_as(found)):
                text = as_text(found)
                start = min(max(offset, 0), len(text))
                end = start + max(limit, 1)
                next_offset = end if end < len(text) else None
                return Passage(
                    searched, entry, role, text[start:end], start, len(text), found.at, next_offset
                )
        raise InputError(f"this session has no message {entry!r}: take the id from a search or a list")

    async def entries(self, limit: int | None = None, before: str | None = None) -> list[EntryInfo]:
        """Return the path's messages, oldest first: ids, sizes, and whether kept, folded or pinned.

        Returns the newest `limit` of them (default: all); `before`, an entry on the path, pages backwards.
        Reads only as much of the path as needed, from its end.
        """
        return await self._list(limit, before, hidden=False)

    async def folded(
        self, limit: int = 50, before: str | None = None, *, for_model: bool = False
    ) -> list[EntryInfo]:
        """Return the messages that the view leaves out or changes, oldest first; `before` pages backwards.

        `for_model` leaves out excluded messages.
        """
        return await self._list(limit, before, hidden=True, for_model=for_model)

    async def _list(
        self, limit: int | None, before: str | None, *, hidden: bool, for_model: bool = False
    ) -> list[EntryInfo]:
        """List messages of the path; `hidden` skips recall's own and those in the view as received."""
        leaf = await self._shared.follow()
        state = self._shared.cursor.state
        shown = {entry.id for entry in (*state.leading, *state.quoted, *state.kept)}
        pinned = state.pins.keys() | state.marks.keys()
        newest: list[EntryInfo] = []
        async for entry in backwards(self._shared.store, self._shared.id, leaf=leaf, before=before):
            if limit is not None and len(newest) >= limit:
                break
            if not isinstance(entry, Said) or (hidden and is_recall(entry.message)):
                continue
            how = _entry_state(entry, state, shown)
            if for_model and how == "excluded":
                continue
            if not hidden or how != "kept":
                newest.append(_info(entry, how, pinned=entry.id in pinned))
        return newest[::-1]

    async def _exclusions(self, session: str) -> Edits:
        """Return the edits by which the user excluded messages of a session."""
        return excluded(await self._shared.store.marks(session, kinds=("pruned", "lifted")))

    async def _sessions_to_search(self, sessions: Sequence[str] | None, *, for_model: bool) -> Sequence[str]:
        """Return the named sessions, which must exist, or this one and those it was handed off from.

        The model may only name sessions of the same user.
        """
        await self._shared.follow()
        store = self._shared.store
        if sessions is None:
            return await handed_from(store, self._shared.id)
        own = await store.info(self._shared.id)
        user = own.user if own is not None else ""  # it may not have begun
        for session in sessions:
            info = await store.info(session)
            if info is None or (for_model and info.user != user):
                raise InputError(f"no session {session!r} in this store")
        return sessions


def as_text(entry: Said | Compacted, cap: int = UNCUT) -> str:
    """Return a summary, or a message as text: its texts, thinking, calls, results and names of media.

    Results, and texts among the arguments of calls, are cut to `cap` characters: see `serialize`.
    """
    if isinstance(entry, Compacted):
        return entry.checkpoint.summary
    text = serialize([entry], result_cap=cap, thinking=True, redact=False)
    return text.removeprefix("<conversation>").removesuffix("</conversation>").strip()


def _entry_state(entry: Said, state: ViewState, shown: set[str]) -> Standing:
    if is_excluded(entry.id, state.edits):
        return EXCLUDED
    if entry.id not in shown:
        return "folded"
    edits = state.edits.get(entry.id, ())
    return cast("Standing", edits[0].kind) if edits else "kept"


def _info(entry: Said, how: Standing, *, pinned: bool) -> EntryInfo:
    line = " ".join(as_text(entry, 2 * _READ_FOR_LINE)[:_READ_FOR_LINE].split())  # half a cap is its head
    text = line if len(line) <= LINE else f"{line[: LINE - 1]}…"
    return EntryInfo(entry.id, entry.message.role, how, text, entry.tokens, entry.at, pinned)
