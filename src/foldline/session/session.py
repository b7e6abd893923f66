"""A stored session: append, context, append. A facade over its parts, which are composed here.

Most methods belong to a part and are documented there; the table at the end of the class maps them. A session
holds the entries of its view, never the whole history.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from copy import copy
from inspect import iscoroutinefunction
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import msgspec

from foldline.catalogue import ModelInfo
from foldline.core.compact.fold_request import continuation_of
from foldline.core.decide.continuation import Continuation
from foldline.core.decide.policy import Policy
from foldline.core.decide.price import Cache
from foldline.core.log.entries import Pin
from foldline.core.view_items import Item
from foldline.dialects import get
from foldline.session.appends import Appends
from foldline.session.boundary import BoundaryMaker
from foldline.session.compactor import Compactor
from foldline.session.events import Events
from foldline.session.hooks import Hooks, LiveState
from foldline.session.jobs import DraftJobs
from foldline.session.links import Links
from foldline.session.overflow import OverflowMender
from foldline.session.preview import ManualCompaction
from foldline.session.recall import Recall
from foldline.session.reread import Rereading
from foldline.session.rules import StoredRules
from foldline.session.setup import Setup
from foldline.session.shared import Shared
from foldline.session.switching import Switching
from foldline.session.tools import Tools
from foldline.session.tree import SessionTree
from foldline.session.triggers import Triggers
from foldline.session.view import SessionView, Stats
from foldline.stores.base import Store
from foldline.summarizers.base import Summarizer

__all__ = ["Session", "Setup", "Stats"]

P = ParamSpec("P")
T = TypeVar("T")
Part = TypeVar("Part")


def _of(
    part: Callable[[Session], Part], method: Callable[Concatenate[Part, P], T]
) -> Callable[Concatenate[Session, P], T]:
    """Expose a method of a part on the session, keeping its signature and docstring."""

    @functools.wraps(method)
    def run(self: Session, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(part(self), *args, **kwargs)

    @functools.wraps(method)
    async def wait(self: Session, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await cast("Coroutine[Any, Any, Any]", method(part(self), *args, **kwargs))

    # mocks and others check whether a method is a coroutine function
    return cast("Callable[Concatenate[Session, P], T]", wait) if iscoroutinefunction(method) else run


def _begins(
    begin: Callable[Concatenate[Session, P], Coroutine[Any, Any, str]], *, subagent: bool = False
) -> Callable[Concatenate[Session, P], Coroutine[Any, Any, Session]]:
    """Wrap a method that creates a session and returns its id, to return the session."""

    @functools.wraps(begin)
    async def run(self: Session, /, *args: P.args, **kwargs: P.kwargs) -> Session:
        begun = await begin(self, *args, **kwargs)
        return self._sibling(begun, subagent=subagent)  # pyright: ignore[reportPrivateUsage]

    return run


class Session:
    """One conversation in a store; create it with `foldline.open`."""

    def __init__(
        self,
        store: Store,
        session: str,
        setup: Setup,
        *,
        summarizer: Summarizer | None = None,
        summary_model: ModelInfo | None = None,
        owns_store: bool = False,
    ) -> None:
        """Compose a session with summaries by `summarizer` (default: offline); see `Switching`."""
        self.id = session
        self.store = store
        self._owns_store = owns_store
        self._shared = Shared(store, session, setup, summarizer)
        self._maker = BoundaryMaker(self._shared)
        self._compactor = Compactor(self._shared, self._maker)
        self._triggers = Triggers(self._shared, self._compactor)
        self._manual = ManualCompaction(self._shared, self._compactor, self._triggers)
        self._appends = Appends(self._shared, self._triggers)
        self._mender = OverflowMender(self._shared, self._compactor)
        self._tree = SessionTree(self._shared, self._compactor.drafts)
        self._links = Links(self._shared)
        self._recall = Recall(self._shared)
        self._tools = Tools(self._shared, self._triggers, self._recall)
        self._rules = StoredRules(store, session)
        self._rereading = Rereading(self._shared)
        self._switching = Switching(self._shared, self._compactor.drafts, summarizer, summary_model)

    async def __aenter__(self) -> Self:
        try:
            await self._shared.follow()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the session, and its store if `foldline.open` opened it; background work is cancelled."""
        self._shared.check_free()
        self._shared.closed = True
        async with AsyncExitStack() as stack:  # run in reverse order, whatever fails
            if self._owns_store:
                stack.push_async_callback(self.store.close)
            for closing in self._shared.at_close:
                stack.push_async_callback(closing)
            self._shared.at_close = []
            await self._triggers.close()
            await self._shared.events.drain()

    def at_close(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Register a coroutine function to await on close, such as closing a summariser's connections."""
        self._shared.at_close.append(closing)

    def make_drafts_by(self, jobs: DraftJobs) -> None:
        """Make drafts through `jobs` from now on; by default this process makes its own."""
        self._shared.jobs = jobs

    def follow_model(self) -> None:
        """Adopt the model that another process switches the session to, even if one was given here."""
        self._shared.model.follows = True

    # ---- properties

    @property
    def setup(self) -> Setup:
        """The session's settings: its model's window, its policy, system prompt and tools."""
        return self._shared.model.setup

    @property
    def policy(self) -> Policy:
        """The policy of the session, fitted to its model; `use_policy` changes it."""
        return self.setup.policy

    @property
    def summarizer(self) -> Summarizer:
        """The summariser of the session, unless a call sets another one (`summaries_by`)."""
        return self._shared.own_summarizer

    @summarizer.setter
    def summarizer(self, summarizer: Summarizer) -> None:
        self._shared.own_summarizer = summarizer

    @property
    def compacting(self) -> bool:
        """Whether a compaction is running that the next `context` waits for; drafts do not count."""
        return self._compactor.busy

    @property
    def max_tokens(self) -> int | None:
        """After an overflow: the most tokens of the next reply; None for no limit."""
        return self._shared.reply.max_tokens

    @property
    def compact_at(self) -> int | None:
        """The input size in tokens above which the provider compacts on its server; None: never."""
        return self._shared.model.compact_at

    @property
    def compaction_fields(self) -> dict[str, Any]:
        """Fields to pass to the provider's SDK with `context`, so that it compacts above `compact_at`.

        `client.responses.create(…, **fields)`, `client.beta.messages.create(…, **fields)`. {} if the
        policy does not use it, or the API does not support it.
        """
        at, dialect = self.compact_at, get(self.dialect)
        fields = dialect.compaction(at) if at is not None else {}
        if fields and dialect.compaction_beta:
            fields["betas"] = [dialect.compaction_beta]
        return fields

    @property
    def leaf(self) -> str | None:
        """The id of the newest entry on the path that was read: `follow` reads what others appended since.

        It also reads whether an append that was cancelled was stored.
        """
        return self._shared.cursor.leaf

    @property
    def said_key(self) -> str:
        """A key of all messages up to the leaf: folds, pins and notes do not change it."""
        return self._shared.cursor.said_key

    @property
    def dialect(self) -> str:
        """The dialect of the view: the one given at opening, or the newest message's."""
        return self._shared.view.dialect

    @property
    def system(self) -> Any:
        """The system prompt to send with `context`, if the dialect sends it separately."""
        return self._shared.view.system

    @property
    def in_turn(self) -> bool:
        """Whether consecutive messages of one role are joined, as some chat templates require."""
        return self._shared.model.in_turn

    @property
    def view_tokens(self) -> int:
        """The size of the view by our own count, system prompt and tools included."""
        return self._shared.model.view_tokens

    @property
    def pins(self) -> tuple[Pin, ...]:
        """The pinned and marked messages: their entries, and the text that every view keeps."""
        state = self._shared.cursor.state
        return tuple({**state.marks, **state.pins}.values())

    @property
    def cache(self) -> Cache:
        """How much of the next request the provider has cached, by the newest reply's usage."""
        return self._shared.view.cache

    def view(self) -> list[Item]:
        """Return the current view without compacting."""
        return self._shared.cursor.state.view()

    # ---- methods over several parts

    async def stats(self) -> Stats:
        """Return the session's figures."""
        await self._shared.follow()
        return await self._shared.view.stats()

    async def verify(self) -> list[str]:
        """Return the problems of the stored session; [] if it is intact."""
        return await self.store.verify(self.id)

    async def export(self, form: str = "jsonl", *, view: bool = False) -> bytes:
        """Return the session in a form of `foldline export`: `jsonl` is every entry of the path, lossless.

        With `view`, what the model is sent instead of the whole history (`jsonl`: in the session's dialect).
        Raises InputError for an unknown form.
        """
        await self._shared.follow()
        return await self._shared.view.export(form, view=view)

    async def live(self) -> dict[str, str]:
        """Return the current live state by name, as the next boundary would store it."""
        await self._shared.follow()
        return {live.name: live.text for live in await self._shared.live.now(self._shared.cursor.state)}

    async def standing(self) -> Continuation:
        """Return where the session stands: mid_tool (the model continues), waiting for the user, or done."""
        await self._shared.follow()
        return continuation_of(self._shared.cursor.state)

    def _sibling(self, session: str, *, subagent: bool = False) -> Session:
        """Open another session of the store with the same settings and a copy of the summariser."""
        return Session(
            self.store,
            session,
            msgspec.structs.replace(self.setup, subagent=subagent or self.setup.subagent),
            summarizer=copy(self.summarizer),
            summary_model=self.setup.info if self._switching.chooses else None,
        )

    # ---- methods of the parts

    append = _of(lambda self: self._appends, Appends.append)
    pin = _of(lambda self: self._appends, Appends.pin)
    unpin = _of(lambda self: self._appends, Appends.unpin)
    note = _of(lambda self: self._appends, Appends.note)
    track_files = _of(lambda self: self._appends, Appends.track_files)

    context = _of(lambda self: self._triggers, Triggers.context)
    settled = _of(lambda self: self._triggers, Triggers.settled)
    commit_draft = _of(lambda self: self._triggers, Triggers.commit_draft)
    cancel_compaction = _of(lambda self: self._triggers, Triggers.cancel_compaction)
    overflowed = _of(lambda self: self._mender, OverflowMender.overflowed)

    compact = _of(lambda self: self._manual, ManualCompaction.compact)
    preview = _of(lambda self: self._manual, ManualCompaction.preview)
    commit = _of(lambda self: self._manual, ManualCompaction.commit)
    exclude = _of(lambda self: self._manual, ManualCompaction.exclude)
    display_summary = _of(lambda self: self._compactor, Compactor.display_summary)

    use_model = _of(lambda self: self._switching, Switching.use_model)
    use_policy = _of(lambda self: self._switching, Switching.use_policy)

    undo = _of(lambda self: self._tree, SessionTree.undo)
    redo = _of(lambda self: self._tree, SessionTree.redo)
    branches = _of(lambda self: self._tree, SessionTree.branches)
    branch = _of(lambda self: self._tree, SessionTree.branch)
    merge = _of(lambda self: self._tree, SessionTree.merge)
    rewind = _of(lambda self: self._tree, SessionTree.rewind)

    handoff = _begins(_of(lambda self: self._links, Links.handoff))
    fork = _begins(_of(lambda self: self._links, Links.fork))
    subagent = _begins(_of(lambda self: self._links, Links.subagent), subagent=True)
    preview_handoff = _of(lambda self: self._links, Links.preview_handoff)
    finished = _of(lambda self: self._links, Links.finished)
    links = _of(lambda self: self._links, Links.links)

    history = _of(lambda self: self._shared.view, SessionView.history)
    recall = _of(lambda self: self._recall, Recall.recall)
    read = _of(lambda self: self._recall, Recall.read)
    entries = _of(lambda self: self._recall, Recall.entries)
    folded = _of(lambda self: self._recall, Recall.folded)
    constraints = _of(lambda self: self._rules, StoredRules.constraints)
    tools = _of(lambda self: self._tools, Tools.tools)
    call_tool = _of(lambda self: self._tools, Tools.call_tool)

    follow = _of(lambda self: self._shared, Shared.follow)
    prefix = _of(lambda self: self._shared.view, SessionView.call)
    on = _of(lambda self: self._shared.events, Events.on)
    before_compaction = _of(lambda self: self._shared.hooks, Hooks.before)
    attach = _of(lambda self: self._shared.live, LiveState.attach)
    attach_files = _of(lambda self: self._rereading, Rereading.attach_files)
