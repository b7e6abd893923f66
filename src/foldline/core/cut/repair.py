"""Repair of a list of messages before it is folded: late results go to their calls, orphans are left out.

What a call answers a second time, with other words, stays where it is: the view quotes it as a late result.

Only for lists that are folded without a log (and for files that are imported into one); in a log nothing
moves.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.cut.call_ids import with_own_ids
from foldline.core.log.messages import Message, Part, ToolCall, ToolResult
from foldline.core.log.opaque import is_reference, stored_calls


class Repaired(msgspec.Struct):
    """Messages in a sendable order, each with its index in the input; `orphans` lists (index, call id)."""

    messages: list[tuple[int, Message]]
    orphans: list[tuple[int, str]]

    @property
    def changed(self) -> bool:
        """Whether anything moved, was split or was left out."""
        indices = [index for index, _ in self.messages]
        return bool(self.orphans) or indices != list(range(len(indices)))


class _PartRun(msgspec.Struct):
    """A run of parts of message `index` that moves as one; `batch` is the call message it answers."""

    index: int
    first: int
    parts: tuple[Part, ...]
    batch: int | None = None


def repair(messages: Sequence[Message]) -> Repaired:
    """Order messages so that every result follows its call; return them with what was left out."""
    messages = with_own_ids(messages)
    owners, orphans, again = _owners(messages)
    answers: dict[int, list[_PartRun]] = {}
    pieces: list[_PartRun] = []
    for index, message in enumerate(messages):
        for piece in _pieces(index, message, owners, again):
            if piece.batch is None:
                pieces.append(piece)
            else:
                answers.setdefault(piece.batch, []).append(piece)
    ordered: list[_PartRun] = []
    for piece in pieces:
        ordered.append(piece)
        ordered.extend(answers.pop(piece.index, []) if _calls(piece) else [])
    return Repaired(_joined(messages, ordered), orphans)


def _calls(piece: _PartRun) -> bool:
    return any(isinstance(part, ToolCall) or is_reference(part) for part in piece.parts)


PartAt = tuple[int, int]  # a message's index and a part's


def _owners(messages: Sequence[Message]) -> tuple[dict[PartAt, int], list[tuple[int, str]], set[PartAt]]:
    """Map each result to its call's message: the nearest unanswered one of that id before.

    Then come the orphans, and the results by which a call that has one is answered again.

    A result whose call is not known belongs to the nearest reference before it that may be a call.
    """
    waiting: dict[str, list[int]] = {}
    stored: list[int] = []
    owners: dict[PartAt, int] = {}
    again: set[PartAt] = set()
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
                elif part.text.strip() and part.text not in told.get(part.call_id, {part.text}):
                    again.add((index, at))
                else:
                    orphans.append((index, part.call_id))
                    continue
                told.setdefault(part.call_id, set()).add(part.text)
    return owners, orphans, again


def _pieces(index: int, message: Message, owners: dict[PartAt, int], again: set[PartAt]) -> list[_PartRun]:
    if not message.results:
        return [_PartRun(index, 0, message.parts)]
    pieces: list[_PartRun] = []
    for at, part in enumerate(message.parts):
        if isinstance(part, ToolResult) and (index, at) not in owners and (index, at) not in again:
            continue
        owner = owners.get((index, at))
        batch = owner if owner != index else None  # it stands in the message of its call: it stays there
        last = pieces[-1] if pieces else None
        if last is not None and last.batch == batch and last.first + len(last.parts) == at:
            last.parts = (*last.parts, part)
        else:
            pieces.append(_PartRun(index, at, (part,), batch))
    return pieces


def _joined(messages: Sequence[Message], ordered: Sequence[_PartRun]) -> list[tuple[int, Message]]:
    """Put neighbouring pieces of one message together again; a whole message stays as received."""
    runs: list[_PartRun] = []
    for piece in ordered:
        last = runs[-1] if runs else None
        if last is not None and last.index == piece.index and last.first + len(last.parts) == piece.first:
            runs[-1] = _PartRun(last.index, last.first, (*last.parts, *piece.parts))
        else:
            runs.append(piece)
    return [(run.index, _whole(messages[run.index], run)) for run in runs]


def _whole(message: Message, run: _PartRun) -> Message:
    if len(run.parts) == len(message.parts):
        return message
    return msgspec.structs.replace(message, parts=run.parts, native=None)
