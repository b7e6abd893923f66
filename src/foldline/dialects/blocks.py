"""Messages of blocks: dialects in which the user's next turn answers all calls of the assistant's.

Messages of one role in a row are one turn, and results come first in theirs. A `BlockForm` says what a
dialect calls its blocks and their fields. How they are read and written, edited and made fit for a request is
here; the rules of turns are in `block_dialect.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import NO_OUTPUT
from foldline.dialects.edits import check_edits
from foldline.dialects.forms import Forms
from foldline.dialects.media import placeholder
from foldline.dialects.payload import Fields, fields_of, items_of, string
from foldline.dialects.values import Losses
from foldline.dialects.writer import Block, input_of
from foldline.errors import DialectError


class BlockForm(ABC):
    """How a dialect writes blocks; `call` and `result` are their kinds, each with the key of its id.

    `failed` is the field by which a result says whether it is an error: its key, and its value for one that
    is and for one that is not; `tells_success`: one that is not says so too. `single_texts`: a content may be
    a string. `forms` has the fields of each kind, `in_system` the kinds that a system prompt may hold.
    """

    dialect: ClassVar[str]
    roles: ClassVar[Mapping[str, Role]]
    forms: ClassVar[Forms]
    call: ClassVar[tuple[str, str]]
    result: ClassVar[tuple[str, str]]
    thoughts: ClassVar[tuple[str, ...]]
    failed: ClassVar[tuple[str, Any, Any]]
    shape: ClassVar[str]  # what a block is, for an error
    in_system: ClassVar[tuple[str, ...]] = ("text",)
    id_limit: ClassVar[int]
    name_limit: ClassVar[int]
    alternates: ClassVar[bool] = False  # two messages of one role in a row are refused
    single_texts: ClassVar[bool] = False
    tells_success: ClassVar[bool] = False

    # ---- what a dialect calls things

    @abstractmethod
    def kind(self, block: Block) -> str:
        """Return the kind of a block."""

    @abstractmethod
    def held(self, block: Block) -> Fields:
        """Return the object that has the fields of a block: the block itself, or one inside it."""

    @abstractmethod
    def made(self, kind: str, fields: Fields) -> Block:
        """Return a block of a kind with these fields."""

    @abstractmethod
    def text(self, text: str) -> Block:
        """Return a text as a block."""

    @abstractmethod
    def media(self, media: Media) -> Block | None:
        """Return the block of a user message or a result; None if the API has no such block."""

    @abstractmethod
    def thought(self, text: str, signature: str) -> Fields:
        """Return the fields of thinking."""

    @abstractmethod
    def other(self, kind: str, block: Block, index: int | None) -> Part | None:
        """Read a block other than a text, call or result; None for one that stays as it is."""

    def is_silent(self, block: Block) -> bool:
        """Return whether a block says nothing and is not a part of its message."""
        del block
        return False

    def is_refused(self, block: Any) -> bool:
        """Return whether the API refuses a block: a text of nothing but space."""
        fields = fields_of(block)
        return self.kind(fields) == "text" and not str(fields.get("text") or "").strip()

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

    # ---- in

    def parts(self, content: Any, index: int | None = None) -> list[Part]:
        """Read a message's content: a string is one text, a list gives a part for each block but silent ones.

        Raises DialectError (with `index`) if a field that is read has the wrong type; unknown ones are kept.
        """
        if isinstance(content, str):
            return [Text(content)]
        if not isinstance(content, list | None):
            raise DialectError(f"content must be {self._contents()}", index=index)
        return [self._part(block, index) for block in items_of(content) if not self.is_silent(block)]

    def _contents(self) -> str:
        return "a string or a list of blocks" if self.single_texts else "a list of blocks"

    def _part(self, value: Any, index: int | None) -> Part:
        block = fields_of(value)
        if not block:
            raise DialectError(f"a content block must be {self.shape}", index=index)
        kind, held = self.kind(block), self.held(block)
        if kind == "text":
            return Text(string(held, "text", "text block", index))
        if kind == self.call[0]:
            return self._call(held, index)
        if kind == self.result[0]:
            return self._result(held, index)
        return self.other(kind, block, index) or Opaque(self.dialect, kind, block)

    def _call(self, held: Fields, index: int | None) -> ToolCall:
        kind, key = self.call
        call_id = string(held, key, f"{kind} block", index)
        name = string(held, "name", f"{kind} block", index)
        arguments = held.get("input")
        if not isinstance(arguments, dict | str | None):
            raise DialectError(f"{kind} {call_id!r}: input must be an object", index=index)
        return ToolCall(call_id, name, {} if arguments is None else cast("Fields | str", arguments))

    def _result(self, held: Fields, index: int | None) -> ToolResult:
        kind, key = self.result
        call_id = string(held, key, f"{kind} block", index)
        content, is_error = held.get("content"), held.get(self.failed[0]) == self.failed[1]
        if isinstance(content, str) and self.single_texts:
            return ToolResult(call_id, (Text(content),) if content else (), is_error)
        if not isinstance(content, list | None):
            raise DialectError(f"{kind} {call_id!r}: content must be {self._contents()}", index=index)
        return ToolResult(call_id, tuple(self._inner(block, index) for block in items_of(content)), is_error)

    def _inner(self, block: Any, index: int | None) -> Text | Media | Opaque:
        part = self._part(block, index)
        return (
            part if isinstance(part, Text | Media | Opaque) else Opaque(self.dialect, self.kind(block), block)
        )

    # ---- out

    def content(self, blocks: list[Any]) -> Any:
        """Return blocks as the content of a made message; a string for a single text where it may be one."""
        text = blocks[0].get("text") if self.single_texts and len(blocks) == 1 else None
        return text if isinstance(text, str) and blocks == [self.text(text)] else blocks

    def system(self, text: str) -> Any:
        """Return a text as a system prompt."""
        return text if self.single_texts else [self.text(text)]

    def block_of(self, part: Part) -> Block | None:
        """Return the block for a part, ids unchanged; None for what the API does not accept."""
        if isinstance(part, Text):
            return self.text(part.text) if part.text.strip() else None
        if isinstance(part, Thinking):
            if part.signature is None:
                return None
            return self.made(self.thoughts[0], self.thought(part.text, part.signature))
        if isinstance(part, ToolCall):
            return self.made(self.call[0], self._call_fields(part))
        if isinstance(part, Media):
            return self.media(part) or self.text(placeholder(part))
        if isinstance(part, Opaque):
            is_ours = part.dialect == self.dialect and isinstance(part.data, dict)
            return cast("Block", part.data) if is_ours else None
        return self.result_of(part, part.call_id)

    def _call_fields(self, call: ToolCall) -> Fields:
        return {self.call[1]: call.id, "name": call.name, "input": input_of(call)}

    def result_of(self, result: ToolResult, call_id: str) -> Block:
        """Return the block of a result, for the call `call_id`; one that is an error holds only text."""
        told = [part for part in result.content if isinstance(part, Text) or not result.is_error]
        blocks = [block for part in told if (block := self.block_of(part)) is not None]
        fields = self._result_fields(ToolResult(call_id, (), result.is_error), self.content(blocks))
        if self.tells_success or result.is_error:
            fields |= self._flag(result)
        return self.made(self.result[0], fields)

    def _result_fields(self, result: ToolResult, content: Any) -> Fields:
        """Return the id and the content of a result; an error says something, an empty text is left out."""
        if not content and result.is_error:
            content = self.content([self.text(NO_OUTPUT)])
        told = {"content": content} if content or not self.single_texts else {}
        return {self.result[1]: result.call_id, **told}

    def _flag(self, result: ToolResult) -> Fields:
        key, bad, good = self.failed
        return {key: bad if result.is_error else good}

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

    def patched(self, native: Block, old: Part, new: Part | None) -> Block | None:
        """Return a block with its part replaced, other fields as received; None removes it."""
        if new == old:
            return native
        if isinstance(new, Text) and self.kind(native) == "text":
            return {**native, "text": new.text} if new.text.strip() else None
        if isinstance(new, ToolCall) and isinstance(old, ToolCall):
            return self.changed(native, self._call_fields(new))
        if isinstance(new, ToolResult) and isinstance(old, ToolResult):
            return self._patched_result(native, old, new)
        return None if new is None else self.block_of(new)

    def changed(self, block: Block, fields: Fields) -> Block:
        """Return a block with other values of some fields."""
        held = self.held(block)
        new = {**held, **fields}
        return new if held is block else {**block, self.kind(block): new}

    def _patched_result(self, native: Block, old: ToolResult, new: ToolResult) -> Block:
        held = self.held(native)
        given = held.get("content")
        blocks = self._kept(items_of(given), old, new)
        fields = self._result_fields(new, blocks if isinstance(given, list) else self.content(blocks))
        if new.is_error or self.failed[0] in held:
            fields |= self._flag(new)
        block = self.changed(native, fields)
        if "content" not in fields:
            self.held(block).pop("content", None)
        return block

    def _kept(self, natives: Sequence[Block], old: ToolResult, new: ToolResult) -> list[Block]:
        """Return the blocks in a result that an edit changes: as received for the parts that stay."""
        same = min(len(natives), len(old.content))
        return [
            natives[place] if place < same and old.content[place] == part else inner
            for place, part in enumerate(new.content)
            if (inner := self.block_of(part)) is not None
        ]

    def drop_last_thinking(self, blocks: list[Any]) -> int:
        """Take thinking from the end of a turn, where the APIs refuse it; return how many blocks it was."""
        last = len(blocks)
        while last and (self.is_thought(blocks[last - 1]) or self.is_silent(blocks[last - 1])):
            last -= 1
        dropped = sum(map(self.is_thought, blocks[last:]))
        if dropped:
            del blocks[last:]
        return dropped

    # ---- what a request refuses

    def request(self, messages: Sequence[Block], losses: Losses) -> list[Block]:
        """Return messages as a request takes them: see `_sendable`; results of one turn are in one message.

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
        if content and content == given:
            return block
        return self.changed(block, {"content": content or self.content([self.text(NO_OUTPUT)])})
