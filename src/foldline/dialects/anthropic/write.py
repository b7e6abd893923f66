"""Parts -> Anthropic messages: blocks, edits of messages kept as received, and the list as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import NO_OUTPUT
from foldline.dialects.anthropic.form import ID_LIMIT, THOUGHTS
from foldline.dialects.anthropic.read import parts_of
from foldline.dialects.edits import check_edits
from foldline.dialects.ids import Ids
from foldline.dialects.media import placeholder, to_anthropic
from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.turns import Block, TurnsWriter, input_of
from foldline.dialects.values import ANTHROPIC, Losses

NAME_LIMIT = 128


def edit_native(body: Block, edits: Mapping[int, Part | None], index: int | None = None) -> Block | None:
    """Return a native message with some of its blocks replaced (None: removed); None if no block is left.

    All other keys and blocks stay as received. An assistant message never ends in thinking: if an edit
    removed what followed, that thinking goes too.
    """
    content = body.get("content")
    parts = parts_of(content, index)
    check_edits(edits, parts, index)
    natives: list[Any] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[Any]", content)
    )
    blocks: list[Any] = []
    for number, native in enumerate(natives):
        block = _patched(native, parts[number], edits[number]) if number in edits else native
        if block is not None:
            blocks.append(block)
    if body.get("role") == "assistant":
        _drop_last_thinking(blocks)
    if not blocks:
        return None
    plain = isinstance(content, str) and blocks[0].get("type") == "text"
    return {**body, "content": blocks[0]["text"] if plain else blocks}


def _drop_last_thinking(blocks: list[Any]) -> int:
    dropped = 0
    while blocks and blocks[-1].get("type") in THOUGHTS:
        blocks.pop()
        dropped += 1
    return dropped


def _patched(native: Block, old: Part, new: Part | None) -> Block | None:
    if new == old:
        return native
    if isinstance(new, Text) and isinstance(old, Text):
        return {**native, "text": new.text} if new.text.strip() else None
    if isinstance(new, ToolCall) and isinstance(old, ToolCall):
        return {**native, "id": new.id, "name": new.name, "input": input_of(new)}
    if isinstance(new, ToolResult) and isinstance(old, ToolResult):
        return _patched_result(native, old, new)
    return None if new is None else block_of(new)


def _patched_result(native: Block, old: ToolResult, new: ToolResult) -> Block:
    block = {**native, "tool_use_id": new.call_id}
    content = native.get("content")
    if isinstance(content, list):
        kept = cast("list[Block]", content)
        same = min(len(kept), len(old.content))
        block["content"] = [
            kept[place] if place < same and old.content[place] == part else inner
            for place, part in enumerate(new.content)
            if (inner := block_of(part)) is not None
        ]
    else:
        block["content"] = _content(new.content)
    if new.is_error or "is_error" in native:
        block["is_error"] = new.is_error
    if not block["content"]:
        del block["content"]
        if new.is_error:
            block["content"] = NO_OUTPUT
    return block


def block_of(part: Part) -> Block | None:
    """Return the block for a part, ids unchanged; None for what the Messages API does not accept."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Thinking):
        if part.signature is None:
            return None
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    if isinstance(part, ToolCall):
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": input_of(part)}
    if isinstance(part, Media):
        return to_anthropic(part) or {"type": "text", "text": placeholder(part)}
    if isinstance(part, Opaque):
        is_ours = part.dialect == ANTHROPIC and isinstance(part.data, dict)
        return cast("Block", part.data) if is_ours else None
    return _result_block(part, part.call_id)


def _content(parts: Iterable[Text | Media | Opaque]) -> Any:
    blocks = [block for part in parts if (block := block_of(part)) is not None]
    if len(blocks) == 1 and set(blocks[0]) == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def _result_block(result: ToolResult, call_id: str) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": call_id}
    # a result marked as an error may hold only text
    content = _content(
        [part for part in result.content if isinstance(part, Text)] if result.is_error else result.content
    )
    if content:
        block["content"] = content
    if result.is_error:
        block.setdefault("content", NO_OUTPUT)
        block["is_error"] = True
    return block


class AnthropicWriter(TurnsWriter):
    """Build an Anthropic list: native messages as they are, others encoded and merged into turns."""

    def __init__(self, native_ids: Iterable[str]) -> None:
        super().__init__(Ids(limit=ID_LIMIT, everywhere=True, any_text=False, taken=native_ids))

    def _text(self, text: str) -> Block:
        return {"type": "text", "text": text}

    def _request(self, messages: list[Block]) -> list[Block]:
        return request(messages, self.losses)

    def _said(self, role: str, results: list[Block], blocks: list[Block]) -> list[Block]:
        if role == "assistant" and (dropped := _drop_last_thinking(blocks)):
            self.losses.add("thinking at the end of a turn left out", dropped)
        content: Any = [*results, *blocks]
        if not content:
            return []
        if len(content) == 1 and set(content[0]) == {"type", "text"}:
            content = content[0]["text"]
        return [{"role": role, "content": content}]

    def _block(self, part: Part, role: str) -> Block | None:
        if isinstance(part, ToolResult):
            for inner in part.content:
                self._note(inner)
            if part.is_error and any(not isinstance(inner, Text) for inner in part.content):
                self.losses.add("media in error results left out")
            return _result_block(part, self._ids.result(part.call_id))
        self._note(part)
        if isinstance(part, Text) and role == "assistant":
            # the API refuses whitespace at the end of a last assistant message, and any may be the last
            return block_of(Text(part.text.rstrip()))
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, Media) and role == "assistant":
            return {"type": "text", "text": placeholder(part)}
        if isinstance(part, Thinking | Opaque) and role != "assistant" and _is_thought(part):
            return None
        return block_of(part)

    def _call(self, call: ToolCall) -> Block:
        name = self._named(call, NAME_LIMIT)
        return {"type": "tool_use", "id": self._ids.call(call.id), "name": name, "input": self._input(call)}

    def _note(self, part: Part) -> None:
        """Count a part that the Messages API does not accept."""
        if isinstance(part, Media):
            refused = to_anthropic(part) is None
        else:
            refused = isinstance(part, Thinking | Opaque) and block_of(part) is None
        if refused:
            self._leave(part)

    def _leave(self, part: Part) -> None:
        if isinstance(part, Thinking):
            self.losses.add("unsigned thinking left out")
        else:
            super()._leave(part)


def _is_thought(part: Thinking | Opaque) -> bool:
    return isinstance(part, Thinking) or part.kind == "redacted_thinking"


# ---- what a request refuses


def request(messages: Sequence[Block], losses: Losses) -> list[Block]:
    """Return messages as a request takes them: see `_sendable`; results of one turn stand in one message.

    A message that says nothing is left out. The API wants all results of a turn in the next message.
    """
    found: list[Block] = []
    for message in messages:
        body = _sendable(message, losses)
        before = found[-1] if found else {}
        if not _blocks_in(body):
            losses.add("empty messages left out")
        elif before.get("role") == body.get("role") == "user" and any(map(_is_result, _blocks_in(body))):
            found[-1] = {**before, "content": _results_first([*_blocks_in(before), *_blocks_in(body)])}
        else:
            found.append(body)
    return found


def _blocks_in(body: Block) -> list[Any]:
    """Return the blocks of a message; a string is one text block."""
    content = body.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    return list(items_of(content))


def _results_first(blocks: list[Any]) -> list[Any]:
    """Return blocks with the results before all others, each in its order."""
    return sorted(blocks, key=lambda block: not _is_result(block))


def _sendable(body: Block, losses: Losses) -> Block:
    """Return a message without thinking that has no signature, its results first and none of them empty."""
    content = items_of(body.get("content"))
    blocks = [_said(block) for block in content if not _is_refused(block)]
    if len(blocks) < len(content):
        losses.add("empty texts and thinking without a signature left out", len(content) - len(blocks))
    if body.get("role") == "user":
        blocks = _results_first(blocks)
    return body if blocks == content else {**body, "content": blocks}


def _said(block: Any) -> Any:
    """Return a block whose result, if it is one, says something in each of its texts."""
    if not _is_result(block):
        return block
    content = block.get("content")
    if isinstance(content, list):
        content = [inner for inner in items_of(content) if not _is_refused(inner)]
    return block if content and content == block["content"] else {**block, "content": content or NO_OUTPUT}


def _is_result(block: Any) -> bool:
    return fields_of(block).get("type") == "tool_result"


def _is_refused(block: Any) -> bool:
    """Return whether the API refuses a block: a text of nothing but space, thinking without a signature."""
    fields = fields_of(block)
    if fields.get("type") == "text":
        return not str(fields.get("text") or "").strip()
    return fields.get("type") == "thinking" and not fields.get("signature")
