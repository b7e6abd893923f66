"""A stored session: append, context, append. Loads, asks the core, appends what it answers; the only writer.

The session holds what its view needs, never its whole history.
"""

from __future__ import annotations

import asyncio
import time
from io import BytesIO
from itertools import chain
from typing import Any, Self

import msgspec

from foldline import exports
from foldline.core.decide.ask import Ask, Nothing, Reason
from foldline.core.decide.triggers import Refuse
from foldline.core.log.entries import Boundary, Compacted, Lifted, Noted, Pinned, Receipt, Said
from foldline.core.log.messages import Message
from foldline.core.plan import plan
from foldline.core.view import Item, Kept, native_items, sized
from foldline.dialects import get
from foldline.dialects.growing import Growing
from foldline.dialects.whose import joined
from foldline.errors import CallsOpen, FloorExceeded, InputError
from foldline.executor import execute
from foldline.live.lifting import to_redo, to_undo
from foldline.live.reading import read
from foldline.live.setup import Setup, Stats
from foldline.live.triggers import Triggers, ask_of
from foldline.stores.base import Hit, Store
from foldline.summarizers.base import Summarizer
from foldline.summarizers.offline import OfflineSummarizer
from foldline.transcripts import dump
from foldline.writer import Writer

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
        owns_store: bool = False,
    ) -> None:
        self.id = session
        self.store = store
        self.setup = setup
        self.summarizer: Summarizer = summarizer or OfflineSummarizer(setup.counter)
        self._owns_store = owns_store
        self._log = Writer(store, session, setup.counter)
        self._triggers = Triggers(setup)
        self._growing = Growing()
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._log.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the session; the store is closed if `foldline.open` opened it."""
        if self._owns_store:
            await self.store.close()

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
        return joined(self.setup.system, get(self.dialect).render(native_items(leading)).system)

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
        await self._log.ready()
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
            usable=self._ask("manual").usable,
            by_category=categories,
            open_calls=self._log.fold.open_calls,
        )

    async def recall(self, query: str, limit: int = 20) -> list[Hit]:
        """Search what was said in this session, folded messages included."""
        return await self.store.search(query, self.id, limit, on_path=True)

    async def verify(self) -> list[str]:
        """Return what is wrong with the session as it is stored; [] proves it whole."""
        return await self.store.verify(self.id)

    async def export(self, form: str = "jsonl", *, view: bool = False) -> bytes:
        """Return the session in a form of `foldline export`: `jsonl` is every entry of the path, lossless.

        With `view`, what the model is sent instead of all that was said (`jsonl`: in the session's dialect).
        Raises InputError for a form that is not known.
        """
        await self._log.ready()
        stream = BytesIO()
        if form == exports.OWN and not view:
            dump([entry async for entry in self.store.path(self.id)], stream, session=self.id, leaf=self.leaf)
        else:
            name = self.dialect if form == exports.OWN else form
            wish = exports.Wish(name, view=view, model=self.setup.model)
            await exports.export_stored(self.store, self.id, wish, stream.write)
        return stream.getvalue()

    # ---- appending

    async def append(self, *messages: Any) -> list[str]:
        """Append messages, SDK replies or dicts in one commit; return their entry ids.

        Durable when it returns. A reply's usage is read. Where calls are still open and the user speaks,
        results that say so are appended first. Raises LeafMoved where somebody else said something since.
        """
        async with self._lock:
            await self._log.ready()
            found = read(
                messages, dialect=self.setup.dialect, usual=lambda: self.dialect, seed=str(self.leaf)
            )
            entries = await self._log.say(found)
            if entries:
                self._triggers.said(entries[-1].message)
            own = {id(message) for message in found}
            return [entry.id for entry in entries if id(entry.message) in own]

    # ---- context

    def _ask(self, reason: Reason, instructions: str | None = None, target: int | None = None) -> Ask:
        return ask_of(self.setup, self._log.fold, reason, instructions, target)

    async def context(self) -> list[Any]:
        """Return the messages to send, in the session's dialect; compacts first if the policy says so.

        Raises CallsOpen while tool calls wait for their results, FloorExceeded where nothing can help.
        """
        async with self._lock:
            await self._log.ready()
            if self._log.fold.open_calls:
                raise CallsOpen(self._log.fold.open_calls)
            await self._stay_inside()
            return self._growing.messages(self.dialect, self._log.fold.items())

    async def _stay_inside(self) -> None:
        """Compact if a trigger was exceeded; one that gained too little is tried again when the view has grown."""
        triggers, fold = self._triggers, self._log.fold
        due = triggers.due(fold)
        if isinstance(due, Refuse):
            raise FloorExceeded(due.floor, due.usable, due.breakdown)
        triggers.looked()
        if due is None:
            return
        ask = self._ask("model_switch" if due.reason == "model_switch" else "threshold")
        if triggers.worth_a_try(fold, ask.usable):
            outcome = await self._compact(ask)
            triggers.tried(self._log.fold, in_vain=isinstance(outcome, Nothing))

    # ---- boundaries

    async def compact(
        self, instructions: str | None = None, *, target: int | None = None
    ) -> Receipt | Nothing:
        """Compact now, by hand; returns the receipt, or why there was nothing to do.

        `instructions` say what the summary should look at; `target` is a budget in tokens for the view.
        """
        async with self._lock:
            await self._log.ready()
            return await self._compact(
                self._ask("manual" if target is None else "target", instructions, target)
            )

    async def preview(
        self, instructions: str | None = None, *, target: int | None = None
    ) -> Boundary | Nothing:
        """Return what `compact` would append, and append nothing."""
        async with self._lock:
            await self._log.ready()
            ask = self._ask("manual" if target is None else "target", instructions, target)
            return await execute(plan(self._log.fold, ask, self.setup.counter), self.summarizer)

    async def _compact(self, ask: Ask) -> Receipt | Nothing:
        started, seen = time.perf_counter(), self._log.leaf
        outcome = await execute(plan(self._log.fold, ask, self.setup.counter), self.summarizer)
        if isinstance(outcome, Nothing):
            return outcome
        spent = round((time.perf_counter() - started) * 1000, 3)
        receipt = msgspec.structs.replace(outcome.receipt, duration_ms=spent)
        boundary = msgspec.structs.replace(outcome, receipt=receipt, at=time.time())
        if not await self._log.commit(boundary, seen):
            return Nothing("nothing_new", "another boundary came first")
        return receipt

    async def undo(self) -> str | None:
        """Undo the newest compaction or prune; what was said since stays. Returns its id, None without one."""
        async with self._lock:
            await self._log.ready()
            return await self._lift(to_undo(self._log.fold), lift=True)

    async def redo(self) -> str | None:
        """Take back the newest undo. Returns the boundary's id, None where nothing is undone or a newer one counts."""
        async with self._lock:
            await self._log.ready()
            return await self._lift(to_redo(self._log.fold), lift=False)

    async def _lift(self, target: str | None, *, lift: bool) -> str | None:
        if target is not None:
            await self._log.write(Lifted("", None, target, lift, at=time.time()))
            self._triggers.tried(self._log.fold, in_vain=False)
        return target

    async def pin(self, at: str) -> None:
        """Pin an entry: every later view holds its text word for word."""
        async with self._lock:
            await self._log.ready()
            entry = await self.store.entry(self.id, at)
            if not isinstance(entry, Said) or not entry.message.text:
                raise InputError(f"entry {at} holds no text that could be pinned")
            await self._log.write(Pinned("", None, at, on=True, text=entry.message.text, at=time.time()))

    async def unpin(self, at: str) -> None:
        """Take a pin away; from the next boundary on the entry is folded like any other."""
        async with self._lock:
            await self._log.ready()
            await self._log.write(Pinned("", None, at, on=False, at=time.time()))

    async def note(self, kind: str, **data: Any) -> None:
        """Note something about the session, such as its title."""
        async with self._lock:
            await self._log.ready()
            await self._log.write(Noted("", None, kind, data, at=time.time()))
