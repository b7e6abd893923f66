"""A request of an agent, read as far as the gateway must: everything else stays the bytes that came."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any, cast

import msgspec

from foldline.core.log.codec import encode_utf8, whole_escapes
from foldline.core.log.log import resent_key
from foldline.core.log.messages import Message
from foldline.dialects.base import decode_placed
from foldline.dialects.gemini.write import one_turn
from foldline.dialects.payload import fields_of
from foldline.dialects.values import GEMINI, OPENAI_RESPONSES
from foldline.errors import DialectError
from foldline.providers.anthropic import LEAST_BUDGET
from foldline.service.gateway.compaction_item import Resumed, is_trigger, unfolded
from foldline.service.gateway.endpoint import Endpoint

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])
_STATEFUL = ("previous_response_id", "conversation")  # the history is the server's: nothing can be folded
_LEADING = (b'"system"', b'"developer"')


class Unit(msgspec.Struct, frozen=True):
    """One message as the client wrote it: the bytes of its elements, and where its first one stands."""

    raw: bytes
    place: int


class AgentRequest:
    """A request whose messages were found; `lead` counts the system messages at its beginning.

    `wants_item` says that a compaction item is to be the answer, `resumed` that the history goes on from one
    of ours, in whose place the elements then have the view. `at` is the entry of the session behind which
    the elements stand (None: they are all of its history).
    """

    def __init__(
        self, endpoint: Endpoint, raw: bytes, fields: dict[str, msgspec.Raw], elements: list[bytes]
    ) -> None:
        self.wants_item = False
        self.resumed: Resumed | None = None
        self.at: str | None = None
        self.endpoint = endpoint
        self.raw = raw
        self._fields = fields
        self.elements = elements
        self.lead = _leading(elements)
        self.units = _units(endpoint, elements, self.lead)

    @property
    def model(self) -> str:
        """The name of the model that is asked."""
        name = self.endpoint.model or self.value("model")
        return name if isinstance(name, str) else ""

    @property
    def streamed(self) -> bool:
        """Whether the reply is to come as a stream."""
        return self.endpoint.streamed or self.value("stream") is True

    @property
    def max_tokens(self) -> int | None:
        """The most that the reply may take, where the request says so."""
        found = (self.value(name) for name in self.endpoint.limits)
        return next((value for value in found if isinstance(value, int)), None)

    @property
    def system(self) -> Any:
        """What is sent beside the messages: the system prompt, and the leading system messages."""
        apart = self.value(self.endpoint.system) if self.endpoint.system else None
        leading = [msgspec.json.decode(one) for one in self.elements[: self.lead]]
        return [apart, *leading] if leading and apart else (leading or apart)

    def value(self, name: str) -> Any:
        """Return the value of a field, or of one in it (`a.b`); None where it is not there."""
        name, _, inner = name.partition(".")
        raw = self._fields.get(name)
        value = None if raw is None else msgspec.json.decode(raw)
        return fields_of(value).get(inner) if inner else value

    def decode(self, units: Sequence[Unit], after: Unit | None = None) -> list[Message]:
        """Read messages; raises DialectError for what is none.

        What stands behind `after` may answer calls in it that have no ids.
        """
        if self.endpoint.dialect == GEMINI:
            whole = [msgspec.json.decode(unit.raw) for unit in (*([after] if after else []), *units)]
            return [message for _, message in decode_placed(whole, GEMINI)][len(whole) - len(units) :]
        read: list[Message] = []
        for unit in units:
            payload = msgspec.json.decode(unit.raw)
            payloads = cast("list[Any]", payload) if isinstance(payload, list) else [payload]
            placed = decode_placed(payloads, self.endpoint.dialect, salt=str(unit.place))
            if len(placed) != 1:
                raise DialectError("one message was expected", index=unit.place)
            read.append(placed[0][1])
        return read

    def resuming(self, known: Collection[str]) -> AgentRequest:
        """Return the request as a session has it that knows its compaction item.

        Of what stands before that, clients keep what the session has: those keys are `known`.
        Instructions there go to the head, and other messages before what is new.
        """
        assert self.resumed is not None
        lead, more = list[bytes](), list[bytes]()
        for unit in _units(self.endpoint, self.resumed.before, 0):
            message = self.decode([unit])[0]
            if message.role in ("system", "developer"):
                lead.append(unit.raw)
            elif resent_key(message) not in known:
                more += _split(unit.raw) if unit.raw.startswith(b"[") else [unit.raw]
        elements = [*lead, *more, *self.resumed.behind]
        found = AgentRequest(self.endpoint, self.raw, self._fields, elements)
        found.wants_item, found.at = self.wants_item, self.resumed.at
        return found

    def changed(
        self, *, messages: Sequence[Any] | None = None, max_tokens: int | None = None
    ) -> AgentRequest:
        """Return the request with other messages behind the leading ones, or another limit."""
        fields: dict[str, Any] = dict(self._fields)
        if messages is not None:
            fields[self.endpoint.messages] = [
                *(msgspec.Raw(one) for one in self.elements[: self.lead]),
                *messages,
            ]
        if max_tokens is not None:
            name = next((name for name in self.endpoint.limits if name in fields), self.endpoint.limits[-1])
            holder, _, inner = name.partition(".")
            fields[holder] = {**fields_of(self.value(holder)), inner: max_tokens} if inner else max_tokens
            fields |= _thinking_within(max_tokens, self.value("thinking"), self.max_tokens)
        known = {name: msgspec.Raw(encode_utf8(value)) for name, value in fields.items()}
        elements = self.elements if messages is None else _split(known[self.endpoint.messages])
        return AgentRequest(self.endpoint, encode_utf8(known), known, elements)


def continues_a_reply(raw: bytes) -> bool:
    """Return whether a request goes on from what the provider keeps; one that cannot be read may."""
    try:
        fields = _fields.decode(whole_escapes(raw)) if raw else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return any(fields.get(name, b"null") != b"null" for name in _STATEFUL)


def read_request(endpoint: Endpoint, raw: bytes) -> AgentRequest | None:
    """Read a request; None for one whose messages are not there to be folded: it goes on as it is."""
    raw = whole_escapes(raw)
    try:
        fields = _fields.decode(raw)
        if any(fields.get(name, b"null") != b"null" for name in _STATEFUL):  # the history is the server's
            return None
        given = bytes(fields.get(endpoint.messages, b""))
        if endpoint.dialect != OPENAI_RESPONSES:
            return AgentRequest(endpoint, raw, fields, _split(given))
        if given.startswith(b'"'):
            given = encode_utf8([{"role": "user", "content": msgspec.json.decode(given)}])
        return _with_items(endpoint, raw, fields, _split(given))
    except (msgspec.DecodeError, UnicodeDecodeError, DialectError, RecursionError):
        return None


def _with_items(
    endpoint: Endpoint, raw: bytes, fields: dict[str, msgspec.Raw], elements: list[bytes]
) -> AgentRequest:
    """Return a request for a response, with what items of ours stand for in their place."""
    wants_item = bool(elements) and is_trigger(elements[-1])
    elements, resumed = unfolded(elements[:-1] if wants_item else elements)
    if resumed is not None:
        fields["input"] = msgspec.Raw(encode_utf8([msgspec.Raw(one) for one in elements]))
        raw = encode_utf8(fields)
    asked = AgentRequest(endpoint, raw, fields, elements)
    asked.wants_item, asked.resumed = wants_item, resumed
    return asked


def _thinking_within(most: int, thinking: Any, wanted: int | None) -> dict[str, Any]:
    """Return the field for thinking in a reply of `most` tokens; empty where it needs no change.

    A budget must stay below the reply's limit: it keeps the share that it had of the `wanted` tokens.
    """
    given = cast("dict[str, Any]", thinking) if isinstance(thinking, dict) else {}
    budget = given.get("budget_tokens")
    if not isinstance(budget, int) or budget < most:
        return {}
    if most <= LEAST_BUDGET:
        return {"thinking": {"type": "disabled"}}
    share = most * budget // max(wanted or 0, budget + 1)
    return {"thinking": {**given, "budget_tokens": max(LEAST_BUDGET, share)}}


def _split(messages: bytes | msgspec.Raw) -> list[bytes]:
    return [bytes(one) for one in _elements.decode(messages)]


def _leading(elements: Sequence[bytes]) -> int:
    for place, raw in enumerate(elements):
        if not any(word in raw for word in _LEADING):
            return place
        payload = msgspec.json.decode(raw)
        role = cast("dict[str, Any]", payload).get("role") if isinstance(payload, dict) else None
        if role not in ("system", "developer"):
            return place
    return len(elements)


def _units(endpoint: Endpoint, elements: Sequence[bytes], lead: int) -> list[Unit]:
    rest = elements[lead:]
    if endpoint.dialect == GEMINI:
        return _turns(rest, lead)
    if endpoint.dialect != OPENAI_RESPONSES or not rest:
        return [Unit(raw, place) for place, raw in enumerate(rest, lead)]
    from_here = [
        place for place, _ in decode_placed([msgspec.json.decode(raw) for raw in rest], endpoint.dialect)
    ]
    ends = [*from_here[1:], len(rest)]
    return [
        Unit(rest[start] if end == start + 1 else b"[" + b",".join(rest[start:end]) + b"]", lead + start)
        for start, end in zip(from_here, ends, strict=True)
    ]


def _turns(elements: Sequence[bytes], start: int) -> list[Unit]:
    """Return contents as units: what the model says in a row is one; chats keep the chunks of a stream."""
    contents = [fields_of(msgspec.json.decode(raw) if b'"model"' in raw else None) for raw in elements]
    found: list[Unit] = []
    for models, places in groupby(range(len(elements)), lambda at: contents[at].get("role") == "model"):
        run = list(places)
        if models and len(run) > 1:
            turn = encode_utf8(one_turn([contents[at] for at in run]))
            found.append(Unit(turn, start + run[0]))
        else:
            found += [Unit(elements[at], start + at) for at in run]
    return found
