"""What a dialect is: its properties, and the way of a message in and out that all dialects share.

A dialect is one folder here. It checks and mends each message by itself (`form.py`), reads (`read.py`) and
writes (`write.py`; where messages hold blocks, `blocks.py` says how both are done). Its `dialect.py` puts
these together in a class that fills in what differs, and checks the list. All else asks a dialect for a
property, or for one of the steps below, and never for its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from foldline.core.log.dialects import Traits, state
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Native, Part, Role, Text, Usage
from foldline.dialects.edits import Rendering, in_words, replacements, with_edits, with_served_told
from foldline.dialects.payload import Fields, as_sent, fields_of, is_list, items_of, parse, read, read_any
from foldline.dialects.values import Losses, Problem, Rendered, Say, check_text, reporter
from foldline.dialects.writer import Writer
from foldline.errors import DialectError, did_you_mean

Slot = tuple[Fields, str]  # an object that holds a call's id, and the key of it
UNSENT = ""  # the key of an id that no message holds: the dialect needs none, and names the call itself
Put = Callable[[list[Any]], Any]  # puts other messages into a reply

# carried by the role, the parts or the pairing, or a provider's notes about its reply; all else is lost
_CARRIED = frozenset(
    {
        "role", "content", "tool_calls", "tool_call_id", "function_call", "refusal",
        "reasoning_content", "reasoning", "reasoning_details", "audio",
        "id", "type", "model", "usage", "stop_reason", "stop_sequence",
    }
)  # fmt: skip
_ON_BLOCKS = ("cache_control", "citations", "cachePoint")


class Dialect(ABC):
    """A stored message shape: native messages in and out, without loss, and its documented rules."""

    name: ClassVar[str]
    traits: ClassVar[Traits]
    element: ClassVar[str] = "message"  # what its list holds
    lists: ClassVar[str] = "messages"  # the field of a request that holds the list
    content: ClassVar[str] = "content"  # the field of a message that holds what it says
    bare: ClassVar[bool] = False  # an element needs no role
    templated: ClassVar[bool] = True  # a server may put its messages into a model's own template
    marks_cache: ClassVar[bool] = False  # a provider caches what was marked, not every prompt
    references: ClassVar[bool] = False  # a call may be a reference to what the provider keeps
    compaction_beta: ClassVar[str] = ""  # the beta that a request needs for `compaction`
    looked: ClassVar[Callable[[Say, Fields], Fields]]  # of `form.py`
    edit_native: ClassVar[Callable[[Any, Mapping[int, Part | None], int | None], Any | None]]  # of `write.py`

    # ---- messages in

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read one native message (dict, JSON bytes or SDK object); it is kept as received beside its parts.

        Raises DialectError (with `index`) for anything else.
        """
        body, raw = read(payload, index)
        return self._message(body, raw, index)

    @abstractmethod
    def decode_reply(self, reply: Any) -> Message:
        """Read a provider's whole reply in the form to send back: message, usage, model, why it stopped.

        A bare message is read as by `decode`. Raises DialectError for a reply without a message.
        """

    def decode_system(self, system: Any) -> Message:
        """Read a system prompt given separately as a system message; rendered, it is `system` again."""
        value, raw = read_any(system)
        return Message("system", self._system_parts(as_sent(value, raw)), native=Native(self.name, raw))

    def spans(self, payloads: Sequence[Any]) -> list[tuple[int, int]]:
        """Return where each message of a list begins and ends."""
        return [(place, place + 1) for place in range(len(payloads))]

    def elements(self, native: Native) -> int:
        """Return how many elements of a list a message takes."""
        del native
        return 1

    @abstractmethod
    def recognises(self, payload: Any) -> bool:
        """Return whether a native message can only be in this dialect."""

    def is_bare_text(self, payload: Any) -> bool:
        """Return whether a recognised message has nothing but texts, as a malformed one of others may."""
        del payload
        return False

    @abstractmethod
    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a whole reply, as an SDK or an API returns it."""

    def adopt(self, payload: Any, salt: str) -> Any:
        """Return plain text in this dialect's form, with an id made from `salt`; else the same object."""
        del salt
        return payload

    @abstractmethod
    def _parts(self, body: Any, index: int | None) -> tuple[Role, Sequence[Part]]:
        """Return the role and the parts of a message."""

    @abstractmethod
    def _system_parts(self, system: Any) -> tuple[Text, ...]:
        """Return the texts of a system prompt; raises DialectError."""

    def _message(self, body: Any, raw: bytes, index: int | None) -> Message:
        role, parts = self._parts(as_sent(body, raw), index)
        return Message(role, tuple(parts), native=Native(self.name, raw))

    # ---- messages checked and mended

    def look(self, say: Say, body: Fields, salt: str = "") -> Fields:
        """Check a message by itself, and return it as it may be sent (`form.py`).

        `say(rule, text)` takes what is wrong; `salt` makes the id of a message that lacks one.
        """
        del salt
        return type(self).looked(say, body)

    @abstractmethod
    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return where a mended message holds the ids of its calls, and those that its results answer."""

    def in_reply(self, body: Fields) -> tuple[list[Any], Put]:
        """Return the messages of a reply, and a function that puts others in their place."""
        return [body], lambda new: new[0]

    def is_models(self, body: Fields) -> bool:
        """Return whether a mended message is the model's."""
        return body.get("role") == "assistant"

    # ---- messages out

    def render(self, items: Rendering, *, whole: bool = False) -> Rendered:
        """Write messages, each with its edits, as native ones; `whole`: they are a complete request.

        Its own messages come back as received, edited ones with just those parts changed; all others are
        encoded. `warnings` names and counts what could not be carried. Raises DialectError for an edit of a
        part that does not exist.
        """
        items = items if self.references else in_words(items)
        bodies = [self._body(message, index) for index, (message, _) in enumerate(items)]
        pairs = zip(items, bodies, strict=True)
        writer = self._writer([(message, body) for (message, _), body in pairs if body is not None])
        for index, ((message, edits), body) in enumerate(zip(items, bodies, strict=True)):
            if body is not None and self._is_system(body):
                writer.native_system(self._edited_system(message, body, edits, index) if edits else body)
            elif body is not None and not self._moves(message):
                new = self._edited(body, replacements(edits), index) if edits else body
                if new is not None:
                    writer.native(new, message)
            elif body is not None and writer.at_head and not edits:  # it moves to the system prompt
                writer.native_system(body.get(self.content) or "")
            elif (kept := with_edits(message, edits, index)) is not None:
                lost_fields(message.native, writer.losses, index)
                told = with_served_told(kept, self.name, writer.losses)
                writer.add(msgspec.structs.replace(told, native=message.native), message)
        return writer.finish(whole=whole)

    def _body(self, message: Message, index: int) -> Any:
        """Return a message (or system prompt) as received in this dialect; None for any other message."""
        native = message.native
        return parse(native.raw, index) if native is not None and native.dialect == self.name else None

    def _is_system(self, body: Any) -> bool:
        """Return whether a body is a system prompt that was given separately."""
        return not isinstance(body, dict)

    def _moves(self, message: Message) -> bool:
        """Return whether a request cannot hold a message of this role."""
        del message
        return False

    def _edited_system(self, message: Message, system: Any, edits: Sequence[Edit], index: int) -> Any:
        del system
        kept = with_edits(message, edits, index)
        return kept.text if kept is not None else ""

    @abstractmethod
    def _writer(self, received: Sequence[tuple[Message, Any]]) -> Writer:
        """Return a writer; `received` are the messages of this dialect, each with its native form."""

    def _edited(self, body: Any, edits: Mapping[int, Part | None], index: int) -> Any | None:
        """Return a native message with some of its parts replaced (None: removed); None if nothing is."""
        return type(self).edit_native(body, edits, index)

    def lose(self, body: Any, losses: Losses) -> None:
        """Count the fields of a native message that no part carries: cache marks, an app's own keys."""
        fields = fields_of(body)
        content = fields.get("content")
        for key, value in fields.items():
            introduced = key == "name" and fields.get("role") == "user" and _has_text(content)
            if key not in _CARRIED and value is not None and not introduced:
                losses.field(key)
        for block in map(fields_of, items_of(content)):
            for key in _ON_BLOCKS:
                if block.get(key):
                    losses.field(key)

    # ---- a list that only grows (`native_view.py`)

    def more(self, messages: list[Any]) -> list[Any]:
        """Return the last message of a request and those that follow it, as the request takes them."""
        return messages

    def is_open(self, message: Message) -> bool:
        """Return whether what is sent of a message depends on what follows."""
        del message
        return False

    # ---- compaction by the provider

    def compaction(self, tokens: int) -> Fields:
        """Return the fields of a request that has the provider compact it on its server.

        It does so where the input takes more than `tokens`. {} where the API cannot, or not at so few.
        """
        del tokens
        return {}

    # ---- in turn (`in_turn.py`)

    def turn(self, message: Fields) -> str:
        """Return who speaks in a message: system, user, assistant, tool, or "item" for none of them."""
        role = str(message.get("role"))
        return "tool" if role == "function" else role

    def said(self, role: str, text: str) -> Fields:
        """Return a message of one text."""
        return {"role": role, "content": text}

    def text_part(self, role: str, text: str) -> Fields:
        """Return a text as a part of a message's content."""
        del role
        return {"type": "text", "text": text}

    # ---- rules

    def validate(self, messages: Sequence[Any], system: Any = None) -> list[Problem]:
        """Return every documented rule that a list breaks, in its order; empty if it may be sent.

        Reads dicts, JSON bytes and SDK objects; never raises.
        """
        problems: list[Problem] = []
        beside = reporter(problems, -1)
        self._check_system(beside, system)
        check_text(beside, system)
        if not is_list(messages) or not messages:
            beside("list", f"{self.lists} must be a list with at least one {self.element}")
            return problems
        bodies: list[tuple[int, Fields]] = []
        for index, payload in enumerate(messages):
            say = reporter(problems, index)
            try:
                body, _ = read(payload, index)
            except DialectError as error:
                say(self.element, str(error))
                continue
            check_text(say, body)
            bodies.append((index, body))
        for index, body in bodies:
            self.look(reporter(problems, index), body)
        self._check(problems, bodies, len(messages) - 1)
        self._check_whole(beside, [body for _, body in bodies], system)
        return sorted(problems, key=lambda problem: problem.index)

    @abstractmethod
    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        """Check what the messages, each with its index, are to each other; `last` is the end of the list."""

    def _check_system(self, say: Say, system: Any) -> None:
        if system is not None and not isinstance(system, str):
            say("system", "the system prompt must be a string")

    def _check_whole(self, say: Say, bodies: Sequence[Fields], system: Any) -> None:
        """Check what counts over messages and system prompt together."""
        del say, bodies, system


def _has_text(content: Any) -> bool:
    return isinstance(content, str) or any("text" in fields_of(block) for block in items_of(content))


def replied(message: Message, usage: Usage | None, model: Any, stop: str | None) -> Message:
    """Return the message of a reply with what came beside it."""
    model = model if isinstance(model, str) else None
    return msgspec.structs.replace(message, usage=usage, model=model, stop=stop)


_DIALECTS: dict[str, Dialect] = {}


def define(*dialects: Dialect) -> None:
    """Make dialects known, in the order in which detection asks them; the core learns their properties."""
    for dialect in dialects:
        _DIALECTS[dialect.name] = dialect
        state(dialect.name, dialect.traits)


def known() -> Sequence[Dialect]:
    """Return all dialects."""
    return tuple(_DIALECTS.values())


def names() -> tuple[str, ...]:
    """Return the names of all dialects."""
    return tuple(sorted(_DIALECTS))


def get(name: str) -> Dialect:
    """Find a dialect by name; raises DialectError for an unknown one."""
    if name not in _DIALECTS:
        hint = did_you_mean(name, names())
        raise DialectError(f"unknown dialect {name!r}{hint}; known are {', '.join(names())}")
    return _DIALECTS[name]


def native_dialect(message: Message) -> Dialect | None:
    """Return the dialect that a message was received in; None for a made message."""
    return _DIALECTS.get(message.native.dialect) if message.native is not None else None


def lost_fields(native: Native | None, losses: Losses, index: int | None = None) -> None:
    """Count the fields of a native message that a conversion to another dialect leaves out."""
    if native is not None and native.dialect in _DIALECTS:
        _DIALECTS[native.dialect].lose(parse(native.raw, index), losses)
