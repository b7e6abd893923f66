"""What the parts of one session share: place in the log, model, events, lock, and who writes summaries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

from foldline.catalogue import ModelInfo
from foldline.core.checkpoint.request import Prefix
from foldline.core.decide.overflow import ReplyLimit
from foldline.core.decide.watch import Watch
from foldline.core.log.entries import Lifted, Said
from foldline.errors import DialectError, InputError
from foldline.session.cursor import Cursor
from foldline.session.events import Events, MessageAdded, WarningGiven
from foldline.session.hooks import Hooks, calling
from foldline.session.jobs import DraftJobs, OwnJobs
from foldline.session.model import SessionModel, Setup
from foldline.session.state import LiveState
from foldline.session.view import SessionView
from foldline.stores.base import Store
from foldline.summarizers import (
    ModelSummarizer,
    OfflineSummarizer,
    Summarizer,
    summarizer_for,
    unasked_warning,
)

log = logging.getLogger("foldline")

# Who writes the summaries of the call at hand, and of the looks and drafts that it begins: each is a task
# with the context of the one that began it. So a session that several callers share holds nothing that one of
# them came with.
summaries_by: ContextVar[Summarizer | None] = ContextVar("foldline_summaries_by", default=None)


class Shared:
    """The one value that every part of a session is made with.

    `own_summarizer` writes the summaries of calls that bring none. `lock` is held to read and to write the
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
        self.at_close: list[Callable[[], Awaitable[None]]] = []  # awaited when the session is closed
        self.closed = False
        self.untold = ""  # a warning on who writes the summaries, until somebody listens
        self._begun = False

    @property
    def summarizer(self) -> Summarizer:
        """Who writes the summaries: the one that came with the call, else the session's own."""
        return summaries_by.get() or self.own_summarizer

    @asynccontextmanager
    async def locked(self, *, follow: bool = True) -> AsyncGenerator[Cursor]:
        """Hold the lock over the loaded session; with `follow`, with what others have written since."""
        if self.live in calling.get():
            raise InputError("a callback for live state cannot use its own session: it is held meanwhile")
        async with self.lock:
            await self._ready(follow=follow)
            yield self.cursor

    def check_free(self) -> None:
        """Raise InputError in a callback of a compaction: what waits for that one would never end."""
        if {self.hooks, self.live} & calling.get():
            raise InputError(
                "a hook cannot compact its own session, or wait for it, while a compaction waits for the hook"
            )

    async def follow(self) -> str | None:
        """Read what other writers have appended since, and return the leaf; an `append` follows it then."""
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
        if self.untold and self.events.heard(WarningGiven.name):
            self.untold, text = "", self.untold
            self.events.emit(WarningGiven(kind="summary_model", text=text))

    def tell_of(self, entries: Sequence[Said]) -> None:
        """Emit the event of messages that were appended."""
        roles = tuple(entry.message.role for entry in entries)
        self.events.emit(MessageAdded(entries=tuple(entry.id for entry in entries), roles=roles))

    def respect_undo(self) -> None:
        """Where the newest of the path is an undo, let it stand until something is said; the lock is held."""
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
        except DialectError:  # the summary can be written all the same, of the conversation as text
            return None


class SummarizerChoice:
    """Has a session's model write its summaries, or code, until another summariser is set by hand."""

    def __init__(self, shared: Shared, chosen: Summarizer | None = None) -> None:
        self._shared = shared
        self._chosen = chosen
        self._info: ModelInfo | None = None

    @property
    def stands(self) -> bool:
        """Whether the session's summariser is the one that was chosen here."""
        return self._chosen is None or self._shared.own_summarizer is self._chosen

    def use_model(self, info: ModelInfo) -> None:
        """Have the summaries written by this model from now on; a summariser that was set by hand stays."""
        self._info = info
        if not self.stands:
            return
        setup = self._shared.model.setup
        chosen = summarizer_for(
            info,
            setup.policy,
            catalogue=setup.catalogue,
            counter=setup.counter,
            dialect=setup.dialect,
        )
        self._chosen = self._shared.own_summarizer = chosen
        if isinstance(chosen, ModelSummarizer):
            self._shared.at_close.append(chosen.close)
        self._warn(unasked_warning(info, setup.policy, catalogue=setup.catalogue))

    def use_policy(self) -> None:
        """Have the summaries written as the policy that the session now goes on by says."""
        if self._info is not None:
            self.use_model(self._info)

    def _warn(self, text: str) -> None:
        """Have a warning told as soon as somebody listens; the log has it at once."""
        self._shared.untold = text
        if text:
            log.warning("session %s: %s", self._shared.id, text)
