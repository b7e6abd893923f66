"""Read lists of native messages; a checkpoint of ours at the head becomes a boundary again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.core.checkpoint.checkpoint import as_message, checkpoint_split_off, recognise
from foldline.core.checkpoint.page import parse
from foldline.core.ledger.text.origin import own
from foldline.core.log.entries import Checkpoint
from foldline.core.log.messages import Message
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.secrets.redact import redact
from foldline.dialects.writer import OPENING
from foldline.loading.chain import Loaded, PlacedBoundary, Source, chain
from foldline.transcripts.forms.lists import decode_list


def from_messages(messages: Sequence[Any], counter: Counter, *, dialect: str | None = None) -> Loaded:
    """Read a list of messages; a checkpoint of ours at its head becomes a boundary again.

    Messages in another library's form become Chat Completions, with a warning. Raises DialectError with the
    index of a message that is not in the dialect.
    """
    result = decode_list(messages, dialect)
    decoded = [message for _, message in result.placed]
    # without the opening user message that we add for Anthropic before a leading reply
    opened = bool(decoded) and decoded[0].role == "user" and decoded[0].text == OPENING
    whole = Source(decoded, result.dialect)
    rest = Source(decoded, result.dialect, order=range(int(opened), len(decoded)))
    loaded = chain(with_checkpoint(whole, counter) or rest, counter)
    loaded.number_by([place for place, _ in result.placed])
    loaded.given = None if result.translated else messages
    loaded.warnings = result.warnings
    return loaded


# ---- a checkpoint of ours


def with_checkpoint(source: Source, counter: Counter) -> Source | None:
    """Return the source with our checkpoint at its head as a boundary; None if there is no checkpoint."""
    messages = [checkpoint_split_off(message) for message in source.messages]
    found = recognise(messages)
    if found is None:
        return None
    ack_at = found.index + (found.checkpoint.ack is not None)
    at = max(ack_at, *found.quoted, found.index) + (0 if found.more else 1)
    checkpoint = _counted(found.checkpoint, counter)
    boundary = PlacedBoundary(at, checkpoint, quoted=found.quoted, ledger=ledger_in(checkpoint.summary))
    taken = {*found.quoted, *range(found.index + 1, ack_at + 1)}
    if found.more:  # the message continues after the checkpoint
        message = messages[found.index]
        messages[found.index] = msgspec.structs.replace(message, parts=message.parts[1:], native=None)
    else:
        taken.add(found.index)
    rest = [index for index in range(len(messages)) if index not in taken]
    before = [index for index in rest if index < found.index]
    behind = [index for index in rest if index >= found.index]
    return msgspec.structs.replace(
        source, messages=messages, order=[*before, *found.quoted, *behind], boundaries=[boundary]
    )


def through_another_tool(summary: str, counter: Counter) -> Checkpoint | None:
    """Return our checkpoint if another tool stored it as its own summary, else None."""
    found = recognise([as_message(summary, "user")])
    return None if found is None else _counted(found.checkpoint, counter)


def _counted(checkpoint: Checkpoint, counter: Counter) -> Checkpoint:
    tokens = message_tokens(as_message(checkpoint.text, checkpoint.role), counter)
    return msgspec.structs.replace(checkpoint, tokens=tokens)


def ledger_in(summary: str, before: Sequence[Message] = ()) -> dict[str, Any]:
    """Return the facts in a summary of ours, in builtins.

    If there are messages `before` it, only rules that the user stated in them count: another tool's model may
    have been instructed to imitate our form.
    """
    ledger = parse(summary)
    if before:
        words = "\n".join(redact(span) for message in before for span in own(message))
        constraints = tuple(fact for fact in ledger.constraints if fact.text in words)
        ledger = msgspec.structs.replace(ledger, constraints=constraints)
    return msgspec.to_builtins(ledger)
