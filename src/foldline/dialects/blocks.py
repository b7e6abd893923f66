"""Messages of blocks: dialects in which the user's next turn answers all calls of the assistant's.

Messages of one role in a row are one turn, and results stand first in theirs. How a dialect writes its blocks
it says in a `BlockForm`; the rules of such turns, and what a request refuses, are here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

from foldline.core.log.messages import Media, Part, ToolResult
from foldline.core.measure.tokens import NO_OUTPUT
from foldline.dialects.edits import check_edits
from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.turns import Block
from foldline.dialects.values import Losses, Problem


class BlockForm(ABC):
    """How a dialect writes blocks; `call` and `result` are their kinds, each with the key of its id."""

    dialect: ClassVar[str]
    call: ClassVar[tuple[str, str]]
    result: ClassVar[tuple[str, str]]
    thoughts: ClassVar[tuple[str, ...]]
    id_limit: ClassVar[int]
    name_limit: ClassVar[int]
    alternates: ClassVar[bool] = False  # two messages of one role in a row are refused

    @abstractmethod
    def kind(self, block: Block) -> str:
        """Return the kind of a block."""

    def held(self, block: Block) -> Fields:
        """Return the object that has the fields of a block."""
        return block

    def is_silent(self, block: Block) -> bool:
        """Return whether a block says nothing and is no part of its message."""
        del block
        return False

    def is_refused(self, block: Any) -> bool:
        """Return whether the API refuses a block: a text of nothing but space."""
        fields = fields_of(block)
        return self.kind(fields) == "text" and not str(fields.get("text") or "").strip()

    @abstractmethod
    def parts(self, content: Any, index: int | None = None) -> list[Part]:
        """Read a message's content, a part for each block that is not silent."""

    @abstractmethod
    def text(self, text: str) -> Block:
        """Return a text as a block."""

    @abstractmethod
    def content(self, blocks: list[Any]) -> Any:
        """Return blocks as the content of a made message."""

    @abstractmethod
    def system(self, text: str) -> Any:
        """Return a text as a system prompt."""

    @abstractmethod
    def media(self, media: Media) -> Block | None:
        """Return the block of a user message or a result; None if the API has no such block."""

    @abstractmethod
    def block_of(self, part: Part) -> Block | None:
        """Return the block for a part, ids unchanged; None for what the API does not accept."""

    @abstractmethod
    def result_of(self, result: ToolResult, call_id: str) -> Block:
        """Return the block of a result, for the call `call_id`."""

    @abstractmethod
    def answering(self, block: Block, content: Any) -> Block:
        """Return the block of a result with another content, which may be one text."""

    @abstractmethod
    def patched(self, native: Block, old: Part, new: Part | None) -> Block | None:
        """Return a block with its part replaced, other fields as received; None removes it."""

    def kept(self, natives: Sequence[Block], old: ToolResult, new: ToolResult) -> list[Block]:
        """Return the blocks in a result that an edit changes: as received for the parts that stay."""
        same = min(len(natives), len(old.content))
        return [
            natives[place] if place < same and old.content[place] == part else inner
            for place, part in enumerate(new.content)
            if (inner := self.block_of(part)) is not None
        ]

    def is_result(self, block: Any) -> bool:
        """Return whether a block is the result of a call."""
        return self.kind(fields_of(block)) == self.result[0]

    def is_thought(self, block: Any) -> bool:
        """Return whether a block is thinking."""
        return self.kind(fields_of(block)) in self.thoughts

    def blocks(self, body: Block) -> list[Any]:
        """Return the blocks of a message; a string is one text block, a blank one none."""
        content = body.get("content")
        if isinstance(content, str):
            return [self.text(content)] if content.strip() else []
        return list(items_of(content))

    def drop_last_thinking(self, blocks: list[Any]) -> int:
        """Take thinking from the end of a turn, where the APIs refuse it; return how many blocks it was."""
        last = len(blocks)
        while last and (self.is_thought(blocks[last - 1]) or self.is_silent(blocks[last - 1])):
            last -= 1
        dropped = sum(map(self.is_thought, blocks[last:]))
        if dropped:
            del blocks[last:]
        return dropped

    # ---- edits

    def edit(self, body: Block, edits: Mapping[int, Part | None], index: int | None = None) -> Block | None:
        """Return a native message with some of its blocks replaced (None: removed); None if none is left.

        All other keys and blocks stay as received. An assistant message never ends in thinking: if an edit
        removed what followed, that thinking goes too.
        """
        content = body.get("content")
        parts = self.parts(content, index)
        check_edits(edits, parts, index)
        natives: list[Any] = [self.text(content)] if isinstance(content, str) else cast("list[Any]", content)
        blocks: list[Any] = []
        number = 0
        for native in natives:
            if self.is_silent(native):
                blocks.append(native)
                continue
            block = self.patched(native, parts[number], edits[number]) if number in edits else native
            if block is not None:
                blocks.append(block)
            number += 1
        if body.get("role") == "assistant":
            self.drop_last_thinking(blocks)
        if all(map(self.is_silent, blocks)):
            return None
        plain = isinstance(content, str) and self.kind(blocks[0]) == "text"
        return {**body, "content": blocks[0]["text"] if plain else blocks}

    # ---- what a request refuses

    def request(self, messages: Sequence[Block], losses: Losses) -> list[Block]:
        """Return messages as a request takes them: see `_sendable`; results of one turn stand in one message.

        A message that says nothing is left out. The APIs want all results of a turn in the next message.
        """
        found: list[Block] = []
        for message in messages:
            body = self._sendable(message, losses)
            before = found[-1] if found else {}
            if all(map(self.is_silent, self.blocks(body))):
                losses.add("empty messages left out")
            elif found and before.get("role") == body.get("role") and self._joins(body):
                found[-1] = {**before, "content": self._in_order([*self.blocks(before), *self.blocks(body)])}
            else:
                found.append(body)
        return found

    def _joins(self, body: Block) -> bool:
        """Return whether a message must be one with a message of its role before it."""
        return self.alternates or (body.get("role") == "user" and any(map(self.is_result, self.blocks(body))))

    def _in_order(self, blocks: list[Any]) -> list[Any]:
        """Return blocks with the results before all others, each in its order."""
        return sorted(blocks, key=lambda block: not self.is_result(block))

    def _sendable(self, body: Block, losses: Losses) -> Block:
        """Return a message without blocks that are refused, its results first and none of them empty."""
        content = items_of(body.get("content"))
        blocks = [self._said(block) for block in content if not self.is_refused(block)]
        if len(blocks) < len(content):
            losses.add("empty texts and thinking without a signature left out", len(content) - len(blocks))
        if body.get("role") == "user":
            blocks = self._in_order(blocks)
        return body if blocks == content else {**body, "content": blocks}

    def _said(self, block: Any) -> Any:
        """Return a block whose result, if it is one, says something in each of its texts."""
        if not self.is_result(block):
            return block
        given = self.held(block).get("content")
        content = given
        if isinstance(given, list):
            content = [inner for inner in items_of(given) if not self.is_refused(inner)]
        return block if content and content == given else self.answering(block, content or NO_OUTPUT)


# ---- rules


class BlockTurn(NamedTuple):
    """Consecutive messages of one role: blocks with the index of their message."""

    role: str
    blocks: list[tuple[int, Block]]

    def of(self, form: BlockForm, kind: str, key: str) -> list[tuple[int, str]]:
        """Return the ids of a kind of block, each with the index of its message."""
        found = (
            (index, form.held(block).get(key)) for index, block in self.blocks if form.kind(block) == kind
        )
        return [(index, value) for index, value in found if isinstance(value, str)]


def check_turns(
    problems: list[Problem], bodies: Sequence[tuple[int, Block]], last: int, form: BlockForm
) -> list[BlockTurn]:
    """Add every rule of turns that messages, each with its index, break; return the turns.

    `last` is the index of the end of the list.
    """
    turns: list[BlockTurn] = []
    for index, body in bodies:
        role = body.get("role")
        if role not in ("user", "assistant"):
            continue
        if not turns and role != "user":
            problems.append(Problem(index, "first-user", "the first message must have role user"))
        if turns and form.alternates and turns[-1].role == role:
            problems.append(Problem(index, "alternate", "user and assistant must speak in turn"))
        if not turns or turns[-1].role != role:
            turns.append(BlockTurn(cast("str", role), []))
        blocks = [cast("Block", block) for block in form.blocks(body) if isinstance(block, dict)]
        turns[-1].blocks.extend((index, block) for block in blocks)
        text = blocks[-1].get("text") if index == last and role == "assistant" and blocks else None
        if isinstance(text, str) and text != text.rstrip():
            said = "the last assistant message must not end in whitespace"
            problems.append(Problem(index, "trailing-space", said))
    seen: set[str] = set()
    for number, turn in enumerate(turns):
        if turn.role == "user":
            _check_results(problems, turn, turns[number - 1] if number else None, form)
            continue
        if turn.blocks and form.is_thought(turn.blocks[-1][1]):
            index, block = turn.blocks[-1]
            text = f"an assistant turn must not end in {form.kind(block)}"
            problems.append(Problem(index, "thinking-last", text))
        _check_calls(problems, turn, turns[number + 1] if number + 1 < len(turns) else None, seen, form)
    return turns


def _check_calls(
    problems: list[Problem], turn: BlockTurn, after: BlockTurn | None, seen: set[str], form: BlockForm
) -> None:
    answers = {call_id for _, call_id in after.of(form, *form.result)} if after else set[str]()
    for index, call_id in turn.of(form, *form.call):
        if call_id in seen:
            problems.append(Problem(index, "call-duplicate", f"{form.call[0]} id {call_id!r} is used twice"))
        seen.add(call_id)
        if call_id not in answers:
            text = f"no {form.result[0]} for {call_id!r} in the next message"
            problems.append(Problem(index, "result-missing", text))


def _check_results(
    problems: list[Problem], turn: BlockTurn, before: BlockTurn | None, form: BlockForm
) -> None:
    calls = {call_id for _, call_id in before.of(form, *form.call)} if before else set[str]()
    kind, key = form.result
    answered: set[str] = set()
    other = False
    for index, block in turn.blocks:
        if form.kind(block) != kind:
            other = True
            continue
        if other:
            problems.append(Problem(index, "results-first", f"{kind} blocks must come before all others"))
        call_id = form.held(block).get(key)
        if not isinstance(call_id, str):
            continue
        if call_id in answered:
            problems.append(Problem(index, "result-duplicate", f"{call_id!r} already has a result"))
        elif call_id not in calls:
            text = f"no {form.call[0]} {call_id!r} in the assistant message before"
            problems.append(Problem(index, "result-orphan", text))
        answered.add(call_id)
