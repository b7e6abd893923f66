"""Summaries written by a model: the cheapest way that works, then the next, then none.

Whatever a model answers is judged by the core. This asks, in as many calls as the range needs; asks again
after what passes; takes a smaller range after an overflow; and gives up without raising, so that the receipt
says why the offline checkpoint stands there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

import msgspec

from foldline.core.checkpoint.check import Accepted, check
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
from foldline.summarizers.parts import requests, split

log = logging.getLogger("foldline")

# Somebody may be waiting, and code can write as well, so retry less than for a reply to the user.
PATIENCE: Final = Patience(attempts=4, timeout=120.0)
TIMEOUT: Final = (
    240.0  # seconds for one call: a large range, and a slow model that writes thousands of tokens
)
SHRINKS: Final = 5  # times that a smaller range is tried after an overflow
PART_ATTEMPTS: Final = 2  # times that the summary of a part is asked for
REMEMBERED: Final = 16  # summaries of parts that are kept for a second attempt at the whole
HIT: Final = 0.5  # share of what should be cached that has to be read from the cache

# After these the same model may answer to another form of the request.
_OTHER_FORM: Final = frozenset({"overflow", "bad_request"})


OnText = Callable[[str | None], None]
"""Who reads a summary while it is written: a piece of it, or None where it begins anew."""


class _Unusable(Exception):
    """The reply for a part is not a summary."""


class _Cost:
    """What one summary has cost so far."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.price: float | None = None
        self.calls = 0
        self.parts = 1
        self.sent = 0  # tokens of the newest prompt
        self.notes: list[str] = []

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def take(self, reply: Reply, price: Price | None) -> None:
        self.usage = added(self.usage, reply.usage)
        if reply.usage is not None and price is not None:
            self.price = (self.price or 0.0) + cost(reply.usage, price)


class ModelSummarizer:
    """Write summaries with a model.

    `provider` is the session's own model, `window` its limits and `price` what it costs (default: the
    catalogue's); `other` a model for summaries alone, which is asked where it is cheaper. Where the one that
    is asked cannot answer, the other is asked. `timeout` in seconds for one call; `patience` for asking
    again; `notes` go into each receipt. Where a request carries the session's own next request, and that is
    to the same model, the summary may be asked for in the session itself, and the session's window is what
    counts.
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
        self._other = _as_candidate(other)
        self._counter = counter
        self._patience = patience or PATIENCE
        self._timeout = timeout
        self._notes = tuple(notes)
        self._rooms: dict[str, int] = {}  # of models that took less than their window
        self._parts: dict[Any, str] = {}
        self._missed = False  # the provider's cache did not have the session's prefix

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
        """What the session's own model costs; None if unknown."""
        return self._own.price

    async def decide(self, call: Call) -> tuple[Reply, float | None]:
        """Ask the session's own model as the session does; return its reply and what it cost in USD."""
        spent = _Cost()
        return await self._ask(self._own, call, 0, spent, None), spent.price

    async def close(self) -> None:
        """Close the connections of all models."""
        for one in (self._own, self._other):
            if one is not None:
                await one.provider.close()

    async def summarize(self, request: SummaryRequest) -> SummaryReply:
        """Write the requested summary; a reply whose `stop` is "failed" says that no model could.

        Usage and price are those of all answered calls. Cancelling closes the connection.
        """
        own, prefix = self._in_this_session(request.prefix)
        tally = _Cost()
        if not request.folded and not request.previous:
            tally.note("what leaves the view is quoted or shortened: there is nothing to sum up")
            return self._reply("", FAILED, SummaryWay(own, "bare"), tally)
        found = await asyncio.to_thread(choices, request, own, self._other, prefix, self._counter)
        tally.note(found[1])
        dead: set[str] = set()
        for choice in found[0]:
            who = choice.candidate
            if who.name in dead:
                continue
            try:
                if choice.form == "in-session" and prefix is not None:
                    reply = await self._in_session(who, request, prefix, tally)
                else:
                    reply = await self._bare(who, request, tally)
            except (ProviderError, InputError, _Unusable) as error:
                tally.note(f"{who.name} wrote no summary: {str(error)[:QUOTED]}")
                log.warning("summary by %s failed: %s", who.name, error)
                if not (isinstance(error, ProviderError) and error.kind in _OTHER_FORM):
                    dead.add(who.name)
                continue
            return self._reply(reply.text, reply.stop, choice, tally)
        return self._reply("", FAILED, found[0][0], tally)

    def _in_this_session(self, prefix: Prefix | None) -> tuple[Candidate, Prefix | None]:
        """Return the session's own model as the session knows it, and the prefix if it can be asked there."""
        own = self._own
        if prefix is None or prefix.model != own.name:
            return own, None
        own = msgspec.structs.replace(own, window=prefix.window)
        usable = prefix.messages and prefix.dialect == own.provider.dialect and not self._missed
        return own, prefix if usable else None

    def _reply(self, text: str, stop: str, choice: SummaryWay, tally: _Cost) -> SummaryReply:
        detail = {"form": choice.form, "calls": tally.calls, "parts": tally.parts, "why": tally.notes[0]}
        return SummaryReply(
            text=text,
            summarizer=choice.candidate.name,
            stop=stop,
            usage=tally.usage,
            price=tally.price,
            notes=(*tally.notes, *self._notes),
            detail=detail,
        )

    # ---- the two forms

    async def _in_session(
        self, who: Candidate, request: SummaryRequest, prefix: Prefix, tally: _Cost
    ) -> Reply:
        """Ask within the session; never again if the expected cache was not there."""
        call = asked_in_session(request, who, prefix)
        reply = await self._ask(who, call, prefix.tokens, tally, request.on_text)
        read = reply.usage.cache_read if reply.usage is not None else 0
        if read < HIT * min(prefix.cache.warm, prefix.tokens):
            self._missed = True
            tally.note(
                f"only {read:,} tokens of it were cached: from now on the conversation is sent as text"
            )
        return reply

    async def _bare(self, who: Candidate, request: SummaryRequest, tally: _Cost) -> Reply:
        """Ask with the conversation as text; a range that overflows is cut smaller."""
        room = min(who.room(request), self._rooms.get(who.name, who.window.context))
        for left in range(SHRINKS, -1, -1):
            try:
                return await self._by_parts(who, request, room, tally)
            except ProviderError as error:
                room = smaller(min(room, tally.sent), error.overflow)
                if error.kind != "overflow" or not left or room < LEAST_ROOM:
                    raise
                self._rooms[who.name] = room
                tally.note(f"{who.name} accepts less than was known: {room:,} tokens at a time")
        raise AssertionError("unreachable")

    async def _by_parts(self, who: Candidate, request: SummaryRequest, room: int, tally: _Cost) -> Reply:
        """Summarise one part after another; the last reply is the summary of the whole."""
        tokens = who.tokens(request)
        parts = await asyncio.to_thread(split, request, room, self._counter)
        tally.parts = len(parts.runs)
        if tally.parts > 1:
            tally.note(f"in {tally.parts} parts: the range exceeds what {who.name} accepts at a time")
        if parts.left_out:
            tally.note(f"{who.name} saw the range with its middle left out")
        *before, last = requests(request, parts, tokens)
        previous = request.previous
        for part in before:
            previous = await self._part(who, msgspec.structs.replace(part, previous=previous), room, tally)
        last = msgspec.structs.replace(last, previous=previous)
        return await self._ask_bare(who, last, room, tally)

    async def _part(self, who: Candidate, request: SummaryRequest, room: int, tally: _Cost) -> str:
        """Return the summary of one part; it is remembered for a second attempt at the whole."""
        key = (who.name, request.folded[0].id, request.folded[-1].id, request.previous, request.instructions)
        if key in self._parts:
            return self._parts[key]
        why = ""
        for attempt in range(PART_ATTEMPTS):
            asked = msgspec.structs.replace(request, attempt=attempt, rejected=why)
            reply = await self._ask_bare(who, asked, room, tally)
            answer = SummaryReply(reply.text, who.name, reply.stop)
            checked = check(answer, asked, counter=self._counter)
            if isinstance(checked, Accepted):
                while len(self._parts) >= REMEMBERED:
                    self._parts.pop(next(iter(self._parts)))
                self._parts[key] = checked.text
                return checked.text
            why = checked.words
        raise _Unusable(f"the summary of a part was rejected: {why}")

    async def _ask_bare(self, who: Candidate, request: SummaryRequest, room: int, tally: _Cost) -> Reply:
        words = await asyncio.to_thread(worded, request, limit=room, counter=self._counter)
        size = self._counter.count(words.system) + self._counter.count(words.prompt)
        if size > room:
            raise _Unusable(f"the request takes {size:,} of {room:,} tokens without the conversation")
        call = Call(
            messages=[{"role": "user", "content": words.prompt}],
            system=words.system,
            max_tokens=who.max_tokens(request, size),
            thinking=False,
        )
        return await self._ask(who, call, size, tally, request.on_text)

    async def _ask(
        self, who: Candidate, call: Call, size: int, tally: _Cost, on_text: OnText | None
    ) -> Reply:
        tally.calls += 1
        tally.sent = size
        patient = (
            who.provider if isinstance(who.provider, Retrying) else Retrying(who.provider, self._patience)
        )
        call = msgspec.structs.replace(call, timeout=self._timeout)
        reply = await (patient.complete(call) if on_text is None else _streamed(patient, call, on_text))
        tally.take(reply, who.price)
        return reply


async def _streamed(provider: Provider, call: Call, on_text: OnText) -> Reply:
    """Return the whole reply, and pass its text on while it is written."""
    on_text(None)
    # a provider's stream is a generator: closing it closes its connection
    async with aclosing(cast("Any", provider.stream(call))) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reply):
                return piece
            if piece.kind in ("text", "restart"):
                on_text(piece.text if piece.kind == "text" else None)
    raise ProviderError("the stream ended without a reply", kind="connection", provider=provider.name)


def _as_candidate(given: Provider | Candidate | None) -> Candidate | None:
    return given if given is None or isinstance(given, Candidate) else candidate(given)
