"""Pair tool calls with their results, and name the problems of those that do not pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.messages import ToolCall, ToolResult

PairingKind = Literal["open", "unanswered", "orphan", "late", "answered_twice", "duplicate_id"]


class PairingProblem(msgspec.Struct, frozen=True):
    """A call or result that does not pair; `index` is the message's place in the list.

    `kind` is open (a call of the newest batch, nothing said since), unanswered, orphan (a result that no call
    asked for), late (other things were said between), answered_twice, or duplicate_id (a call whose id was
    used before and is not answered yet, or used twice in one batch).
    """

    kind: PairingKind
    call_id: str
    tool: str
    index: int
    entry: str


class Pairs(msgspec.Struct, frozen=True):
    """The result of `pairs`: `calls` maps a result's (message, part) indices to its call."""

    calls: dict[tuple[int, int], ToolCall]
    problems: tuple[PairingProblem, ...]


class _MadeCall(msgspec.Struct):
    """A call that was made, the batch that it belongs to, and whether it was answered."""

    call: ToolCall
    index: int
    entry: str
    batch: int
    answered: bool = False


def pairs(said: Sequence[Said]) -> Pairs:
    """Pair the calls and results of a history, in one pass over it.

    A batch is the calls of one assistant message, or of several in a row: some agents record parallel calls
    one a message.
    """
    matcher = _Matcher()
    for index, entry in enumerate(said):
        matcher.take(index, entry)
    return matcher.finish()


class _Matcher:
    """Match calls with their results, message by message."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int], ToolCall] = {}
        self._problems: list[PairingProblem] = []
        self._newest: dict[str, _MadeCall] = {}  # by call id
        self._asked: list[_MadeCall] = []
        self._batch = 0
        self._speaking = False  # the message before was an assistant's

    def take(self, index: int, entry: Said) -> None:
        """Take the next message."""
        message = entry.message
        speaking = message.role == "assistant"
        if speaking and not self._speaking:
            self._batch += 1
        self._speaking = speaking
        for part, value in enumerate(message.parts):
            if isinstance(value, ToolCall):
                self._ask(value, index, entry.id)
            elif isinstance(value, ToolResult):
                self._answer(value.call_id, (index, part), entry.id)
        if not speaking and any(not isinstance(part, ToolResult) for part in message.parts):
            self._batch += 1  # later messages do not answer the batch before

    def _ask(self, call: ToolCall, index: int, entry: str) -> None:
        before = self._newest.get(call.id)
        if before is not None and (not before.answered or before.batch == self._batch):
            self._problem("duplicate_id", call.id, call.name, index, entry)
        asked = _MadeCall(call, index, entry, self._batch)
        self._newest[call.id] = asked
        self._asked.append(asked)

    def _answer(self, call_id: str, place: tuple[int, int], entry: str) -> None:
        asked = self._newest.get(call_id)
        if asked is None:
            self._problem("orphan", call_id, "", place[0], entry)
            return
        self._calls[place] = asked.call
        if asked.answered:
            self._problem("answered_twice", call_id, asked.call.name, place[0], entry)
        elif asked.batch != self._batch:
            self._problem("late", call_id, asked.call.name, place[0], entry)
        asked.answered = True

    def _problem(self, kind: PairingKind, call_id: str, tool: str, index: int, entry: str) -> None:
        self._problems.append(PairingProblem(kind, call_id, tool, index, entry))

    def finish(self) -> Pairs:
        """Report unanswered calls, and sort all problems by message."""
        for asked in self._asked:
            if not asked.answered:
                kind = "open" if asked.batch == self._batch else "unanswered"
                self._problem(kind, asked.call.id, asked.call.name, asked.index, asked.entry)
        return Pairs(self._calls, tuple(sorted(self._problems, key=lambda problem: problem.index)))
