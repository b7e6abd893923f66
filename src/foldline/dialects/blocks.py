"""Messages of blocks: dialects in which the next user turn answers all calls of an assistant turn.

Messages of one role in a row are one turn, in which results come first. A `BlockForm` defines the names of
blocks and fields, and reads, writes and edits them; `block_dialect.py` has the rules of turns.
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
    """The block format of a dialect.

    `call`, `result`: block kind and key of its id. `failed`: the status field of a result: its key, its value
    for an error, its value for success; `tells_success`: also set for success. `single_texts`: a content may
    be a string. `forms`: the fields of each kind. `in_system`: kinds that a system prompt may contain.
    """

    dialect: ClassVar[str]
    roles: ClassVar[Mapping[str, Role]]
    forms: ClassVar[Forms]
    call: ClassVar[tuple[str, str]]
    result: ClassVar[tuple[str, str]]
    thoughts: ClassVar[tuple[str, ...]]
    failed: ClassVar[tuple[str, Any, Any]]
    shape: ClassVar[str]  # describes a block in errors
    in_system: ClassVar[tuple[str, ...]] = ("text",)
    id_limit: ClassVar[int]
    name_limit: ClassVar[int]
    alternates: ClassVar[bool] = False  # the API rejects two messages of one role in a row
    single_texts: ClassVar[bool] = False
    tells_success: ClassVar[bool] = False

    # ---- defined by each dialect

    @abstractmethod
    def kind(self, block: Block) -> str:
        """Return the kind of a block."""

    @abstractmethod
    def fields_in(self, block: Block) -> Fields:
        """Return the object with the fields of a block: the block itself or an inner object."""

    @abstractmethod
    def build(self, kind: str, fields: Fields) -> Block:
        """Return a block of a kind with these fields."""

    @abstractmethod
    def text(self, text: str) -> Block:
        """Return a text as a block."""

    @abstractmethod
    def media(self, media: Media) -> Block | None:
        """Return the block of media in a user message or result; None if the API does not support it."""

    @abstractmethod
    def thought(self, text: str, signature: str) -> Fields:
        """Return the fields of a thinking block."""

    @abstractmethod
    def other(self, kind: str, block: Block, index: int | None) -> Part | None:
        """Read a block other than a text, call or result; None if it stays opaque."""

    def is_silent(self, block: Block) -> bool:
        """Return whether a block has no content and is not read as a part."""
        del block
        return False

    def is_rejected(self, block: Any) -> bool:
        """Return whether the API rejects a block: a blank text."""
        fields = fields_of(block)
        return self.kind(fields) == "text" and not str(fields.get("text") or "").strip()

    def is_result(self, block: Any) -> bool:
        """Return whether a block is the result of a call."""
        return self.kind(fields_of(block)) == self.result[0]

    def is_thought(self, block: Any) -> bool:
        """Return whether a block is thinking."""
        return self.kind(fields_of(block)) in self.thoughts

    def blocks(self, body: Block) -> list[Any]:
        """Return the blocks of a message; a string becomes a text block, unless it is blank."""
        content = body.get("content")
        if isinstance(content, str):
            return [self.text(content)] if content.strip() else []
        return list(items_of(content))

    # ---- in

    def parts(self, content: Any, index: int | None = None) -> list[Part]:
        """Read the content of a message: a part for each block that is not silent.

        Unknown blocks become opaque parts. Raises DialectError (with `index`) for a field of the wrong type.
        """
        if isinstance(content, str):
            return [Text(content)]
        if not isinstance(content, list | None):
            raise DialectError(f"content must be {self._content_types()}", index=index)
        return [self._part(block, index) for block in items_of(content) if not self.is_silent(block)]

    def _content_types(self) -> str:
        return "a string or a list of blocks" if self.single_texts else "a list of blocks"

    def _part(self, value: Any, index: int | None) -> Part:
        block = fields_of(value)
        if not block:
            raise DialectError(f"a content block must be {self.shape}", index=index)
        kind, fields = self.kind(block), self.fields_in(block)
        if kind == "text":
            return Text(string(fields, "text", "text block", index))
        if kind == self.call[0]:
            return self._call(fields, index)
        if kind == self.result[0]:
            return self._result(fields, index)
        return self.other(kind, block, index) or Opaque(self.dialect, kind, block)

    def _call(self, fields: Fields, index: int | None) -> ToolCall:
        kind, key = self.call
        call_id = string(fields, key, f"{kind} block", index)
        name = string(fields, "name", f"{kind} block", index)
        arguments = fields.get("input")
        if not isinstance(arguments, dict | str | None):
            raise DialectError(f"{kind} {call_id!r}: input must be an object", index=index)
        return ToolCall(call_id, name, {} if arguments is None else cast("Fields | str", arguments))

    def _result(self, fields: Fields, index: int | None) -> ToolResult:
        kind, key = self.result
        call_id = string(fields, key, f"{kind} block", index)
        content, is_error = fields.get("content"), fields.get(self.failed[0]) == self.failed[1]
        if isinstance(content, str) and self.single_texts:
            return ToolResult(call_id, (Text(content),) if content else (), is_error)
        if not isinstance(content, list | None):
            raise DialectError(f"{kind} {call_id!r}: content must be {self._content_types()}", index=index)
        return ToolResult(
            call_id, tuple(self._result_part(block, index) for block in items_of(content)), is_error
        )

    def _result_part(self, block: Any, index: int | None) -> Text | Media | Opaque:
        part = self._part(block, index)
        return (
            part if isinstance(part, Text | Media | Opaque) else Opaque(self.dialect, self.kind(block), block)
        )

    # ---- out

    def content(self, blocks: list[Any]) -> Any:
        """Return blocks as the content of a new message; a string for a single text if allowed."""
        text = blocks[0].get("text") if self.single_texts and len(blocks) == 1 else None
        return text if isinstance(text, str) and blocks == [self.text(text)] else blocks

    def system(self, text: str) -> Any:
        """Return a text as a system prompt."""
        return text if self.single_texts else [self.text(text)]

    def block_of(self, part: Part) -> Block | None:
        """Return the block of a part; None if the API does not support it."""
        if isinstance(part, Text):
            return self.text(part.text) if part.text.strip() else None
        if isinstance(part, Thinking):
            if part.signature is None:
                return None
            return self.build(self.thoughts[0], self.thought(part.text, part.signature))
        if isinstance(part, ToolCall):
            return self.build(self.call[0], self._call_fields(part))
        if isinstance(part, Media):
            return self.media(part) or self.text(placeholder(part))
        if isinstance(part, Opaque):
            own = part.dialect == self.dialect and isinstance(part.data, dict)
            return cast("Block", part.data) if own else None
        return self.result_of(part, part.call_id)

    def _call_fields(self, call: ToolCall) -> Fields:
        return {self.call[1]: call.id, "name": call.name, "input": input_of(call)}

    def result_of(self, result: ToolResult, call_id: str) -> Block:
        """Return the block of a result for the call `call_id`; an error contains only text."""
        parts = [part for part in result.content if isinstance(part, Text) or not result.is_error]
        blocks = [block for part in parts if (block := self.block_of(part)) is not None]
        fields = self._result_fields(ToolResult(call_id, (), result.is_error), self.content(blocks))
        if self.tells_success or result.is_error:
            fields |= self._status(result)
        return self.build(self.result[0], fields)

    def _result_fields(self, result: ToolResult, content: Any) -> Fields:
        """Return the id and content of a result; an error has a text, an empty content string is omitted."""
        if not content and result.is_error:
            content = self.content([self.text(NO_OUTPUT)])
        fields = {"content": content} if content or not self.single_texts else {}
        return {self.result[1]: result.call_id, **fields}

    def _status(self, result: ToolResult) -> Fields:
        key, error, success = self.failed
        return {key: error if result.is_error else success}

    # ---- edits

    def edit(self, body: Block, edits: Mapping[int, Part | None], index: int | None = None) -> Block | None:
        """Return a native message with some blocks replaced (None: removed); None if no block is left.

        All other keys and blocks stay as received. An assistant message must not end in thinking: if an edit
        removes the blocks after it, the thinking is removed too.
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
        is_text = isinstance(content, str) and self.kind(blocks[0]) == "text"
        return {**body, "content": blocks[0]["text"] if is_text else blocks}

    def patched(self, native: Block, old: Part, new: Part | None) -> Block | None:
        """Return a block with its part replaced, other fields as received; None if it is removed."""
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
        """Return a block with some fields changed."""
        inner = self.fields_in(block)
        new = {**inner, **fields}
        return new if inner is block else {**block, self.kind(block): new}

    def _patched_result(self, native: Block, old: ToolResult, new: ToolResult) -> Block:
        inner = self.fields_in(native)
        content = inner.get("content")
        blocks = self._patched_content(items_of(content), old, new)
        fields = self._result_fields(new, blocks if isinstance(content, list) else self.content(blocks))
        if new.is_error or self.failed[0] in inner:
            fields |= self._status(new)
        block = self.changed(native, fields)
        if "content" not in fields:
            self.fields_in(block).pop("content", None)
        return block

    def _patched_content(self, natives: Sequence[Block], old: ToolResult, new: ToolResult) -> list[Block]:
        """Return the blocks of an edited result, unchanged ones as received."""
        shared = min(len(natives), len(old.content))
        return [
            natives[place] if place < shared and old.content[place] == part else block
            for place, part in enumerate(new.content)
            if (block := self.block_of(part)) is not None
        ]

    def drop_last_thinking(self, blocks: list[Any]) -> int:
        """Remove thinking from the end of a turn, which the APIs reject; return the number of blocks."""
        last = len(blocks)
        while last and (self.is_thought(blocks[last - 1]) or self.is_silent(blocks[last - 1])):
            last -= 1
        dropped = sum(map(self.is_thought, blocks[last:]))
        if dropped:
            del blocks[last:]
        return dropped

    # ---- requests

    def request(self, messages: Sequence[Block], losses: Losses) -> list[Block]:
        """Return messages in the form that a request requires (see `_sendable`), without empty ones.

        The results of a turn are merged into one message: the APIs require all of them in the next message.
        """
        merged: list[Block] = []
        for message in messages:
            body = self._sendable(message, losses)
            before = merged[-1] if merged else {}
            if all(map(self.is_silent, self.blocks(body))):
                losses.add("empty messages left out")
            elif merged and before.get("role") == body.get("role") and self._must_merge(body):
                blocks = self._results_first([*self.blocks(before), *self.blocks(body)])
                merged[-1] = {**before, "content": blocks}
            else:
                merged.append(body)
        return merged

    def _must_merge(self, body: Block) -> bool:
        """Return whether a message must be merged into an earlier one of its role."""
        return self.alternates or (body.get("role") == "user" and any(map(self.is_result, self.blocks(body))))

    def _results_first(self, blocks: list[Any]) -> list[Any]:
        return sorted(blocks, key=lambda block: not self.is_result(block))

    def _sendable(self, body: Block, losses: Losses) -> Block:
        """Return a message without rejected blocks, with its results first and none of them empty."""
        content = items_of(body.get("content"))
        blocks = [self._filled_result(block) for block in content if not self.is_rejected(block)]
        if len(blocks) < len(content):
            losses.add("empty texts and thinking without a signature left out", len(content) - len(blocks))
        if body.get("role") == "user":
            blocks = self._results_first(blocks)
        return body if blocks == content else {**body, "content": blocks}

    def _filled_result(self, block: Any) -> Any:
        """Return a result without blank texts, with a placeholder if it is empty; keep other blocks."""
        if not self.is_result(block):
            return block
        original = content = self.fields_in(block).get("content")
        if isinstance(original, list):
            content = [inner for inner in items_of(original) if not self.is_rejected(inner)]
        if content and content == original:
            return block
        return self.changed(block, {"content": content or self.content([self.text(NO_OUTPUT)])})
