"""Turn the entries of a path into the steps that a format writes: the history, or the view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pinned, Pruned, Said
from foldline.core.log.log import digest, undone
from foldline.core.log.messages import Message, Text
from foldline.core.log.steps import is_step, own_results
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem, MessageItem
from foldline.dialects import OPENAI_CHAT
from foldline.dialects.base import read_system
from foldline.dialects.edits import split_steps, with_edits
from foldline.dialects.values import Losses
from foldline.exports.base import FoldStep, SaidStep, Step

_BY_HAND = ("manual", "target", "agent")


class StepSurvey:
    """What a writer must know about a path beforehand; its size does not grow with the messages."""

    def __init__(self) -> None:
        self.undone: dict[str, bool] = {}
        self.kept: set[str] = set()
        self.quoted: set[str] = set()
        self.words: dict[str, Message] = {}  # the quoted messages, by key
        self.notes: dict[str, dict[str, Any]] = {}
        self.model: str | None = None
        self.started: float | None = None
        self.ended: float | None = None
        self.leaf: str | None = None
        self.entries = 0

    def note(self, entry: Entry) -> None:
        """Take the next entry of the path."""
        self.leaf = entry.id
        self.entries += 1
        if isinstance(entry, Said):
            self.model = entry.message.model or self.model
            if entry.at is not None:
                self.started = entry.at if self.started is None else self.started
                self.ended = entry.at
        elif isinstance(entry, Lifted):
            self.undone[entry.target] = entry.lifted
        elif isinstance(entry, Compacted):
            if entry.first_kept is not None:
                self.kept.add(entry.first_kept)
            self.quoted.update(entry.quoted)
        elif isinstance(entry, Noted):
            self.notes[entry.kind] = entry.data

    def noted(self, kind: str) -> str | None:
        """Return the newest note of a kind if it is text."""
        value = self.notes.get(kind, {}).get(kind)
        return value if isinstance(value, str) and value else None

    @property
    def system(self) -> Message | None:
        """The file's separate system prompt."""
        note = self.notes.get("system", {})
        return read_system(note.get("system"), str(note.get("dialect") or OPENAI_CHAT)) if note else None

    @property
    def tools(self) -> Any:
        """The file's separate tool definitions."""
        return self.notes.get("tools", {}).get("tools")


def said_step(entry: Entry, survey: StepSurvey, losses: Losses, *, quotes: bool = False) -> Step | None:
    """Return the step of an entry; None for one that other tools do not need. Count every omission.

    `quotes`: the format's boundaries contain the older messages that they quote; otherwise these are appended
    to the summary.
    """
    if isinstance(entry, Said):
        if entry.id in survey.quoted and not quotes:
            survey.words[entry.id] = entry.message
        return SaidStep(entry.id, entry.message, at=entry.at)
    if isinstance(entry, Compacted | Pruned) and survey.undone.get(entry.id, False):
        losses.add("undone boundaries left out")
    elif isinstance(entry, Compacted):
        if entry.edits:
            losses.add("edits of kept messages left out", len(entry.edits))
        return _with_quotes(_fold_step(entry), survey, losses)
    elif isinstance(entry, Pruned):
        losses.add("prunes left out (the results are complete)")
    elif isinstance(entry, Pinned):
        losses.add("pins left out")
    return None


def _with_quotes(step: FoldStep, survey: StepSurvey, losses: Losses) -> FoldStep:
    """Append the older messages that a boundary quotes to its summary."""
    messages = [survey.words[key] for key in step.quoted if key in survey.words]
    if not messages:
        return step
    losses.add("older messages quoted by a boundary are appended to its summary", len(messages))
    quotes = "".join(f"\n\n[{m.role.capitalize()}, kept word for word]: {m.text.strip()}" for m in messages)
    text, summary = step.text + quotes, step.summary + quotes
    message = Message(step.message.role, (Text(text),))
    return msgspec.structs.replace(step, text=text, summary=summary, message=message, quoted=())


def view_steps(
    entries: Sequence[Entry], losses: Losses, *, own_boundaries: bool, boundaries: Sequence[Entry] = ()
) -> Iterator[Step]:
    """Yield the steps of a path's view; `boundaries` are the whole path's if `entries` are a part of it.

    With `own_boundaries` the checkpoint is a boundary after the leading messages, without an acknowledgement.
    """
    state = ViewState(entries, counter=OFFLINE)
    old = {entry.id for entry in state.kept[: state.usage_from]} | {entry.id for entry in state.quoted}
    items = state.view()
    if own_boundaries:
        items = _boundary_first(items, losses)
    for number, item in enumerate(items):
        if isinstance(item, MessageItem):
            entry = item.entry
            yield SaidStep(entry.id, entry.message, item.edits, entry.at, measured=entry.id not in old)
        elif item.kind == "checkpoint" and state.boundary is not None:
            earlier = _earlier(state.boundary, boundaries or entries)
            step = _fold_step(state.boundary, message=item.message, alone=True)
            yield msgspec.structs.replace(step, earlier=earlier)
        else:
            key = digest(f"{item.source}:{item.kind}:{number}".encode())
            yield SaidStep(key, item.message, kind=item.kind)


def _earlier(boundary: Compacted, path: Sequence[Entry]) -> tuple[FoldStep, ...]:
    """Return the boundaries before another one that are not undone."""
    skipped = undone(path)
    before = takewhile(lambda entry: entry.id != boundary.id, path)
    return tuple(
        _fold_step(entry) for entry in before if isinstance(entry, Compacted) and entry.id not in skipped
    )


def split_turn(step: SaidStep) -> list[SaidStep]:
    """Split a turn that is one message (calls, their results, text, ...) into steps.

    Step marks are dropped; the turn's usage goes to its last reply.
    """
    message = step.message
    if not own_results(message):
        return [step]
    kept = with_edits(message, step.edits)
    pieces = split_steps(kept) if kept is not None else []
    last = max((n for n, piece in enumerate(pieces) if piece.role == "assistant"), default=-1)
    steps: list[SaidStep] = []
    for number, piece in enumerate(pieces):
        usage = piece.usage if number == last else None
        parts = tuple(part for part in piece.parts if not is_step(part))
        key = step.key if not steps else digest(f"{step.key}/{number}".encode())
        if parts:
            piece_message = msgspec.structs.replace(piece, parts=parts, usage=usage)
            steps.append(msgspec.structs.replace(step, key=key, message=piece_message, edits=()))
    return steps


def join_replies(first: SaidStep, second: SaidStep) -> SaidStep | None:
    """Join two consecutive replies if the first still waits for results; otherwise return None.

    Some dialects record each call as a reply of its own before any result.
    """
    if first.message.role != "assistant" or second.message.role != "assistant" or not first.message.calls:
        return None
    messages = [with_edits(step.message, step.edits) for step in (first, second)]
    parts = tuple(part for message in messages if message is not None for part in message.parts)
    message = msgspec.structs.replace(second.message, parts=parts, native=None)
    return msgspec.structs.replace(second, key=first.key, message=message, edits=())


def _boundary_first(
    items: Sequence[MessageItem | AddedItem], losses: Losses
) -> list[MessageItem | AddedItem]:
    """Move the checkpoint after the leading messages; drop the acknowledgement, which only lists need."""
    added = {item.kind: item for item in items if isinstance(item, AddedItem)}
    checkpoint, ack = added.get("checkpoint"), added.get("ack")
    rest = [item for item in items if item is not checkpoint and item is not ack]
    if checkpoint is None:
        return rest
    start = 0
    while start < len(rest) and _leads(rest[start]):
        start += 1
    if items[start] is not checkpoint:
        losses.add("the checkpoint comes before the messages that it quotes, not after them")
    return [*rest[:start], checkpoint, *rest[start:]]


def _leads(item: MessageItem | AddedItem) -> bool:
    return isinstance(item, MessageItem) and item.entry.message.role in ("system", "developer")


def _fold_step(entry: Compacted, *, message: Message | None = None, alone: bool = False) -> FoldStep:
    checkpoint, receipt = entry.checkpoint, entry.receipt
    return FoldStep(
        key=entry.id,
        text=checkpoint.text,
        summary=checkpoint.summary,
        message=message or Message("user", (Text(checkpoint.text),)),
        first_kept=None if alone else entry.first_kept,
        tokens_before=receipt.tokens_before,
        automatic=receipt.reason not in _BY_HAND,
        imported=receipt.reason == "imported",
        quoted=() if alone else entry.quoted,
        at=entry.at,
        number=checkpoint.number,
        origin=receipt.origin,
        ledger=entry.ledger,
        folded=max(receipt.messages_before - receipt.messages_after + 1, 0),
    )
