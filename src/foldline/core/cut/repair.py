"""Repair of a list of messages before it is folded: late results go to their calls, orphans are left out.

What a call answers a second time, with other words, stays where it is: the view quotes it as a late result.

Only for lists that are folded without a log (and for files that are imported into one); in a log nothing
moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

import msgspec

from foldline.core.cut.call_ids import with_own_ids
from foldline.core.cut.pairing import continues
from foldline.core.log.messages import Message, ToolCall, ToolResult
from foldline.core.log.opaque import stored_calls

PartAt = tuple[int, int]  # a message's index and a part's


class Repaired(msgspec.Struct):
    """Messages in a sendable order, each with its index in the input; `orphans` lists (index, call id).

    `changed` says whether anything moved, was split or was left out.
    """

    messages: list[tuple[int, Message]]
    orphans: list[tuple[int, str]]
    changed: bool


def repair(messages: Sequence[Message]) -> Repaired:
    """Order messages so that every result follows its call; return them with what was left out."""
    messages = with_own_ids(messages)
    owners, orphans = _owners(messages)
    answers: dict[int, list[PartAt]] = defaultdict(list)
    ends = _reply_ends(messages)
    for place, owner in owners.items():
        if owner is not None and owner != place[0]:
            answers[ends[owner]].append(place)
    order: list[PartAt] = []
    for index, message in enumerate(messages):
        own = [(index, at) for at in range(len(message.parts))] or [(index, 0)]
        order += [place for place in own if owners.get(place, index) == index]
        order += answers[index]
    found: list[tuple[int, Message]] = []
    for index, run in groupby(order, key=lambda place: place[0]):
        found.append((index, _with_parts(messages[index], [at for _, at in run])))
    same = len(found) == len(messages) and all(new is messages[at] for at, (_, new) in enumerate(found))
    return Repaired(found, orphans, changed=bool(orphans) or not same)


def _reply_ends(messages: Sequence[Message]) -> list[int]:
    """Return for each message the last one of its reply: results stand behind the whole reply."""
    ends = list(range(len(messages)))
    for index in range(len(messages) - 2, -1, -1):
        if continues(messages[index + 1], messages[index]):
            ends[index] = ends[index + 1]
    return ends


def _with_parts(message: Message, places: Sequence[int]) -> Message:
    """Return a message with these parts in this order; a whole one stays as received."""
    if not message.parts or list(places) == list(range(len(message.parts))):
        return message
    return msgspec.structs.replace(message, parts=tuple(message.parts[at] for at in places), native=None)


def _owners(messages: Sequence[Message]) -> tuple[dict[PartAt, int | None], list[tuple[int, str]]]:
    """Map each result to its call's message, the nearest unanswered one of that id before; None: an orphan's.

    A result whose call is not known belongs to the nearest reference before it that may be a call. Those by
    which a call is answered again, with other words, are left out of the map. Then come the orphans.
    """
    waiting: dict[str, list[int]] = {}
    stored: list[int] = []
    owners: dict[PartAt, int | None] = {}
    told: dict[str, set[str]] = {}  # the texts that answered a call
    orphans: list[tuple[int, str]] = []
    for index, message in enumerate(messages):
        stored += [index] * stored_calls(message)
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and message.role == "assistant":
                waiting.setdefault(part.id, []).append(index)
            elif isinstance(part, ToolResult):
                calls = waiting.get(part.call_id, stored)
                if calls:
                    waiting.setdefault(part.call_id, [])  # a second result of a stored call answers none
                    owners[index, at] = calls.pop()
                elif not part.text.strip() or part.text in told.get(part.call_id, {part.text}):
                    owners[index, at] = None
                    orphans.append((index, part.call_id))
                    continue
                told.setdefault(part.call_id, set()).add(part.text)
    return owners, orphans
