"""An agent's request, decoded only as far as the gateway needs; the rest keeps its original bytes."""

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
from foldline.service.gateway.compaction_item import ResumedHistory, expand_items, is_trigger
from foldline.service.gateway.endpoint import Endpoint

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])
_STATEFUL = ("previous_response_id", "conversation")  # the server has the history: nothing can be folded
_LEADING = (b'"system"', b'"developer"')


class Unit(msgspec.Struct, frozen=True):
    """One message as the client wrote it: the bytes of its elements, and the index of the first."""

    raw: bytes
    place: int


class AgentRequest:
    """A request with messages; `lead` is the number of system messages at its beginning.

    `wants_item`: it requests a compaction item. `resumed`: its history continues from one of ours, which the
    elements have replaced by the view. `at`: the session's entry that the elements follow (None: they are the
    whole history).
    """

    def __init__(
        self, endpoint: Endpoint, raw: bytes, fields: dict[str, msgspec.Raw], elements: list[bytes]
    ) -> None:
        self.wants_item = False
        self.resumed: ResumedHistory | None = None
        self.at: str | None = None
        self.endpoint = endpoint
        self.raw = raw
        self._fields = fields
        self.elements = elements
        self.lead = _count_leading(elements)
        self.units = _units(endpoint, elements, self.lead)

    @property
    def model(self) -> str:
        """The name of the request's model."""
        name = self.endpoint.model or self.value("model")
        return name if isinstance(name, str) else ""

    @property
    def full_model(self) -> str:
        """The name with the vendor: `openai:NAME`."""
        return f"{self.endpoint.vendor}:{self.model}"

    @property
    def streamed(self) -> bool:
        """Whether the request asks for a stream."""
        return self.endpoint.streamed or self.value("stream") is True

    @property
    def max_tokens(self) -> int | None:
        """The request's limit for the reply in tokens, if it has one."""
        values = (self.value(name) for name in self.endpoint.limits)
        return next((value for value in values if isinstance(value, int)), None)

    @property
    def system(self) -> Any:
        """The system prompt with the leading system messages."""
        system = self.value(self.endpoint.system) if self.endpoint.system else None
        leading = [msgspec.json.decode(element) for element in self.elements[: self.lead]]
        return [system, *leading] if leading and system else (leading or system)

    def value(self, name: str) -> Any:
        """Return the value of a field or a nested field (`a.b`); None if it is missing."""
        name, _, inner = name.partition(".")
        raw = self._fields.get(name)
        value = None if raw is None else msgspec.json.decode(raw)
        return fields_of(value).get(inner) if inner else value

    def decode(self, units: Sequence[Unit], after: Unit | None = None) -> list[Message]:
        """Decode messages; raises DialectError if one is invalid.

        They may have results of calls without ids in the message before them, `after`.
        """
        if self.endpoint.dialect == GEMINI:
            payloads = [msgspec.json.decode(unit.raw) for unit in (*([after] if after else []), *units)]
            return [message for _, message in decode_placed(payloads, GEMINI)][len(payloads) - len(units) :]
        read: list[Message] = []
        for unit in units:
            payload = msgspec.json.decode(unit.raw)
            payloads = cast("list[Any]", payload) if isinstance(payload, list) else [payload]
            placed = decode_placed(payloads, self.endpoint.dialect, salt=str(unit.place))
            if len(placed) != 1:
                raise DialectError("one message was expected", index=unit.place)
            read.append(placed[0][1])
        return read

    def resuming(self, known_keys: Collection[str]) -> AgentRequest:
        """Return the request as the session of its compaction item has it.

        Messages before the item whose keys are `known_keys` are already in the session. Instructions there
        move to the head, other messages before the new ones.
        """
        assert self.resumed is not None
        leading, others = list[bytes](), list[bytes]()
        for unit in _units(self.endpoint, self.resumed.before, 0):
            message = self.decode([unit])[0]
            if message.role in ("system", "developer"):
                leading.append(unit.raw)
            elif resent_key(message) not in known_keys:
                others += _split(unit.raw) if unit.raw.startswith(b"[") else [unit.raw]
        elements = [*leading, *others, *self.resumed.after]
        request = AgentRequest(self.endpoint, self.raw, self._fields, elements)
        request.wants_item, request.at = self.wants_item, self.resumed.at
        return request

    def changed(
        self, *, messages: Sequence[Any] | None = None, max_tokens: int | None = None
    ) -> AgentRequest:
        """Return the request with other messages after the leading ones, or another limit."""
        fields: dict[str, Any] = dict(self._fields)
        if messages is not None:
            fields[self.endpoint.messages] = [
                *(msgspec.Raw(element) for element in self.elements[: self.lead]),
                *messages,
            ]
        if max_tokens is not None:
            name = next((name for name in self.endpoint.limits if name in fields), self.endpoint.limits[-1])
            holder, _, inner = name.partition(".")
            fields[holder] = {**fields_of(self.value(holder)), inner: max_tokens} if inner else max_tokens
            fields |= _fitted_thinking(max_tokens, self.value("thinking"), self.max_tokens)
        raw_fields = {name: msgspec.Raw(encode_utf8(value)) for name, value in fields.items()}
        elements = self.elements if messages is None else _split(raw_fields[self.endpoint.messages])
        return AgentRequest(self.endpoint, encode_utf8(raw_fields), raw_fields, elements)


def continues_a_reply(raw: bytes) -> bool:
    """Return whether a request may continue a history that the provider stores."""
    try:
        fields = _fields.decode(whole_escapes(raw)) if raw else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return any(fields.get(name, b"null") != b"null" for name in _STATEFUL)


def read_request(endpoint: Endpoint, raw: bytes) -> AgentRequest | None:
    """Decode a request; None if it has no messages to fold: then it is sent unchanged."""
    raw = whole_escapes(raw)
    try:
        fields = _fields.decode(raw)
        if any(fields.get(name, b"null") != b"null" for name in _STATEFUL):  # the history is the server's
            return None
        messages = bytes(fields.get(endpoint.messages, b""))
        if endpoint.dialect != OPENAI_RESPONSES:
            return AgentRequest(endpoint, raw, fields, _split(messages))
        if messages.startswith(b'"'):
            messages = encode_utf8([{"role": "user", "content": msgspec.json.decode(messages)}])
        return _with_items(endpoint, raw, fields, _split(messages))
    except (msgspec.DecodeError, UnicodeDecodeError, DialectError, RecursionError):
        return None


def _with_items(
    endpoint: Endpoint, raw: bytes, fields: dict[str, msgspec.Raw], elements: list[bytes]
) -> AgentRequest:
    """Return a request for a response, with our items replaced by their view."""
    wants_item = bool(elements) and is_trigger(elements[-1])
    elements, history = expand_items(elements[:-1] if wants_item else elements)
    if history is not None:
        fields["input"] = msgspec.Raw(encode_utf8([msgspec.Raw(element) for element in elements]))
        raw = encode_utf8(fields)
    request = AgentRequest(endpoint, raw, fields, elements)
    request.wants_item, request.resumed = wants_item, history
    return request


def _fitted_thinking(limit: int, thinking: Any, wanted: int | None) -> dict[str, Any]:
    """Return the `thinking` field for a reply of `limit` tokens; empty if it needs no change.

    Its budget must be below the limit: it keeps its share of the `wanted` tokens.
    """
    fields = cast("dict[str, Any]", thinking) if isinstance(thinking, dict) else {}
    budget = fields.get("budget_tokens")
    if not isinstance(budget, int) or budget < limit:
        return {}
    if limit <= LEAST_BUDGET:
        return {"thinking": {"type": "disabled"}}
    share = limit * budget // max(wanted or 0, budget + 1)
    return {"thinking": {**fields, "budget_tokens": max(LEAST_BUDGET, share)}}


def _split(messages: bytes | msgspec.Raw) -> list[bytes]:
    return [bytes(element) for element in _elements.decode(messages)]


def _count_leading(elements: Sequence[bytes]) -> int:
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
    starts = [
        place for place, _ in decode_placed([msgspec.json.decode(raw) for raw in rest], endpoint.dialect)
    ]
    ends = [*starts[1:], len(rest)]
    return [
        Unit(rest[start] if end == start + 1 else b"[" + b",".join(rest[start:end]) + b"]", lead + start)
        for start, end in zip(starts, ends, strict=True)
    ]


def _turns(elements: Sequence[bytes], start: int) -> list[Unit]:
    """Return contents as units; consecutive ones of the model, chunks of a stream, are one unit."""
    contents = [fields_of(msgspec.json.decode(raw) if b'"model"' in raw else None) for raw in elements]
    units: list[Unit] = []
    for models, places in groupby(range(len(elements)), lambda at: contents[at].get("role") == "model"):
        run = list(places)
        if models and len(run) > 1:
            turn = encode_utf8(one_turn([contents[at] for at in run]))
            units.append(Unit(turn, start + run[0]))
        else:
            units += [Unit(elements[at], start + at) for at in run]
    return units
