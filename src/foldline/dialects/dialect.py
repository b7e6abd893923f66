"""The base class of dialects: their properties, and reading, rendering and validating messages.

A dialect is a folder: `form.py` checks and repairs single messages, `read.py` and `write.py` decode and
encode them (`blocks.py` does both for messages of blocks), and `dialect.py` combines these in a subclass that
also checks whole lists. Other code uses the properties and methods below, and never compares dialect names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from foldline.core.log.dialects import Traits, state
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Native, Part, Role, Text, Usage
from foldline.dialects.edits import Rendering, replacements, results_in_words, with_edits, with_served_as_text
from foldline.dialects.forms import text_part
from foldline.dialects.payload import Fields, as_sent, fields_of, is_list, items_of, parse, read, read_any
from foldline.dialects.values import Losses, Problem, Rendered, Report, check_text, reporter
from foldline.dialects.writer import Writer
from foldline.errors import DialectError, did_you_mean

Slot = tuple[Fields, str]  # an object with a call id, and the key of the id
UNSENT = ""  # key of a generated id that is not in the message
Replace = Callable[[list[Any]], Any]  # returns a reply with other messages

# converted as role, parts or call ids, or metadata of a reply; other fields are lost
_CARRIED = frozenset(
    {
        "role", "content", "tool_calls", "tool_call_id", "function_call", "refusal",
        "reasoning_content", "reasoning", "reasoning_details", "audio",
        "id", "type", "model", "usage", "stop_reason", "stop_sequence",
    }
)  # fmt: skip
_ON_BLOCKS = ("cache_control", "citations", "cachePoint")


class Dialect(ABC):
    """A message format: lossless reading and writing of native messages, and the documented rules."""

    name: ClassVar[str]
    traits: ClassVar[Traits]
    element: ClassVar[str] = "message"  # what an element of its list is called
    lists: ClassVar[str] = "messages"  # the field of a request that holds the list
    content: ClassVar[str] = "content"  # the field of a message with its content
    bare: ClassVar[bool] = False  # an element needs no role
    templated: ClassVar[bool] = True  # servers may apply a chat template
    marks_cache: ClassVar[bool] = False  # providers cache only marked prefixes
    references: ClassVar[bool] = False  # a call may refer to an item stored by the provider
    compaction_beta: ClassVar[str] = ""  # beta header for `compaction`
    message_check: ClassVar[Callable[[Report, Fields], Fields]]  # in `form.py`
    edit_native: ClassVar[Callable[[Any, Mapping[int, Part | None], int | None], Any | None]]  # in `write.py`
    moves_system: ClassVar[bool] = False  # a request has no system messages, only a system prompt

    # ---- messages in

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read one native message (dict, JSON bytes or SDK object); the message keeps it as received.

        Raises DialectError (with `index`) for anything else.
        """
        body, raw = read(payload, index)
        return self._message(body, raw, index)

    @abstractmethod
    def decode_reply(self, reply: Any) -> Message:
        """Read a complete reply: the message, in a form to send back, its usage, model and stop reason.

        A bare message is read like in `decode`. Raises DialectError for a reply without a message.
        """

    def decode_system(self, system: Any) -> Message:
        """Read a separate system prompt as a system message; `render` returns it as `system`."""
        value, raw = read_any(system)
        return Message("system", self._system_parts(as_sent(value, raw)), native=Native(self.name, raw))

    def spans(self, payloads: Sequence[Any]) -> list[tuple[int, int]]:
        """Return the start and end of each message in a list of elements."""
        return [(place, place + 1) for place in range(len(payloads))]

    def elements(self, native: Native) -> int:
        """Return the number of list elements of a message."""
        del native
        return 1

    @abstractmethod
    def recognises(self, payload: Any) -> bool:
        """Return whether a native message is valid in this dialect only."""

    def is_bare_text(self, payload: Any) -> bool:
        """Return whether a recognised message contains only texts: it may be malformed in another dialect."""
        del payload
        return False

    @abstractmethod
    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a complete reply of an API or SDK."""

    def adopt(self, payload: Any, salt: str) -> Any:
        """Convert plain text to this dialect, with an id derived from `salt`; return others unchanged."""
        del salt
        return payload

    @abstractmethod
    def _parts(self, body: Any, index: int | None) -> tuple[Role, Sequence[Part]]:
        """Return the role and the parts of a message."""

    def _system_parts(self, system: Any) -> tuple[Text, ...]:
        """Return the texts of a system prompt; raises DialectError."""
        if not isinstance(system, str):
            raise DialectError("the system prompt must be a string")
        return (Text(system),)

    def _message(self, body: Any, raw: bytes, index: int | None) -> Message:
        role, parts = self._parts(as_sent(body, raw), index)
        return Message(role, tuple(parts), native=Native(self.name, raw))

    # ---- messages checked and mended

    def check_message(self, report: Report, body: Fields, salt: str = "") -> Fields:
        """Report broken rules of a single message and return it repaired (`form.py`).

        `salt`: seed of the id of a message without one.
        """
        del salt
        return type(self).message_check(report, body)

    @abstractmethod
    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return the call ids of a repaired message: those of its calls and those of its results."""

    def reply_messages(self, body: Fields) -> tuple[list[Any], Replace]:
        """Return the messages of a reply, and a function that replaces them."""
        return [body], lambda new: new[0]

    def is_models(self, body: Fields) -> bool:
        """Return whether a repaired message was written by the model."""
        return body.get("role") == "assistant"

    # ---- messages out

    def render(self, items: Rendering, *, whole: bool = False) -> Rendered:
        """Return messages, each with its edits, as native messages; `whole`: the list is a complete request.

        Messages of this dialect are returned as received, with only edited parts changed; others are encoded.
        `warnings` counts what was left out or changed. Raises DialectError for an invalid edit.
        """
        items = items if self.references else results_in_words(items)
        bodies = [self._body(message, index) for index, (message, _) in enumerate(items)]
        received: list[tuple[Message, Any]] = []  # with the call ids that are written
        for index, ((message, edits), body) in enumerate(zip(items, bodies, strict=True)):
            if body is not None:
                received.append(((with_edits(message, edits, index) if edits else None) or message, body))
        writer = self._writer(received)
        for index, ((message, edits), body) in enumerate(zip(items, bodies, strict=True)):
            if body is not None and self._is_system(body):
                writer.native_system(self._edited_system(message, body, edits, index) if edits else body)
            elif body is not None and not (self.moves_system and message.role in ("system", "developer")):
                new = self._edited(body, replacements(edits), index) if edits else body
                if new is not None:
                    writer.native(new, message)
            elif body is not None and writer.at_head and not edits:  # moves to the system prompt
                writer.native_system(body.get(self.content) or "")
            elif (edited := with_edits(message, edits, index)) is not None:
                lost_fields(message.native, writer.losses, index)
                edited = with_served_as_text(edited, self.name, writer.losses)
                writer.add(msgspec.structs.replace(edited, native=message.native), message)
        return writer.finish(whole=whole)

    def _body(self, message: Message, index: int) -> Any:
        """Return the native message (or system prompt) in this dialect; None for messages of others."""
        native = message.native
        return parse(native.raw, index) if native is not None and native.dialect == self.name else None

    def _is_system(self, body: Any) -> bool:
        """Return whether a body is a separate system prompt."""
        return not isinstance(body, dict)

    def _edited_system(self, message: Message, system: Any, edits: Sequence[Edit], index: int) -> Any:
        del system
        edited = with_edits(message, edits, index)
        return edited.text if edited is not None else ""

    @abstractmethod
    def _writer(self, received: Sequence[tuple[Message, Any]]) -> Writer:
        """Return a writer; `received`: the messages of this dialect with their native forms."""

    def _edited(self, body: Any, edits: Mapping[int, Part | None], index: int) -> Any | None:
        """Return a native message with some parts replaced (None: removed); None if no part is left."""
        return type(self).edit_native(body, edits, index)

    def count_losses(self, body: Any, losses: Losses) -> None:
        """Count the fields of a native message that are not in its parts: cache marks, custom keys."""
        fields = fields_of(body)
        content = fields.get("content")
        for key, value in fields.items():
            in_text = key == "name" and fields.get("role") == "user" and _has_text(content)
            if key not in _CARRIED and value is not None and not in_text:
                losses.field(key)
        for block in map(fields_of, items_of(content)):
            for key in _ON_BLOCKS:
                if block.get(key):
                    losses.field(key)

    # ---- growing lists (`native_view.py`)

    def more(self, messages: list[Any]) -> list[Any]:
        """Return the last message of a request and new ones in the form that a request requires."""
        return messages

    def is_open(self, message: Message) -> bool:
        """Return whether the rendered form of a message depends on later messages."""
        del message
        return False

    # ---- compaction by the provider

    def compaction(self, tokens: int) -> Fields:
        """Return request fields that make the provider compact an input of more than `tokens`.

        {} if the API has no compaction, or requires a higher threshold.
        """
        del tokens
        return {}

    # ---- alternating roles (`in_turn.py`)

    def speaker(self, message: Fields) -> str:
        """Return the role of a message: system, user, assistant, tool; "item" if it has none."""
        role = str(message.get("role"))
        return "tool" if role == "function" else role

    def text_message(self, role: str, text: str) -> Fields:
        """Return a message with a single text."""
        return {"role": role, "content": text}

    def text_part(self, role: str, text: str) -> Fields:
        """Return a text part of a message."""
        del role
        return text_part(text)

    # ---- rules

    def validate(self, messages: Sequence[Any], system: Any = None) -> list[Problem]:
        """Return the documented rules that a list breaks, ordered by message; [] if it is valid.

        Accepts dicts, JSON bytes and SDK objects; never raises.
        """
        problems: list[Problem] = []
        report_list = reporter(problems, -1)
        self._check_system(report_list, system)
        check_text(report_list, system)
        if not is_list(messages) or not messages:
            report_list("list", f"{self.lists} must be a list with at least one {self.element}")
            return problems
        bodies: list[tuple[int, Fields]] = []
        for index, payload in enumerate(messages):
            report = reporter(problems, index)
            try:
                body, _ = read(payload, index)
            except DialectError as error:
                report(self.element, str(error))
                continue
            check_text(report, body)
            bodies.append((index, body))
        for index, body in bodies:
            self.check_message(reporter(problems, index), body)
        self._check(problems, bodies, len(messages) - 1)
        self._check_whole(report_list, [body for _, body in bodies], system)
        return sorted(problems, key=lambda problem: problem.index)

    @abstractmethod
    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        """Check messages (with their indexes) against each other; `last`: last index of the list."""

    def _check_system(self, report: Report, system: Any) -> None:
        if system is not None and not isinstance(system, str):
            report("system", "the system prompt must be a string")

    def _check_whole(self, report: Report, bodies: Sequence[Fields], system: Any) -> None:
        """Check rules about messages and system prompt together."""
        del report, bodies, system


def _has_text(content: Any) -> bool:
    return isinstance(content, str) or any("text" in fields_of(block) for block in items_of(content))


def replied(message: Message, usage: Usage | None, model: Any, stop: str | None) -> Message:
    """Return a message with the metadata of its reply."""
    model = model if isinstance(model, str) else None
    return msgspec.structs.replace(message, usage=usage, model=model, stop=stop)


_DIALECTS: dict[str, Dialect] = {}


def register(*dialects: Dialect) -> None:
    """Register dialects, in the order of detection, and their traits in the core."""
    for dialect in dialects:
        _DIALECTS[dialect.name] = dialect
        state(dialect.name, dialect.traits)


def all_dialects() -> Sequence[Dialect]:
    """Return all dialects, in the order of detection."""
    return tuple(_DIALECTS.values())


def names() -> tuple[str, ...]:
    """Return the names of all dialects, sorted."""
    return tuple(sorted(_DIALECTS))


def get(name: str) -> Dialect:
    """Return a dialect; raises DialectError for an unknown name."""
    if name not in _DIALECTS:
        hint = did_you_mean(name, names())
        raise DialectError(f"unknown dialect {name!r}{hint}; known are {', '.join(names())}")
    return _DIALECTS[name]


def native_dialect(message: Message) -> Dialect | None:
    """Return the dialect of a received message; None for a made message."""
    return _DIALECTS.get(message.native.dialect) if message.native is not None else None


def lost_fields(native: Native | None, losses: Losses, index: int | None = None) -> None:
    """Count the fields of a native message that are lost in a conversion."""
    if native is not None and native.dialect in _DIALECTS:
        _DIALECTS[native.dialect].count_losses(parse(native.raw, index), losses)
