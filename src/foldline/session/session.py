"""A stored session: append, context, append. The face of its parts, which are composed here.

The session holds what its view needs, never its whole history.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from copy import copy
from typing import Any, Literal, Self

import msgspec

from foldline.arguments import check_model, check_text, check_tools, check_window
from foldline.catalogue import ModelInfo
from foldline.config import settings
from foldline.core.compact.fold_request import continuation_of
from foldline.core.decide.ask import Nothing
from foldline.core.decide.continuation import Continuation
from foldline.core.decide.policy import Policy
from foldline.core.decide.price import Cache
from foldline.core.ledger.facts.files import Status
from foldline.core.log.entries import Pin, Receipt
from foldline.core.measure.window import Window
from foldline.core.view import Item
from foldline.errors import CallsOpen
from foldline.providers.base import Call
from foldline.session.appends import Appends
from foldline.session.boundary import BoundaryMaker
from foldline.session.compactor import Compactor
from foldline.session.events import Callback
from foldline.session.hooks import Hook
from foldline.session.jobs import DraftJobs
from foldline.session.links import Link, Links
from foldline.session.model import Setup
from foldline.session.overflow import OverflowMender
from foldline.session.preview import Preview, Previews
from foldline.session.recall import PASSAGE, EntryInfo, Passage, Recall
from foldline.session.rules import Rules, StoredRules
from foldline.session.shared import Shared, SummarizerChoice
from foldline.session.state import Render
from foldline.session.tools import Tools
from foldline.session.tree import Branch, Rewound, SessionTree
from foldline.session.triggers import Triggers
from foldline.session.view import ContextMessages, Stats
from foldline.stores.base import Hit, Store
from foldline.summarizers.base import Summarizer

__all__ = ["Session", "Setup", "Stats"]


class Session:
    """One conversation in a store; make it with `foldline.open`."""

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
        """Compose a session, whose summaries are by `summarizer` (default: code alone).

        With `summary_model`, that model writes them, then each that the session goes on with; a `summarizer`
        given beside it writes them until then.
        """
        self.id = session
        self.store = store
        self._owns_store = owns_store
        self._shared = Shared(store, session, setup, summarizer)
        self._maker = maker = BoundaryMaker(self._shared)
        self._compactor = Compactor(self._shared, maker)
        self._previews = Previews(self._shared, maker, self._compactor.drafts)
        self._triggers = Triggers(self._shared, self._compactor)
        self._appends = Appends(self._shared, self._triggers)
        self._mender = OverflowMender(self._shared, self._compactor)
        self._tree = SessionTree(self._shared)
        self._links = Links(self._shared)
        self._recall = Recall(self._shared)
        self._tools = Tools(self._shared, self._triggers, self._recall)
        self._rules = StoredRules(store, session)
        self._choice: SummarizerChoice | None = None
        if summary_model is not None:
            self._choice = SummarizerChoice(self._shared, summarizer)
            if summarizer is None:
                self._choice.use_model(summary_model)

    async def __aenter__(self) -> Self:
        async with self._shared.locked():
            return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the session, and its store if `foldline.open` opened that; background work is dropped."""
        async with AsyncExitStack() as stack:  # in this order from the last on, whatever fails
            if self._owns_store:
                stack.push_async_callback(self.store.close)
            for closing in self._shared.at_close:
                stack.push_async_callback(closing)
            self._shared.at_close = []
            await self._triggers.close()
            await self._shared.events.drain()

    def at_close(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Await this when the session is closed: to close the connections of its summariser, say."""
        self._shared.at_close.append(closing)

    def on(self, name: str, callback: Callback) -> Callable[[], None]:
        """Call back whenever something happens: `compacted`, `draft_ready`, `warning` ..., or `*` for all.

        The callback gets one struct of `foldline.session.events`; a coroutine function runs beside the
        session. One that raises is logged. Returns a function that ends it; raises InputError for an unknown
        name.
        """
        return self._shared.events.on(name, callback)

    def before_compaction(self, hook: Hook) -> Callable[[], None]:
        """Call a hook before every compaction is made, a draft or a preview too; returns what ends that.

        It gets a `PlannedCompaction` and returns None, a text for the summary to look at first, or `Blocked`:
        then none is made. It may be a coroutine function. What it raises fails the compaction.
        """
        return self._shared.hooks.before(hook)

    # ---- reading

    @property
    def setup(self) -> Setup:
        """How the session is kept: its model's window, its policy, and what is sent beside its messages."""
        return self._shared.model.setup

    @property
    def policy(self) -> Policy:
        """The policy by which the session is folded, fitted to its model; `use_policy` changes it."""
        return self.setup.policy

    @property
    def summarizer(self) -> Summarizer:
        """Who writes the summaries, but for a call that brings another one (`summaries_by`)."""
        return self._shared.own_summarizer

    @summarizer.setter
    def summarizer(self, summarizer: Summarizer) -> None:
        self._shared.own_summarizer = summarizer

    def make_drafts_by(self, jobs: DraftJobs) -> None:
        """Have the drafts of the session made so from now on: by default by this process, for itself."""
        self._shared.jobs = jobs

    @property
    def compacting(self) -> bool:
        """Whether a compaction is being made that the next `context` waits for; a draft is none."""
        return self._compactor.busy

    @property
    def max_tokens(self) -> int | None:
        """After an overflow: the most that the next reply may take; None where there is no limit."""
        return self._shared.reply.max_tokens

    @property
    def leaf(self) -> str | None:
        """The id of the newest entry on the path."""
        return self._shared.cursor.leaf

    @property
    def dialect(self) -> str:
        """The dialect of the view: the one asked for, or the newest message's."""
        return self._shared.view.dialect

    @property
    def system(self) -> Any:
        """The system prompt to send beside `context`, where the dialect keeps it apart."""
        return self._shared.view.system

    @property
    def in_turn(self) -> bool:
        """Whether messages of one role in a row are joined in the view, as chat templates want it."""
        return self._shared.model.in_turn

    @property
    def view_tokens(self) -> int:
        """The size of the view by Foldline's own count, system prompt and tools included."""
        return self._shared.model.view_tokens

    @property
    def pins(self) -> tuple[Pin, ...]:
        """The pinned messages: their entries, and the text that every view holds of them."""
        return tuple(self._shared.cursor.state.pins.values())

    @property
    def cache(self) -> Cache:
        """What the provider's cache holds of the next request, as the newest reply's usage tells."""
        return self._shared.view.cache

    def view(self) -> list[Item]:
        """Return the view as it stands; nothing is compacted."""
        return self._shared.cursor.state.view()

    def prefix(self) -> Call:
        """Return the session's next request as it stands, with system prompt and tools; compacts nothing."""
        view = self._shared.view
        return Call(messages=view.messages(), system=view.system, tools=self.setup.tools)

    async def follow(self) -> str | None:
        """Read what other writers have appended since, and return the leaf; an `append` follows it then."""
        await self._shared.follow()
        return self.leaf

    async def history(self) -> list[Any]:
        """Return every message of the path, folded ones included, as received."""
        return await self._shared.view.history()

    async def stats(self) -> Stats:
        """Return the session's figures."""
        await self._shared.follow()
        return await self._shared.view.stats()

    async def display_summary(self) -> str:
        """Return two sentences for a list of sessions: what was done, and what is open.

        Written by the session's summariser, else by code; nothing is appended.
        """
        return await self._compactor.display()

    async def verify(self) -> list[str]:
        """Return what is wrong with the session as it is stored; [] proves it whole."""
        return await self.store.verify(self.id)

    async def export(self, form: str = "jsonl", *, view: bool = False) -> bytes:
        """Return the session in a form of `foldline export`: `jsonl` is every entry of the path, lossless.

        With `view`, what the model is sent instead of all that was said (`jsonl`: in the session's dialect).
        Raises InputError for an unknown form.
        """
        await self._shared.load()
        return await self._shared.view.export(form, view=view)

    # ---- appending

    async def append(self, *messages: Any) -> list[str]:
        """Append messages, SDK replies or dicts in one commit; return their entry ids.

        Durable when it returns. A reply's usage is read. Where calls are still open and the user speaks,
        results that say so are appended first. What the policy does behind a reply or an append is done in
        the background: `settled` waits for it. Raises LeafMoved where somebody else said something since.
        """
        return await self._appends.say(messages)

    async def settled(self) -> None:
        """Wait for background work: a look at the triggers behind an append, a compaction, a draft.

        Nothing has to: the session can be used meanwhile. What fails there is told by events, not raised.
        """
        await self._triggers.settled()

    async def commit_draft(self) -> Receipt | None:
        """Commit the summary that was drafted in the background now, not when the view no longer fits.

        For a session that is about to be closed: what a model wrote would be lost. Waits while one is still
        written. None where there is none, where the path has left it, or while tool calls wait for results.
        """
        return await self._triggers.commit_draft()

    def cancel_compaction(self) -> bool:
        """Cancel the compaction that goes on behind a message, and return whether one did.

        The session is as it was; the triggers are looked at again before the next request. One that somebody
        waits for is cancelled by cancelling that, and a draft goes on.
        """
        return self._triggers.checks.cancel()

    # ---- context

    async def context(self, *, shared: bool = False) -> ContextMessages:
        """Return the messages to send, in the session's dialect; compacts first if the policy says so.

        A list that knows which view it is: hand it to `overflowed`. What other writers have said is in it. A
        summary that was drafted in the background is committed here; only where none is ready and the view
        would not fit is one waited for. The messages are the caller's to change; `shared` ones are not, which
        saves copying a long view. Raises CallsOpen while tool calls wait for their results, FloorExceeded
        where nothing can help.
        """
        while True:
            async with self._shared.locked() as cursor:
                if cursor.state.open_calls:
                    raise CallsOpen(tuple(cursor.state.open_calls))
                wait = await self._triggers.look()
                if wait is None:
                    await self._triggers.carry_on()
                    size = self._shared.model.trigger_size(cursor.state)
                    self._shared.reply.look_ahead(size, self.setup.window)
                    return self._shared.view.hand_out(shared=shared)
            await wait()

    async def overflowed(
        self, seen: Any, *, view: list[Any] | None = None, max_tokens: int | None = None
    ) -> ContextMessages:
        """Return the messages to send after a request that did not fit, compacted where that is what helps.

        `seen` is what the provider raised (an SDK's exception or a ProviderError), or a reply that is an
        overflow in disguise, one that the window cut short included; any other error is raised again,
        InputError for any other reply. `view` is the list that was sent, as `context` or this method returned
        it (default: the newest that was handed out); where its view has been folded since, the newer one is
        returned as it is, whichever task or thread asks. `max_tokens` is what the request asked for: where a
        smaller one fits, the messages stay as they are and `session.max_tokens` says which to send. Compacts
        once for a user message, and again only when the model has replied since. Raises OverflowRemains with
        what cannot be removed where nothing helps any more, and what was raised where the policy forbids to
        mend it. An error in which a chat template asks for user and assistant in turn is mended as well: from
        then on messages of one role in a row are joined.
        """
        await self._mender.mend(seen, max_tokens, self._shared.view.asked_with(view))
        async with self._shared.locked() as cursor:
            if cursor.state.open_calls:
                raise CallsOpen(tuple(cursor.state.open_calls))
            return self._shared.view.hand_out()

    async def use_model(
        self,
        model: str | None,
        *,
        window: int | Window | None = None,
        dialect: str | None = None,
        tools: Any = None,
    ) -> None:
        """Go on with another model; before its first request the view is made to fit a smaller window.

        `dialect` is what `context` returns from now on, `tools` the definitions in it (default: as before).
        """
        check_model(model)
        if model is not None:
            self.setup.catalogue.check(model)
        check_window(window)
        check_text("dialect", dialect)
        check_tools(tools)
        async with self._shared.locked():
            self._shared.model.speak(dialect, tools)
            await self._compactor.use_model(model, window)
            self._shared.reply.forget()
            if self._choice is not None:
                self._choice.use_model(self.setup.info)

    async def use_policy(self, policy: str | Policy) -> None:
        """Go on by another policy from the next request on; a draft by the one before is dropped.

        `policy` is a preset, one of the settings, a `.toml` file or a `Policy`. Raises PolicyError for any
        other.
        """
        rules = settings().find_policy(policy)
        async with self._shared.locked():
            before = self.setup.policy.summary_model
            await self._compactor.use_policy(rules)
            if self._choice is not None and self.setup.policy.summary_model != before:
                self._choice.use_policy()

    # ---- boundaries

    async def compact(
        self,
        instructions: str | None = None,
        *,
        target: int | None = None,
        reason: Literal["manual", "agent"] = "manual",
    ) -> Receipt | Nothing:
        """Compact now, by hand; returns the receipt, or why there was nothing to do.

        `instructions` say what the summary should look at; `target` is a budget in tokens for the view;
        `reason` is `agent` where the model asked for it. A draft in the making is dropped. The session can be
        used meanwhile: what is said stays in order behind the boundary's cut.
        """
        await self._shared.follow()
        await self._triggers.stop()
        return await self._compactor.compact(reason if target is None else "target", instructions, target)

    async def preview(
        self, instructions: str | None = None, *, target: int | None = None
    ) -> Preview | Nothing:
        """Return what `compact` would append, and append nothing; `commit` appends that very boundary."""
        await self._shared.follow()
        await self._triggers.stop()
        return await self._previews.make(instructions, target)

    async def commit(self, preview: Preview, *, summary: str | None = None) -> Receipt | Nothing:
        """Append the boundary that a preview showed, with pins and live state as they are now.

        `summary` is its summary as the user edited it: a standing constraint that was taken out no longer
        stands. What was said since stays behind the boundary's cut. Nothing, and why, where it no longer fits
        the path: a boundary came since, or it would gain nothing. Raises InputError for an empty summary.
        """
        await self._shared.follow()
        await self._triggers.stop()
        return await self._previews.commit(preview, summary)

    async def undo(self) -> str | None:
        """Undo the newest compaction or prune; what was said since stays. Returns its id, None without one.

        The checkpoint that a hand-off began with stays: what it stands for is in the other session.
        """
        undone = await self._tree.undo()
        if undone is not None:  # a draft of the path as it was is void
            await self._compactor.drafts.stop()
        return undone

    async def redo(self) -> str | None:
        """Take back the newest undo. Returns the boundary's id; None without one, or if a newer counts."""
        return await self._tree.redo()

    async def pin(self, at: str) -> None:
        """Pin a message, tool results and calls too: every later view holds its text word for word.

        Raises InputError for an id that is no message of the session.
        """
        await self._appends.pin(at)

    async def unpin(self, at: str) -> None:
        """Take a pin away; from the next boundary on the entry is folded like any other."""
        await self._appends.unpin(at)

    async def note(self, kind: str, **data: Any) -> None:
        """Note something about the session, such as its title."""
        await self._appends.note(kind, data)

    async def track_files(
        self,
        *,
        read: Sequence[str] = (),
        created: Sequence[str] = (),
        modified: Sequence[str] = (),
        deleted: Sequence[str] = (),
    ) -> None:
        """Note files that your own tracker saw: the next checkpoint lists them with the others."""
        files: dict[Status, Sequence[str]] = {
            "read": read,
            "created": created,
            "modified": modified,
            "deleted": deleted,
        }
        await self._appends.track_files(files)

    # ---- the tree

    async def branches(self) -> list[Branch]:
        """Return the branches of the session's tree, the newest first; reads every entry."""
        return await self._tree.branches()

    async def branch(
        self, at: str | None, *, summarize: bool = False, instructions: str | None = None
    ) -> str | None:
        """Continue from an entry of the session; what is left stays as a branch. None: before the first.

        With `summarize`, a summary of what is left is appended, as data; `instructions` say what it should
        look at. Returns the new leaf. Raises InputError for no entry of the session, LeafMoved where somebody
        else appended meanwhile.
        """
        return await self._tree.branch(at, summarize=summarize, instructions=instructions)

    async def rewind(self, at: str | None = None) -> Rewound:
        """Go back to before a message of the user's (default: the newest) and hand its text back for editing.

        What is left stays as a branch: `branch(rewound.left)` returns to it. Raises InputError where the
        entry is not a message of the user's.
        """
        return await self._tree.rewind(at)

    # ---- other sessions

    async def handoff(
        self, goal: str | None = None, *, to: str | None = None, text: str | None = None
    ) -> Self:
        """Begin a new session for a goal (default: the newest request) with what serves it here.

        It starts with a checkpoint: the user's rules, pins and live state go over; this session stays as it
        is. `to` is its id, `text` the checkpoint as the user edited it (see `preview_handoff`). Both sessions
        share a store. Raises InputError where nothing was said yet or the id is taken, FloorExceeded.
        """
        return self._sibling(await self._links.handoff(goal, to, text), self.setup)

    async def preview_handoff(self, goal: str | None = None) -> str:
        """Return the checkpoint's summary that `handoff` would write, for editing; begins nothing."""
        return await self._links.preview_handoff(goal)

    async def fork(self, to: str | None = None, *, at: str | None = None) -> Self:
        """Begin a new session with a copy of the path up to an entry (default: the leaf).

        `to` is its id. Holds the path in memory and writes it in one commit. Raises InputError where the id
        is taken, for no entry of the session, and where nothing was said yet.
        """
        return self._sibling(await self._links.fork(to, at), self.setup)

    async def subagent(self, goal: str, *, to: str | None = None) -> Self:
        """Begin a session of a sub-agent, linked to this one; `to` is its id.

        No threshold compacts it, an overflow does. Until `finished(id)` it stands in the live state as
        running. Raises InputError where the id is taken.
        """
        session = await self._links.subagent(goal, to)
        return self._sibling(session, msgspec.structs.replace(self.setup, subagent=True))

    async def finished(self, session: str) -> None:
        """Say that a sub-agent has ended: it no longer stands in the live state."""
        await self._links.finished(session)

    async def links(self) -> list[Link]:
        """Return the sessions that this one came from or led to; reads the path."""
        return await self._links.all()

    def _sibling(self, session: str, setup: Setup) -> Self:
        """Return another session of the store, with its own summariser: each learns from its session."""
        follows = self._choice is not None and self._choice.stands
        return type(self)(
            self.store,
            session,
            setup,
            summarizer=copy(self.summarizer),
            summary_model=self.setup.info if follows else None,
        )

    # ---- recall

    async def recall(
        self, query: str, limit: int = 20, *, sessions: Sequence[str] | None = None
    ) -> list[Hit]:
        """Search what was said, folded messages included; then in sessions handed off to this one.

        With `sessions`, search those of the same store instead. Raises InputError for a session that is not
        there.
        """
        return await self._recall.search(query, limit, sessions)

    async def read(
        self, entry: str, offset: int = 0, limit: int = PASSAGE, *, session: str | None = None
    ) -> Passage:
        """Read a message as text, `limit` characters from `offset`; `session` names another session.

        Raises InputError for an unknown message or session.
        """
        return await self._recall.read(entry, offset, limit, session)

    async def constraints(self) -> Rules:
        """Return the user's standing rules, and those that a later sentence ended.

        The first call reads the path, later ones what was added to it.
        """
        await self._shared.follow()
        return await self._rules.read()

    async def entries(self, limit: int | None = None, before: str | None = None) -> list[EntryInfo]:
        """Return the path's messages, oldest first: ids, sizes, and whether kept, folded or pinned.

        The newest `limit` of them (default: all); `before` goes on backwards from an entry. Reads the path.
        """
        return await self._recall.entries(limit, before)

    async def folded(self, limit: int = 50, before: str | None = None) -> list[EntryInfo]:
        """Return what the view does not show as received, oldest first; `before` pages backwards."""
        return await self._recall.folded(limit, before)

    def tools(self, *, compact: bool = False, stats: bool = False) -> list[dict[str, Any]]:
        """Return definitions of the recall tools in the session's dialect, to be sent beside your own.

        With `compact` also one by which the model asks for a compaction, with `stats` one that tells it how
        full its window is. They count in the view from now on.
        """
        return self._tools.offered(compact=compact, stats=stats)

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> str:
        """Run a tool of `tools` that the model called; return its result as text, 2,500 tokens at most.

        `arguments` is the parsed object or its JSON. Wrong ones are answered with words for the model;
        InputError is raised for any other tool's name.
        """
        return await self._tools.call(name, arguments)

    # ---- state

    def attach(self, name: str, render: Render) -> Callable[[], None]:
        """Have live state, such as `todos`, rendered into every checkpoint to come; returns what ends that.

        `render` returns a text (None or "": there is none now), or is a coroutine function. The checkpoint
        holds it frozen until the next boundary. Raises InputError for a name that is not short.
        """
        return self._shared.live.attach(name, render)

    async def live(self) -> dict[str, str]:
        """Return the live state as it is now, by name: what the next boundary would freeze."""
        await self._shared.load()
        return {one.name: one.text for one in await self._shared.live.now(self._shared.cursor.state)}

    async def standing(self) -> Continuation:
        """Return where the session stands: mid_tool (the model goes on), waiting for the user, or done."""
        await self._shared.load()
        return continuation_of(self._shared.cursor.state)
