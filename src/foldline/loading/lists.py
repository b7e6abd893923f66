"""Lists of native messages, as callers give them; a checkpoint of ours at the head is a boundary again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.core.checkpoint.checkpoint import Recognised, checkpoint_split_off, recognise
from foldline.core.checkpoint.page import parse
from foldline.core.ledger.text.origin import own
from foldline.core.log.entries import Checkpoint
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.secrets.redact import redact
from foldline.dialects.writer import OPENING
from foldline.loading.chain import Loaded, PlacedBoundary, Source, chain
from foldline.transcripts.forms.lists import decode_list


def from_messages(messages: Sequence[Any], counter: Counter, *, dialect: str | None = None) -> Loaded:
    """Read a list of messages; a checkpoint of ours at its head becomes a boundary again.

    Those of another library's form become Chat Completions, and a warning says so.
    Raises DialectError naming the message that is not of the dialect.
    """
    found = decode_list(messages, dialect)
    decoded = [message for _, message in found.placed]
    source = Source(decoded, found.dialect)
    loaded = chain(
        with_checkpoint(source, counter) or Source(decoded, found.dialect, _order(decoded)), counter
    )
    loaded.number_by([place for place, _ in found.placed])
    loaded.given = None if found.translated else messages
    loaded.warnings = found.warnings
    return loaded


def _order(messages: Sequence[Message]) -> Sequence[int]:
    """Leave out the user message that we put before an assistant's where Anthropic wants one."""
    opened = bool(messages) and messages[0].role == "user" and messages[0].text == OPENING
    return range(int(opened), len(messages))


# ---- a checkpoint of ours


def with_checkpoint(source: Source, counter: Counter) -> Source | None:
    """Return a source in which a checkpoint of ours at its head is a boundary; None where there is none."""
    messages = [checkpoint_split_off(message) for message in source.messages]
    found = recognise(messages)
    if found is None:
        return None
    boundary = _boundary(messages, found, counter)
    own: set[int] = {found.index}
    if found.more:  # the message continues after the checkpoint
        whole = messages[found.index]
        messages[found.index] = msgspec.structs.replace(whole, parts=whole.parts[1:], native=None)
        own = set()
    taken = {*own, *([found.index + 1] if found.ack else []), *found.quoted}
    rest = [index for index in range(len(messages)) if index not in taken]
    before = [index for index in rest if index < found.index]
    behind = [index for index in rest if index >= found.index]
    return msgspec.structs.replace(
        source, messages=messages, order=[*before, *found.quoted, *behind], boundaries=[boundary]
    )


def _boundary(messages: Sequence[Message], found: Recognised, counter: Counter) -> PlacedBoundary:
    whole = messages[found.index]
    message = msgspec.structs.replace(whole, parts=whole.parts[:1])
    follows = messages[found.index + 1] if found.ack and found.index + 1 < len(messages) else None
    ack = follows.text if follows is not None else None
    checkpoint = _checkpoint(found, message, counter, ack=ack, position=found.position)
    at = max(found.index + int(found.ack), *found.quoted, found.index) + (0 if found.more else 1)
    return PlacedBoundary(at, checkpoint, quoted=found.quoted, ledger=ledger_in(found.summary))


def through_another_tool(summary: str, counter: Counter) -> Checkpoint | None:
    """Return our checkpoint that another tool was given as its own summary; None for any other text."""
    message = Message("user", (Text(summary),))
    ours = recognise([message])
    return None if ours is None else _checkpoint(ours, message, counter)


def _checkpoint(found: Recognised, message: Message, counter: Counter, **more: Any) -> Checkpoint:
    return Checkpoint(
        found.text,
        found.summary,
        message.role,
        pins=found.pins,
        marks=found.marks,
        live=found.live,
        carried=found.carried,
        tokens=message_tokens(message, counter),
        **more,
    )


def ledger_in(summary: str, before: Sequence[Message] = ()) -> dict[str, Any]:
    """Return the facts that a summary of ours holds, in builtins.

    Of its rules those count that the user said in the messages `before` it, where there are any: a tool whose
    model wrote the summary may have been told to write one of ours.
    """
    ledger = parse(summary)
    if before:
        said = "\n".join(redact(span) for message in before for span in own(message))
        rules = tuple(fact for fact in ledger.constraints if fact.text in said)
        ledger = msgspec.structs.replace(ledger, constraints=rules)
    return msgspec.to_builtins(ledger)
