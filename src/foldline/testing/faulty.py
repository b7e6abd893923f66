"""A model behind a bad network: seeded faults, like those of real servers, around a scripted model."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final, Literal, get_args

import msgspec

from foldline.core.log.messages import Usage
from foldline.testing.answers import FinishedReply, Refusal
from foldline.testing.apis import api_of
from foldline.testing.objects import AsProvider
from foldline.testing.request import Asked
from foldline.testing.scripted import Scripted
from foldline.testing.wire import Wire

Fault = Literal[
    "rate", "overloaded", "server", "reset", "stall", "half", "unfinished", "malformed", "usage", "truncated"
]
FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)

_RETRY_AFTER: Final = (0.0, 0.01, 0.02)  # seconds


class Faulty(AsProvider):
    """Put faults around a scripted model; the seed alone decides which request meets which fault.

    - `rate` 429 with retry-after, `overloaded` 529 (OpenAI: 503) or the same as an event of a stream that has
      begun, `server` 500
    - `reset` the connection is reset, before a byte or within the body
    - `stall` the server is silent for `stall` seconds, before a byte or within the body
    - `half` the connection is closed before the body is complete; `unfinished` the connection stays, but the
      body lacks its last events, or the end of its JSON
    - `malformed` a body or an event that is not JSON
    - `usage` wrong figures: none, or many times too large
    - `truncated` half of the text, in a reply that claims to be complete

    `rates`: the chance of each fault, or one number: the chance of any. `plan` names the faults of the first
    requests (None: no fault); `rates` apply to later ones. An answer that did not arrive because of a fault
    answers the next request.
    """

    def __init__(
        self,
        inner: Scripted,
        seed: int = 0,
        rates: Mapping[Fault, float] | float = 0.0,
        *,
        plan: Sequence[Fault | None] = (),
        stall: float = 30.0,
    ) -> None:
        self._be_provider(inner.dialect, inner.model, inner.window)
        self.inner = inner
        self.seed = seed
        self.stall = stall
        self.met: list[tuple[int, Fault]] = []
        self._plan = tuple(plan)
        self._rates = _chances(rates)
        for fault in (*self._rates, *self._plan):
            if fault is not None and fault not in FAULTS:
                raise ValueError(f"unknown fault {fault!r}; the faults are {', '.join(FAULTS)}")
        self._request_count = 0

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the inner model."""
        return self.inner.models

    async def answer(self, request: Asked) -> Wire:
        """Answer a request as the inner model does, or with the fault that is due."""
        number = self._request_count
        self._request_count += 1
        chance = random.Random(f"{self.seed}:{number}")
        fault = self.due(number)
        if fault is not None:
            self.met.append((number, fault))
        status = _STATUSES.get(fault) if fault else None
        if status is not None and not (fault == "overloaded" and request.stream and chance.random() < 0.5):
            self.inner.note(request)
            wait = chance.choice(_RETRY_AFTER) if fault == "rate" else None
            return self.inner.refuse(request, Refusal(status, retry_after=wait))
        try:
            reply, wait = self.inner.reply(request)
        except Refusal as refusal:
            return self.inner.refuse(request, refusal)
        api = api_of(request.dialect)
        if fault in ("usage", "truncated"):
            return api.respond(_altered(reply, fault, chance), wait)
        wire = api.respond(reply, wait)
        if fault is None:
            return wire
        self.inner.again()
        return self._broken(wire, fault, chance, request)

    def count(self, request: Asked) -> int:
        """Count the input of a request in the model's tokens."""
        return self.inner.count(request)

    def refuse_body(self, dialect: str, text: str) -> Wire:
        """Answer a body that is not a JSON object."""
        return self.inner.refuse_body(dialect, text)

    def due(self, number: int) -> Fault | None:
        """Return the fault that the request with this number (from 0) meets."""
        if number < len(self._plan):
            return self._plan[number]
        drawn = random.Random(f"{self.seed}:due:{number}").random()
        for fault in FAULTS:
            drawn -= self._rates.get(fault, 0.0)
            if drawn < 0:
                return fault
        return None

    def _broken(self, wire: Wire, fault: Fault, chance: random.Random, request: Asked) -> Wire:
        """Return a response as broken by a fault."""
        change = msgspec.structs.replace
        if fault == "stall":
            index = chance.randrange(len(wire.pieces)) if wire.streamed else 0
            return change(wire, stall_at=index, stall=self.stall)
        if fault == "reset" and chance.random() < 0.5:
            return change(wire, pieces=(), end="reset", reply=None)
        cut = _first_part(wire, chance)
        if fault == "reset":
            return change(cut, end="reset")
        if fault == "half":
            return change(cut, end="close")
        if fault == "overloaded":
            api = api_of(request.dialect)
            event = api.error_event(api.error(Refusal(529)), len(cut.pieces))
            return change(cut, pieces=(*cut.pieces, event))
        if fault == "unfinished" and wire.streamed:
            return cut
        return _unreadable(wire, chance)


def _chances(rates: Mapping[Fault, float] | float) -> dict[Fault, float]:
    chances = dict(rates) if isinstance(rates, Mapping) else dict.fromkeys(FAULTS, rates / len(FAULTS))
    if min(chances.values(), default=0.0) < 0 or sum(chances.values()) > 1 + 1e-9:
        raise ValueError(f"invalid rates {rates}: each must be at least 0, together at most 1")
    return chances


# faults that are an error status instead of the model's reply
_STATUSES: Final[dict[Fault, int]] = {"rate": 429, "overloaded": 529, "server": 500}


def _first_part(wire: Wire, chance: random.Random) -> Wire:
    """Return a body that breaks off: a stream after an event before its last two, JSON after any byte."""
    if wire.streamed:
        pieces = wire.pieces[: chance.randint(1, max(1, len(wire.pieces) - 2))]
        return msgspec.structs.replace(wire, pieces=pieces, reply=None)
    body = wire.pieces[0]
    part = body[: chance.randrange(1, len(body))]
    return msgspec.structs.replace(wire, pieces=(part,), length=len(body), reply=None)


def _unreadable(wire: Wire, chance: random.Random) -> Wire:
    """Return a body that is not JSON: one event of a stream, or a JSON body without its end."""
    if not wire.streamed:
        body = wire.pieces[0]
        part = body[: chance.randrange(1, len(body))]
        return msgspec.structs.replace(wire, pieces=(part,), reply=None)
    index = chance.randrange(max(1, len(wire.pieces) - 2))
    event = wire.pieces[index]
    start = event.index(b"data: ") + len(b"data: ")
    broken = event[: start + max(1, (len(event) - start) // 2)].rstrip(b"}\n") + b"\n\n"
    return msgspec.structs.replace(
        wire, pieces=(*wire.pieces[:index], broken, *wire.pieces[index + 1 :]), reply=None
    )


def _altered(reply: FinishedReply, fault: Fault, chance: random.Random) -> FinishedReply:
    """Return a reply that arrives complete but is wrong."""
    if fault == "usage":
        wrong = chance.choice((Usage(), Usage(input=reply.usage.total * 20, output=reply.usage.output)))
        return msgspec.structs.replace(reply, usage=wrong)
    text = reply.text[: len(reply.text) // 2]
    return msgspec.structs.replace(reply, text=text)
