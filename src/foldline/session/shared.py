"""What the parts of one session share: cursor, model, events, lock and summariser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

from foldline.core.checkpoint.request import Prefix
from foldline.core.decide.overflow import ReplyLimit
from foldline.core.decide.watch import Watch
from foldline.core.log.entries import Lifted, Said
from foldline.errors import DialectError, InputError
from foldline.session.cursor import Cursor
from foldline.session.events import Events, MessageAdded, WarningGiven
from foldline.session.hooks import Hooks, LiveState, calling
from foldline.session.jobs import DraftJobs, OwnJobs
from foldline.session.model import SessionModel
from foldline.session.setup import Setup
from foldline.session.view import SessionView
from foldline.stores.base import Store
from foldline.summarizers import OfflineSummarizer, Summarizer

# The summariser of the current call, and of the checks and drafts that it starts, whose tasks inherit its
# context. So callers that share a session do not use each other's summarisers.
summaries_by: ContextVar[Summarizer | None] = ContextVar("foldline_summaries_by", default=None)


class Shared:
    """The state that all parts of a session are created with.

    `own_summarizer` writes the summaries of calls that set none. `lock` is held to read and to write the
    log, never while a summary is written.
    """

    def __init__(self, store: Store, session: str, setup: Setup, summarizer: Summarizer | None) -> None:
        self.store = store
        self.id = session
        self.lock = asyncio.Lock()
        self.cursor = Cursor(store, session, setup.counter)
        self.events = Events(session)
        self.watch = Watch(setup.limits)
        self.model = SessionModel(self.cursor, setup, self.events, self.watch)
        self.view = SessionView(self.cursor, self.model)
        self.reply = ReplyLimit()
        self.live = LiveState()
        self.hooks = Hooks()
        self.jobs: DraftJobs = OwnJobs()
        self.own_summarizer: Summarizer = summarizer or OfflineSummarizer(setup.counter)
        self.at_close: list[Callable[[], Awaitable[None]]] = []  # awaited on close
        self.closed = False
        self.pending_warning = ""  # a warning about the summariser, until a callback listens
        self._begun = False

    @property
    def summarizer(self) -> Summarizer:
        """The current call's summariser, or else the session's own."""
        return summaries_by.get() or self.own_summarizer

    @asynccontextmanager
    async def locked(self, *, follow: bool = True) -> AsyncGenerator[Cursor]:
        """Hold the lock with the session loaded; `follow` also loads what others have appended."""
        if self.live in calling.get():
            raise InputError(
                "a live-state callback cannot use its own session, which is locked while it runs"
            )
        async with self.lock:
            await self._ready(follow=follow)
            yield self.cursor

    def check_free(self) -> None:
        """Raise InputError inside a callback of a compaction, where waiting for it would deadlock."""
        if {self.hooks, self.live} & calling.get():
            raise InputError(
                "a hook cannot compact or wait for its own session while a compaction waits for the hook"
            )

    async def follow(self) -> str | None:
        """Load what other writers have appended, and return the leaf, after which `append` then appends."""
        async with self.locked() as cursor:
            return cursor.leaf

    async def _ready(self, *, follow: bool) -> None:
        if self.closed:
            raise InputError("this session is closed: open it again")
        await (self.cursor.follow() if follow else self.cursor.ready())
        state = self.cursor.state
        if self.cursor.has_news and follow:
            self.cursor.has_news = False
            self.model.load()
            if state.kept:
                self.watch.said([state.kept[-1].message])
        if not self._begun:
            self._begun = True
            self.model.begin()
            self.respect_undo()
        if self.pending_warning and self.events.has_listeners(WarningGiven.name):
            self.pending_warning, text = "", self.pending_warning
            self.events.emit(WarningGiven(kind="summary_model", text=text))

    def emit_added(self, entries: Sequence[Said]) -> None:
        """Emit the event of appended messages."""
        roles = tuple(entry.message.role for entry in entries)
        self.events.emit(MessageAdded(entries=tuple(entry.id for entry in entries), roles=roles))

    def respect_undo(self) -> None:
        """If the newest change is an undo, do not compact until a message comes; the lock is held."""
        entries = reversed(self.cursor.state.entries())
        newest = next((entry for entry in entries if isinstance(entry, Said | Lifted)), None)
        if isinstance(newest, Lifted) and newest.lifted:
            self.watch.undone(fits=self.model.view_tokens <= self.model.ask("threshold").usable)

    def prefix(self) -> Prefix | None:
        """Return the session's next request as it is now, for a summary to be asked for in; the lock is held.

        None where no model writes the summaries, or its dialect cannot hold the view.
        """
        if isinstance(self.summarizer, OfflineSummarizer):
            return None
        try:
            return self.view.prefix()
        except DialectError:  # the summary is then written from the conversation as text
            return None
