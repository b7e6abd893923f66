"""A stored session: append, context, append. Loads, asks the core, appends what it answers; the only writer.

The session holds what its view needs, never its whole history.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from copy import copy
from io import BytesIO
from itertools import chain
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

from foldline import exports
from foldline.core.decide.ask import Nothing
from foldline.core.decide.price import Cache
from foldline.core.log.entries import Boundary, Compacted, Lifted, Noted, Pinned, Receipt, Said
from foldline.core.log.messages import Message
from foldline.core.measure.window import Window
from foldline.core.view import Item, Kept, native_items, sized
from foldline.dialects import get
from foldline.dialects.dialect_of import join_system
from foldline.dialects.native_view import NativeView
from foldline.errors import CallsOpen, InputError
from foldline.providers.base import Call
from foldline.session.compactor import Compactor
from foldline.session.cursor import Cursor
from foldline.session.economy import cache_of
from foldline.session.events import Callback, Events, MessageAdded, PinChanged, Redone, Undone
from foldline.session.incoming import read
from foldline.session.lifting import to_redo, to_undo
from foldline.session.links import is_start
from foldline.session.mending import mend
from foldline.session.methods import Methods
from foldline.session.overflow import Shorter
from foldline.session.setup import Setup, Stats
from foldline.session.state import LiveState
from foldline.session.summarizer_choice import SummarizerChoice, asked_in
from foldline.stores.base import Store
from foldline.summarizers.base import Summarizer
from foldline.summarizers.model import ModelSummarizer
from foldline.summarizers.offline import OfflineSummarizer
from foldline.transcripts import dump

__all__ = ["Session", "Setup", "Stats"]


class Session(Methods):
    """One conversation in a store; make it with `foldline.open`."""

    def __init__(
        self,
        store: Store,
        session: str,
        setup: Setup,
        *,
        summarizer: Summarizer | None = None,
        owns_store: bool = False,
    ) -> None:
        self.id = session
        self.store = store
        self.max_tokens: int | None = None  # after an overflow: the most that the next reply may take
        self._shorter: Shorter | None = None  # the reply that made a request fit which did not
        self._ahead = False  # whether `max_tokens` was worked out, not told by a provider
        self._owns_store = owns_store
        self._log = Cursor(store, session, setup.counter)
        self._events = Events(session)
        written = summarizer or OfflineSummarizer(setup.counter)
        self._compactor = Compactor(self._log, setup, self._events, written)
        self._lock = self._compactor.lock
        self._live = LiveState()
        self._compactor.asking = self._live.onto
        self._growing = NativeView()
        self._began = False
        self._closing: list[Callable[[], Awaitable[None]]] = []
        self._shown: WeakKeyDictionary[asyncio.Task[Any], tuple[str, ...]] = WeakKeyDictionary()
        self._writers: SummarizerChoice | None = None

    async def __aenter__(self) -> Self:
        async with self._lock:
            await self._ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the session: a draft in the making is dropped; the store is closed if `foldline.open` opened it."""
        async with AsyncExitStack() as stack:  # in this order from the last on, whatever fails
            if self._owns_store:
                stack.push_async_callback(self.store.close)
            for closing in self._closing:
                stack.push_async_callback(closing)
            self._closing = []
            await self._compactor.drafts.stop()
            await self._events.drain()

    def at_close(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Await this when the session is let go of: to close the connections of its summariser, say."""
        self._closing.append(closing)

    def written_by(self, writers: SummarizerChoice) -> None:
        """Have the summaries written by whatever model the session goes on with, until `summarizer` is set."""
        self._writers = writers

    async def _ready(self, *, follow: bool = True) -> None:
        """Load the session at its first use, then, to `follow`, what others have written; the lock is held."""
        await (self._log.follow() if follow else self._log.ready())
        if self._log.strange and follow:
            self._log.strange = False
            self._compactor.caught_up()
        if not self._began:
            self._began = True
            self._compactor.begin()

    def on(self, name: str, callback: Callback) -> Callable[[], None]:
        """Call back whenever something happens: `compacted`, `draft_ready`, `warning` ..., or `*` for everything.

        The callback gets one struct of `foldline.session.events`; a coroutine function runs beside the session. One that
        raises is logged. Returns a function that ends it; raises InputError for a name there is none of.
        """
        return self._events.on(name, callback)

    # ---- reading

    @property
    def leaf(self) -> str | None:
        """The id of the newest entry on the path."""
        return self._log.leaf

    @property
    def dialect(self) -> str:
        """The dialect of the view: the one asked for, or the newest message's."""
        if self.setup.dialect:
            return self.setup.dialect
        fold = self._log.fold
        entries = chain(reversed(fold.kept), reversed(fold.quoted), reversed(fold.leading))
        newest = next((e.message.native for e in entries if e.message.native is not None), None)
        return newest.dialect if newest is not None else self._log.dialect or "openai-chat"

    @property
    def system(self) -> Any:
        """What to send as system prompt beside `context`, where the dialect keeps it apart: given and recorded."""
        leading = [Kept(entry, self._log.fold.edits.get(entry.id, ())) for entry in self._log.fold.leading]
        return join_system(self.setup.system, get(self.dialect).render(native_items(leading)).system)

    @property
    def view_tokens(self) -> int:
        """The size of the view by Foldline's own count, system prompt and tools included."""
        apart = self.setup.apart
        return apart.system + apart.tools + self._log.fold.tokens

    def view(self) -> list[Item]:
        """Return the view as it stands; nothing is compacted."""
        return self._log.fold.view()

    async def history(self) -> list[Any]:
        """Return every message of the path, folded ones included, as received."""
        found: list[Message] = [e.message async for e in self.store.path(self.id) if isinstance(e, Said)]
        return get(self.dialect).render([(message, ()) for message in found]).messages

    async def stats(self) -> Stats:
        """Return the session's figures."""
        async with self._lock:
            await self._ready()
        total = compactions = 0
        async for entry in self.store.path(self.id):
            total += isinstance(entry, Said)
            compactions += isinstance(entry, Compacted)
        categories: dict[str, int] = {}
        for name, tokens in sized(self._log.fold.view()):
            categories[name] = categories.get(name, 0) + tokens
        return Stats(
            total_messages=total,
            active_messages=self._log.fold.messages,
            summaries=compactions,
            compression_ratio=round(self._log.fold.messages / total, 4) if total else 1.0,
            view_tokens=self.view_tokens,
            usable=self._compactor.ask("manual").usable,
            by_category=categories,
            open_calls=self._log.fold.open_calls,
        )

    async def verify(self) -> list[str]:
        """Return what is wrong with the session as it is stored; [] proves it whole."""
        return await self.store.verify(self.id)

    async def export(self, form: str = "jsonl", *, view: bool = False) -> bytes:
        """Return the session in a form of `foldline export`: `jsonl` is every entry of the path, lossless.

        With `view`, what the model is sent instead of all that was said (`jsonl`: in the session's dialect).
        Raises InputError for a form that is not known.
        """
        await self._loaded()
        stream = BytesIO()
        if form == exports.OWN and not view:
            dump([entry async for entry in self.store.path(self.id)], stream, session=self.id, leaf=self.leaf)
        else:
            name = self.dialect if form == exports.OWN else form
            wish = exports.ExportWish(name, view=view, model=self.setup.model)
            await exports.export_stored(self.store, self.id, wish, stream.write)
        return stream.getvalue()

    # ---- appending

    async def append(self, *messages: Any) -> list[str]:
        """Append messages, SDK replies or dicts in one commit; return their entry ids.

        Durable when it returns. A reply's usage is read. Where calls are still open and the user speaks,
        results that say so are appended first. Raises LeafMoved where somebody else said something since.
        """
        async with self._lock:
            await self._ready(follow=False)  # who appends has seen what was there, not what came since
            found = read(
                messages, dialect=self.setup.dialect, usual=lambda: self.dialect, seed=str(self.leaf)
            )
            entries = await self._log.say(found)
            if entries:
                self._heard(entries)
            own = {id(message) for message in found}
            return [entry.id for entry in entries if id(entry.message) in own]

    def _heard(self, entries: Sequence[Said]) -> None:
        """Learn from what was appended, and say that it was."""
        compactor = self._compactor
        compactor.calibrator.said(self._log.fold, compactor.apart)
        compactor.triggers.said([entry.message for entry in entries])
        if any(entry.message.role == "assistant" for entry in entries):
            self.max_tokens = None
        roles = tuple(entry.message.role for entry in entries)
        self._events.emit(MessageAdded(entries=tuple(entry.id for entry in entries), roles=roles))

    # ---- context

    async def context(self) -> list[Any]:
        """Return the messages to send, in the session's dialect; compacts first if the policy says so.

        What other writers have said is in them. A summary that was drafted in the background is committed here; only
        where none is there yet and the view would not fit is one waited for. Raises CallsOpen while tool calls wait
        for their results, FloorExceeded where nothing can help.
        """
        while True:
            async with self._lock:
                await self._ready()
                if self._log.fold.open_calls:
                    raise CallsOpen(self._log.fold.open_calls)
                wait = self._wished() or await self._compactor.look()
                if wait is None:
                    await self._carry_on()
                    self._see_to_the_reply()
                    return self._handed_out()
            await wait()

    def _see_to_the_reply(self) -> None:
        """After an overflow that a shorter reply mended, say ahead how long the next one may be."""
        if self._shorter is not None and (self.max_tokens is None or self._ahead):
            size = self._compactor.triggers.size(self._log.fold)
            self.max_tokens, self._ahead = self._shorter.fitting(size, self.setup.window), True

    def _handed_out(self) -> list[Any]:
        """Return the messages, and remember what the task that asks has of them."""
        task = asyncio.current_task()
        if task is not None:
            self._shown[task] = self._log.fold.boundaries
        return self._messages()

    def _messages(self) -> list[Any]:
        return self._growing.messages(self.dialect, self._log.fold.items())

    @property
    def cache(self) -> Cache:
        """What the provider's cache holds of the next request, as the newest reply's usage tells."""
        return cache_of(self._log.fold, self.dialect, time.time())

    def prefix(self) -> Call:
        """Return the session's own next request as it stands: messages, system prompt and tools; nothing is compacted."""
        return Call(messages=self._messages(), system=self.system, tools=self.setup.tools)

    async def overflowed(self, seen: Any, *, max_tokens: int | None = None) -> list[Any]:
        """Return the messages to send after a request that did not fit, compacted where that is what helps.

        `seen` is what the provider raised (an SDK's exception or a ProviderError), or a reply that is an overflow in
        disguise, one that the window cut short included; any other error is raised again, InputError for any other
        reply. `max_tokens` is what the request asked for: where a smaller one fits, the messages stay as they are
        and `session.max_tokens` says which to send. Compacts once for a user message, and again only when the model
        has replied since; what was folded since this task was given its view needs no more. Raises OverflowRemains
        with what cannot be removed where nothing helps any more, and what was raised where the policy forbids to
        mend it.
        """
        task, hint = asyncio.current_task(), self.max_tokens
        shown = self._shown.get(task) if task is not None else None
        reply = await mend(self._compactor, self._ready, seen, max_tokens, hint, shown=shown)
        self._shorter = reply or self._shorter
        self.max_tokens, self._ahead = reply.max_tokens if reply else None, False
        async with self._lock:
            await self._ready()
            if self._log.fold.open_calls:
                raise CallsOpen(self._log.fold.open_calls)
            return self._handed_out()

    async def use_model(self, model: str | None, *, window: int | Window | None = None) -> None:
        """Go on with another model; before its first request the view is made to fit a smaller window."""
        async with self._lock:
            await self._ready()
            await self._compactor.use_model(model, window)
            self._shorter = self.max_tokens = None
            if self._writers is not None:
                self._writers.use_model(self, self.setup.info)

    # ---- boundaries

    async def compact(
        self,
        instructions: str | None = None,
        *,
        target: int | None = None,
        reason: Literal["manual", "agent"] = "manual",
    ) -> Receipt | Nothing:
        """Compact now, by hand; returns the receipt, or why there was nothing to do.

        `instructions` say what the summary should look at; `target` is a budget in tokens for the view; `reason` is
        `agent` where the model asked for it. A draft in the making is dropped. The session can be used meanwhile:
        what is said stays in order behind the boundary's cut.
        """
        async with self._lock:
            await self._ready()
        return await self._compactor.compact(reason if target is None else "target", instructions, target)

    async def preview(
        self, instructions: str | None = None, *, target: int | None = None
    ) -> Boundary | Nothing:
        """Return what `compact` would append, and append nothing."""
        async with self._lock:
            await self._ready()
        return await self._compactor.preview(instructions, target)

    async def undo(self) -> str | None:
        """Undo the newest compaction or prune; what was said since stays. Returns its id, None without one.

        The checkpoint that a hand-off began with stays: what it stands for is in the other session.
        """
        async with self._lock:
            await self._ready()
            found = to_undo(self._log.fold)
            if found is not None and await is_start(self.store, self.id, found):
                found = None
            return await self._lift(found, lift=True)

    async def redo(self) -> str | None:
        """Take back the newest undo. Returns the boundary's id, None where nothing is undone or a newer one counts."""
        async with self._lock:
            await self._ready()
            return await self._lift(to_redo(self._log.fold), lift=False)

    async def _lift(self, target: str | None, *, lift: bool) -> str | None:
        if target is not None:
            await self._log.write(Lifted("", None, target, lift, at=time.time()))
            self._compactor.triggers.tried(self._log.fold, in_vain=False)
            self._compactor.undone()
            self._events.emit(Undone(entry=target) if lift else Redone(entry=target))
        return target

    async def pin(self, at: str) -> None:
        """Pin an entry: every later view holds its text word for word."""
        async with self._lock:
            await self._ready()
            entry = await self.store.entry(self.id, at)
            if not isinstance(entry, Said) or not entry.message.text:
                raise InputError(f"entry {at} holds no text that could be pinned")
            await self._log.write(Pinned("", None, at, on=True, text=entry.message.text, at=time.time()))
            self._events.emit(PinChanged(entry=at))

    async def unpin(self, at: str) -> None:
        """Take a pin away; from the next boundary on the entry is folded like any other."""
        async with self._lock:
            await self._ready()
            await self._log.write(Pinned("", None, at, on=False, at=time.time()))
            self._events.emit(PinChanged(entry=at, on=False))

    async def note(self, kind: str, **data: Any) -> None:
        """Note something about the session, such as its title."""
        async with self._lock:
            await self._ready()
            await self._log.write(Noted("", None, kind, data, at=time.time()))

    def _sibling(self, session: str, setup: Setup) -> Self:
        made, written = type(self)(self.store, session, setup), copy(self.summarizer)
        if isinstance(written, ModelSummarizer):
            asked_in(made, written)
        made.summarizer = written
        if self._writers is not None and self.summarizer is self._writers.chosen:
            made.written_by(SummarizerChoice(written))
        return made
