"""The `Store` protocol and the values that it returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final, Literal, Protocol, TypeAlias, get_args

import msgspec

from foldline.core.log.entries import Entry

# the kinds of entries that are not messages
Mark = Literal["compacted", "pruned", "lifted", "pinned", "noted"]
MARKS: Final[tuple[Mark, ...]] = get_args(Mark)


class SessionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One session of a store.

    `messages`, `compactions` (lifted ones included) and `tokens` count on the path of the leaf; `entries`
    counts every branch. `title` is the newest title, or ""; `created` and `updated` are Unix times. `user` is
    the owner that a service noted, or "".
    """

    id: str
    title: str
    created: float
    updated: float
    messages: int
    entries: int
    compactions: int
    tokens: int
    leaf: str | None
    user: str = ""


Listed: TypeAlias = tuple[float, str]  # a position in the list of sessions: `updated` and id
FIRST: Final[Listed] = (float("inf"), "")  # before all sessions

_PAGE: Final = 256  # entries that `backwards` reads in one step
FEW: Final = 3  # with fewer full matches, a search adds messages with some of the words


class Hit(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry found by a search: its place, its role, the text around the match, Unix time.

    The role is that of the message, or `summary` for the summary of another agent. `partial`: only some of
    the query's words were found.
    """

    session: str
    entry: str
    seq: int
    role: str
    snippet: str
    at: float | None
    partial: bool = False


class Store(Protocol):
    """A place for sessions. A method that is cancelled has written everything or nothing.

    The service also needs `key_values`, `shared` and the queries by user and by age of
    `database_store.DatabaseStore`.

    Any method may raise StoreError (the operation failed), StoreCorrupt (the stored data are not what was
    appended) and, at the first use of a database, StoreVersion and FormatError.
    """

    async def append(self, session: str, entries: Sequence[Entry], *, seen: str | None) -> None:
        """Append a chain of entries after the leaf that the writer saw: one commit, durable on return.

        The first append creates the session. An append can be retried: entries that are already on the path
        after `seen`, times included, are left alone. Raises LeafMoved (with the current leaf) if the leaf
        is not `seen`, StoreError if the entries do not chain or cannot be stored; then nothing is written. A
        cancelled append is complete or dropped before any later call.
        """
        ...

    async def leaf(self, session: str) -> str | None:
        """Return the id of the session's leaf; None for an empty path or an unknown session."""
        ...

    async def move(self, session: str, leaf: str | None, *, seen: str | None) -> None:
        """Move the leaf to an entry of the session, or before the first (None). Nothing is removed.

        Raises LeafMoved if the leaf is neither `seen` nor already there, SessionNotFound, StoreError.
        """
        ...

    async def active(self, session: str, leaf: str | None = None) -> list[Entry]:
        """Return the entries that a view of the path needs, in path order; the work is O(those entries).

        With an effective `Compacted`: its leading and quoted entries, then the path from its first kept
        entry (or from itself if nothing was kept). Without: the whole path. [] for an unknown session.
        """
        ...

    def path(self, session: str, leaf: str | None = None) -> AsyncIterator[Entry]:
        """Yield the entries from the root to `leaf` (default: the session's leaf), read page by page.

        Raises SessionNotFound if the session is purged meanwhile.
        """
        ...

    async def tail(
        self, session: str, limit: int, *, leaf: str | None = None, before: str | None = None
    ) -> list[Entry]:
        """Return the last `limit` entries of a path, in path order; with `before`, those before that entry.

        The work is O(limit), however long the path. [] for an empty path; raises InputError if `before` is
        not on it.
        """
        ...

    async def marks(
        self, session: str, leaf: str | None = None, *, kinds: Collection[Mark] = MARKS
    ) -> list[Entry]:
        """Return the entries of these kinds, in path order.

        The work is O(entries returned). [] for an unknown session.
        """
        ...

    def all(self, session: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """Yield every entry of the session, all branches, in append order; nothing for an unknown session.

        With `after`, skip the first `after` entries. Raises as `path` does.
        """
        ...

    async def entry(self, session: str, entry: str) -> Entry | None:
        """Return one entry of the session, on any branch; None for an unknown session or entry."""
        ...

    async def entries(self, session: str, ids: Sequence[str]) -> list[Entry]:
        """Return the entries with these ids, in that order; raises StoreError that names missing ones."""
        ...

    async def sessions(self, *, limit: int | None = None, after: Listed = FIRST) -> list[SessionInfo]:
        """Return `limit` sessions (None: all) after the position `after`, the last updated first.

        Sessions created or updated meanwhile move to the front, so pages do not repeat any.
        """
        ...

    async def info(self, session: str) -> SessionInfo | None:
        """Return the info of one session; None for an unknown session."""
        ...

    async def ids(self, prefix: str, limit: int) -> list[str]:
        """Return the ids of the `limit` newest sessions with this prefix, newest first."""
        ...

    async def count(self) -> int:
        """Return how many sessions there are."""
        ...

    async def search(
        self, query: str, session: str | None = None, limit: int = 20, *, on_path: bool = False
    ) -> list[Hit]:
        """Return messages that have every word of the query: whole words first, then beginnings of words.

        Without any, return messages that contain every word anywhere. If fewer than `FEW` are found, messages
        with some of the words follow, ranked by how rare the words are. Case and most accents are ignored,
        and no character has a special meaning. The search covers texts, thinking, arguments and results,
        including those of tools that the provider ran, and the summaries of other agents (not our own), on
        every branch, or with `on_path` only on the path of each session's leaf.
        """
        ...

    async def verify(self, session: str | None = None) -> list[str]:
        """Return the problems of the store, or of one session: a line for each."""
        ...

    async def purge(self, session: str) -> None:
        """Delete the session with all its entries permanently. Raises SessionNotFound."""
        ...

    async def close(self) -> None:
        """Release the store's resources. Calling it again does nothing; any other call raises StoreError."""
        ...


async def backwards(
    store: Store, session: str, *, leaf: str | None = None, before: str | None = None
) -> AsyncIterator[Entry]:
    """Yield the entries of a path from the newest to the oldest; with `before`, those before that entry.

    The work is O(entries taken). Raises InputError if `before` is not on the path.
    """
    leaf = leaf or await store.leaf(session)  # the same path for every page
    page = await store.tail(session, _PAGE, leaf=leaf, before=before)
    while page:
        for entry in reversed(page):
            yield entry
        page = await store.tail(session, _PAGE, leaf=leaf, before=page[0].id)
