"""Whether a fold changes what the model does: its newest decisions, made again from both contexts.

    whole    s1 s2 s3 s4 s5 | a6 ...       a6: a reply that is recorded, here with calls
    folded       checkpoint s4 s5 | a6 ...

What stood before a recorded reply is sent again, once as it was and once as it is with the fold. The decision
is unchanged where both answers call the same tools with the same arguments, or both call none. Only replies
behind the cut are made again: of an earlier one the checkpoint would tell the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from foldline.core.cut.pairing import continues
from foldline.core.log.codec import encode
from foldline.core.log.entries import Certificate
from foldline.core.log.messages import Message, ToolCall
from foldline.core.view import AddedItem, Item, ViewState, item_tokens

_COMPARED = 200  # characters of an argument up to which it is compared: no model writes a long text twice

Action = tuple[tuple[str, bytes], ...]
"""The calls of a reply, in no order: each one's tool and arguments."""


class Decision(msgspec.Struct, frozen=True):
    """A recorded reply: what it did, and what stood before it in the whole and in the folded view."""

    recorded: Action
    whole: Sequence[Item]
    folded: Sequence[Item]

    @property
    def tokens(self) -> int:
        """What both requests take, in Foldline's own count, without system prompt and tools."""
        return sum(map(item_tokens, self.whole)) + sum(map(item_tokens, self.folded))


class DecidedTwice(msgspec.Struct, frozen=True):
    """What a model does from the whole and from the folded context."""

    whole: Action
    folded: Action


def decisions(before: ViewState, after: ViewState, most: int) -> list[Decision]:
    """Return the newest decisions behind a fold's checkpoint that can be made again, oldest first."""
    whole, folded = before.items(), after.items()
    places = {one.entry.id: at for at, one in enumerate(whole) if not isinstance(one, AddedItem)}
    start = next((at for at, one in enumerate(folded) if isinstance(one, AddedItem)), len(folded))
    found: list[Decision] = []
    for at in range(len(folded) - 1, start, -1):
        one = folded[at]
        if len(found) < most and not isinstance(one, AddedItem) and _begins_reply(folded, at):
            here = folded[:at], whole[: places[one.entry.id]]
            found.append(Decision(action_of(_reply(folded, at)), here[1], here[0]))
    return found[::-1]


def _message(item: Item) -> Message:
    return item.message if isinstance(item, AddedItem) else item.entry.message


def _begins_reply(items: Sequence[Item], at: int) -> bool:
    """Whether a model was asked for the message at a place: it answers the user, or results."""
    return _message(items[at]).role == "assistant" and _message(items[at - 1]).role in ("user", "tool")


def _reply(items: Sequence[Item], at: int) -> list[Message]:
    """Return the messages of the reply that begins at a place."""
    following = [_message(one) for one in items[at:]]
    last = next((i for i, (one, then) in enumerate(pairwise(following)) if not continues(then, one)), None)
    return following if last is None else following[: last + 1]


def action_of(messages: Iterable[Message]) -> Action:
    """Return what a reply does: its calls, long texts in their arguments left out."""
    return tuple(sorted((call.name, _arguments(call)) for message in messages for call in message.calls))


def _arguments(call: ToolCall) -> bytes:
    given = call.arguments
    if isinstance(given, dict):
        given = {key: given[key] for key in sorted(given) if not _is_long(given[key])}
    return encode(given)


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) > _COMPARED


def certificate(
    made: Sequence[Decision], answers: Sequence[DecidedTwice | None], model: str, price: float | None
) -> Certificate:
    """Return what came of the decisions; None stands for one that could not be made again."""
    both = [(one.recorded, two) for one, two in zip(made, answers, strict=True) if two is not None]
    return Certificate(
        decisions=len(both),
        unchanged=sum(two.whole == two.folded for _, two in both),
        whole_as_recorded=sum(recorded == two.whole for recorded, two in both),
        folded_as_recorded=sum(recorded == two.folded for recorded, two in both),
        failed=len(made) - len(both),
        model=model,
        price=price,
    )
