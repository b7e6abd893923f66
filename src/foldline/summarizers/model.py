"""Summaries written by a model: the cheapest way that works, then the next, then none.

The core checks each reply. This module makes as many calls as the range needs, retries transient failures,
takes smaller parts after an overflow, and gives up without raising, so that the receipt says why the offline
checkpoint was used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

import msgspec

from foldline.core.checkpoint.check import check
from foldline.core.checkpoint.request import FAILED, Prefix, SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import worded
from foldline.core.decide.price import Price, added, cost
from foldline.core.log.messages import Usage
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.errors import InputError, ProviderError
from foldline.providers.base import Call, Provider, Reply
from foldline.providers.retry import Patience, Retrying
from foldline.summarizers.base import QUOTED
from foldline.summarizers.candidate import LEAST_ROOM, Candidate, candidate, smaller
from foldline.summarizers.choose import SummaryWay, asked_in_session, choices
from foldline.summarizers.parts import split

log = logging.getLogger("foldline")

# Fewer retries than for a reply: the user may be waiting, and code can write the checkpoint instead.
PATIENCE: Final = Patience(attempts=4, timeout=120.0)
TIMEOUT: Final = 240.0  # seconds for one call: a slow model may write thousands of tokens
SHRINKS: Final = 5  # smaller ranges tried after overflows
PART_ATTEMPTS: Final = 2  # attempts at the summary of a part
REMEMBERED: Final = 16  # summaries of parts that are kept for a second attempt at the whole
HIT: Final = 0.5  # share of the expected cache that must be read from it

# After these errors the same model may accept another form of the request.
_OTHER_FORM: Final = frozenset({"overflow", "bad_request"})


OnText = Callable[[str | None], None]
"""Called with each piece of a summary while it is written, and with None when it starts anew."""


class _Unusable(Exception):
    """The reply for a part is not a summary."""


class _Tally:
    """The calls of one summary so far: usage, price, notes."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.price: float | None = None
        self.calls = 0
        self.parts = 1
        self.sent = 0  # tokens of the newest prompt
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def add(self, reply: Reply, price: Price | None) -> None:
        self.usage = added(self.usage, reply.usage)
        if reply.usage is not None and price is not None:
            self.price = (self.price or 0.0) + cost(reply.usage, price)


class ModelSummarizer:
    """Write summaries with a model.

    `provider` is the session's own model, with `window` and `price` (default: the catalogue's). `other` is a
    model only for summaries, which is used if it is cheaper. If one fails, the other is used. `timeout` is in
    seconds for one call, `patience` limits the retries, `notes` go into each receipt. If a summary request
    carries the session's next request to the same model, the summary may be written within the session, and
    the session's window applies.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        other: Provider | Candidate | None = None,
        counter: Counter = OFFLINE,
        window: Window | None = None,
        price: Price | None = None,
        patience: Patience | None = None,
        timeout: float = TIMEOUT,
        notes: Sequence[str] = (),
    ) -> None:
        self._own = candidate(provider, window=window, price=price)
        self._other = other if other is None or isinstance(other, Candidate) else candidate(other)
        self._counter = counter
        self._patience = patience or PATIENCE
        self._timeout = timeout
        self._notes = tuple(notes)
        self._rooms: dict[str, int] = {}  # of models that took less than their window
        self._parts: dict[Any, str] = {}
        self._cache_missed = False  # the provider's cache did not have the session's prefix

    @property
    def name(self) -> str:
        """The name of the session's own model."""
        return self._own.name

    @property
    def dialect(self) -> str:
        """The dialect of the session's own model."""
        return self._own.provider.dialect

    @property
    def price(self) -> Price | None:
        """The price of the session's own model; None if unknown."""
        return self._own.price

    async def decide(self, call: Call) -> tuple[Reply, float | None]:
        """Ask the session's own model as the session does; return its reply and its price in USD."""
        tally = _Tally()
        return await self._ask(self._own, call, 0, tally, None), tally.price

    async def close(self) -> None:
        """Close the connections of all models."""
        for model in (self._own, self._other):
            if model is not None:
                await model.provider.close()

    async def summarize(self, request: SummaryRequest) -> SummaryReply:
        """Write the requested summary; a reply whose `stop` is "failed" says that no model could.

        Usage and price are those of all answered calls. Cancelling closes the connection.
        """
        own, prefix = self._in_this_session(request.prefix)
        tally = _Tally()
        if not request.folded and not request.previous:
            tally.note(
                "everything that leaves the view is quoted or shortened: there is nothing to summarise"
            )
            return self._reply("", FAILED, SummaryWay(own, "bare"), tally)
        ways, reason = await asyncio.to_thread(choices, request, own, self._other, prefix, self._counter)
        tally.note(reason)
        failed: set[str] = set()
        for way in ways:
            model = way.candidate
            if model.name in failed:
                continue
            try:
                if way.form == "in-session" and prefix is not None:
                    reply = await self._in_session(model, request, prefix, tally)
                else:
                    reply = await self._bare(model, request, tally)
            except (ProviderError, InputError, _Unusable) as error:
                tally.note(f"{model.name} wrote no summary: {str(error)[:QUOTED]}")
                log.warning("summary by %s failed: %s", model.name, error)
                if not (isinstance(error, ProviderError) and error.kind in _OTHER_FORM):
                    failed.add(model.name)
                continue
            return self._reply(reply.text, reply.stop, way, tally)
        return self._reply("", FAILED, ways[0], tally)

    def _in_this_session(self, prefix: Prefix | None) -> tuple[Candidate, Prefix | None]:
        """Return the session's own model with its window there, and the prefix if it can be used."""
        own = self._own
        if prefix is None or prefix.model != own.name:
            return own, None
        own = msgspec.structs.replace(own, window=prefix.window)
        usable = prefix.messages and prefix.dialect == own.provider.dialect and not self._cache_missed
        return own, prefix if usable else None

    def _reply(self, text: str, stop: str, way: SummaryWay, tally: _Tally) -> SummaryReply:
        detail = {"form": way.form, "calls": tally.calls, "parts": tally.parts, "why": tally.notes[0]}
        return SummaryReply(
            text=text,
            summarizer=way.candidate.name,
            stop=stop,
            usage=tally.usage,
            price=tally.price,
            notes=(*tally.notes, *self._notes),
            detail=detail,
        )

    # ---- the two forms

    async def _in_session(
        self, model: Candidate, request: SummaryRequest, prefix: Prefix, tally: _Tally
    ) -> Reply:
        """Ask within the session; not again if the expected cache was missing."""
        call = asked_in_session(request, model, prefix)
        reply = await self._ask(model, call, prefix.tokens, tally, request.on_text)
        read = reply.usage.cache_read if reply.usage is not None else 0
        if read < HIT * min(prefix.cache.warm, prefix.tokens):
            self._cache_missed = True
            tally.note(
                f"only {read:,} tokens of it were cached: from now on the conversation is sent as text"
            )
        return reply

    async def _bare(self, model: Candidate, request: SummaryRequest, tally: _Tally) -> Reply:
        """Ask with the conversation as text; after an overflow, in smaller parts."""
        room = min(model.room(request), self._rooms.get(model.name, model.window.context))
        for left in range(SHRINKS, -1, -1):
            try:
                return await self._by_parts(model, request, room, tally)
            except ProviderError as error:
                room = smaller(min(room, tally.sent), error.overflow)
                if error.kind != "overflow" or not left or room < LEAST_ROOM:
                    raise
                self._rooms[model.name] = room
                tally.note(f"{model.name} accepts less than its window: {room:,} tokens at a time")
        raise AssertionError("unreachable")

    async def _by_parts(self, model: Candidate, request: SummaryRequest, room: int, tally: _Tally) -> Reply:
        """Summarise part after part; the last reply is the summary of the whole."""
        tokens = model.tokens(request)
        parts, left_out = await asyncio.to_thread(split, request, room, tokens, self._counter)
        tally.parts = len(parts)
        if tally.parts > 1:
            tally.note(f"in {tally.parts} parts: the range exceeds what {model.name} accepts at a time")
        if left_out:
            tally.note(f"{model.name} saw the range with its middle left out")
        *first, last = parts
        previous = request.previous
        for part in first:
            previous = await self._part(model, msgspec.structs.replace(part, previous=previous), room, tally)
        last = msgspec.structs.replace(last, previous=previous)
        return await self._ask_bare(model, last, room, tally)

    async def _part(self, model: Candidate, request: SummaryRequest, room: int, tally: _Tally) -> str:
        """Return the summary of one part; it is remembered for a second attempt at the whole."""
        key = (
            model.name,
            request.folded[0].id,
            request.folded[-1].id,
            request.previous,
            request.instructions,
        )
        if key in self._parts:
            return self._parts[key]
        reason = ""
        for attempt in range(PART_ATTEMPTS):
            request = msgspec.structs.replace(request, attempt=attempt, rejected=reason)
            reply = await self._ask_bare(model, request, room, tally)
            answer = SummaryReply(reply.text, model.name, reply.stop)
            checked = check(answer, request, counter=self._counter)
            if isinstance(checked, str):
                while len(self._parts) >= REMEMBERED:
                    self._parts.pop(next(iter(self._parts)))
                self._parts[key] = checked
                return checked
            reason = checked.words
        raise _Unusable(f"the summary of a part was rejected: {reason}")

    async def _ask_bare(self, model: Candidate, request: SummaryRequest, room: int, tally: _Tally) -> Reply:
        words = await asyncio.to_thread(worded, request, limit=room, counter=self._counter)
        size = self._counter.count(words.system) + self._counter.count(words.prompt)
        if size > room:
            raise _Unusable(f"the request takes {size:,} of {room:,} tokens without the conversation")
        call = Call(
            messages=[{"role": "user", "content": words.prompt}],
            system=words.system,
            max_tokens=model.max_tokens(request, size),
            thinking=False,
        )
        return await self._ask(model, call, size, tally, request.on_text)

    async def _ask(
        self, model: Candidate, call: Call, size: int, tally: _Tally, on_text: OnText | None
    ) -> Reply:
        tally.calls += 1
        tally.sent = size
        provider = model.provider
        if not isinstance(provider, Retrying):
            provider = Retrying(provider, self._patience)
        call = msgspec.structs.replace(call, timeout=self._timeout)
        reply = await (provider.complete(call) if on_text is None else _stream(provider, call, on_text))
        tally.add(reply, model.price)
        return reply


async def _stream(provider: Provider, call: Call, on_text: OnText) -> Reply:
    """Return the whole reply; call `on_text` with its text while it is written."""
    on_text(None)
    # a provider's stream is a generator: closing it closes the connection
    async with aclosing(cast("Any", provider.stream(call))) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reply):
                return piece
            if piece.kind in ("text", "restart"):
                on_text(piece.text if piece.kind == "text" else None)
    raise ProviderError("the stream ended without a reply", kind="connection", provider=provider.name)
