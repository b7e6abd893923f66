"""Whether a fold changes what the model does: its newest decisions, made again from both contexts.

    whole    s1 s2 s3 s4 s5 | a6 ...       a6: a reply that is recorded, here with calls
    folded       checkpoint s4 s5 | a6 ...

The context of a recorded reply is sent again, once as it was and once as it is with the fold. The decision is
unchanged if both answers call the same tools with the same arguments, or both call none. Only replies after
the cut are used: the checkpoint would reveal the answer of earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from foldline.core.cut.pairing import continues
from foldline.core.log.codec import encode
from foldline.core.log.entries import Certificate
from foldline.core.log.messages import Message, ToolCall
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem, Item

_COMPARED = 200  # characters: longer arguments are not compared, since no model writes a long text twice

Action = tuple[tuple[str, bytes], ...]
"""The calls of a reply, sorted: each one's tool and arguments."""


class Decision(msgspec.Struct, frozen=True):
    """A recorded reply: what it did, and its context in the whole and in the folded view."""

    recorded: Action
    whole: Sequence[Item]
    folded: Sequence[Item]

    @property
    def tokens(self) -> int:
        """The tokens of both requests in Foldline's own count, without system prompt and tools."""
        return sum(item.tokens for item in (*self.whole, *self.folded))


class DecidedTwice(msgspec.Struct, frozen=True):
    """What a model does from the whole and from the folded context."""

    whole: Action
    folded: Action


def decisions(before: ViewState, after: ViewState, most: int) -> list[Decision]:
    """Return the newest decisions after a fold's checkpoint, `most` at most, oldest first."""
    whole, folded = before.items(), after.items()
    places = {item.entry.id: at for at, item in enumerate(whole) if not isinstance(item, AddedItem)}
    start = next((at for at, item in enumerate(folded) if isinstance(item, AddedItem)), len(folded))
    result: list[Decision] = []
    for at in range(len(folded) - 1, start, -1):
        item = folded[at]
        roles = folded[at - 1].message.role, item.message.role
        begins_reply = roles in (("user", "assistant"), ("tool", "assistant"))
        if len(result) < most and not isinstance(item, AddedItem) and begins_reply:
            context = whole[: places[item.entry.id]]
            result.append(Decision(action_of(_reply(folded, at)), context, folded[:at]))
    return result[::-1]


def _reply(items: Sequence[Item], at: int) -> list[Message]:
    """Return the messages of the reply that begins at an index."""
    reply = [items[at].message]
    for item in items[at + 1 :]:
        if not continues(item.message, reply[-1]):
            break
        reply.append(item.message)
    return reply


def action_of(messages: Iterable[Message]) -> Action:
    """Return what a reply does: its calls, without long texts in their arguments."""
    return tuple(sorted((call.name, _arguments(call)) for message in messages for call in message.calls))


def _arguments(call: ToolCall) -> bytes:
    arguments = call.arguments
    if isinstance(arguments, dict):
        short = {k: v for k, v in arguments.items() if not isinstance(v, str) or len(v) <= _COMPARED}
        arguments = dict(sorted(short.items()))
    return encode(arguments)


def certificate(
    repeated: Sequence[Decision], answers: Sequence[DecidedTwice | None], model: str, price: float | None
) -> Certificate:
    """Return the certificate of decisions; an answer of None could not be obtained."""
    pairs = [(one.recorded, answer) for one, answer in zip(repeated, answers, strict=True) if answer]
    return Certificate(
        decisions=len(pairs),
        unchanged=sum(answer.whole == answer.folded for _, answer in pairs),
        whole_as_recorded=sum(recorded == answer.whole for recorded, answer in pairs),
        folded_as_recorded=sum(recorded == answer.folded for recorded, answer in pairs),
        failed=len(repeated) - len(pairs),
        model=model,
        price=price,
    )
