"""Parts -> Converse's blocks, edits of blocks kept as received, and what a request refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import NO_OUTPUT
from foldline.dialects.bedrock_converse.blobs import kept, with_bytes
from foldline.dialects.bedrock_converse.form import (
    DOCUMENT_LIMIT,
    FORMATS,
    ID_LIMIT,
    NAME_LIMIT,
    document_name,
)
from foldline.dialects.bedrock_converse.read import MIMES, SILENT, held_in, kind_of, parts_of
from foldline.dialects.block_writer import BlocksWriter
from foldline.dialects.blocks import BlockForm
from foldline.dialects.media import placeholder
from foldline.dialects.payload import items_of
from foldline.dialects.turns import Block, input_of
from foldline.dialects.values import BEDROCK_CONVERSE, FILE_ID, Losses, Rendered

BESIDE_DOCUMENT = "[See the document.]"  # a message with a document must have a text
_FORMATS = {(kind, mime): form for (kind, form), mime in MIMES.items()} | {("audio", "audio/mp3"): "mp3"}


class ConverseBlocks(BlockForm):
    """The blocks of the Converse API, told apart by their key."""

    dialect = BEDROCK_CONVERSE
    call = ("toolUse", "toolUseId")
    result = ("toolResult", "toolUseId")
    thoughts = ("reasoningContent",)
    id_limit = ID_LIMIT
    name_limit = NAME_LIMIT
    alternates = True

    def kind(self, block: Block) -> str:
        """Return the key of a block."""
        return kind_of(block)

    def held(self, block: Block) -> Block:
        """Return what stands under the key of a block."""
        return held_in(block)

    def is_silent(self, block: Any) -> bool:
        """Return whether a block is a cache point."""
        return kind_of(block) == SILENT

    def parts(self, content: Any, index: int | None = None) -> list[Part]:
        """Read a message's content, a part for each block but cache points."""
        return parts_of(content, index)

    def text(self, text: str) -> Block:
        """Return a text as a block."""
        return {"text": text}

    def content(self, blocks: list[Any]) -> Any:
        """Return blocks as a content, which is always a list."""
        return blocks

    def system(self, text: str) -> Any:
        """Return a text as a system prompt, which is a list of blocks."""
        return [self.text(text)]

    def media(self, media: Media) -> Block | None:
        """Return the block of a user message or a result; None if the API has no such block."""
        form = _FORMATS.get((media.kind, media.mime), media.mime.rpartition("/")[2])
        source: Block | None = None
        if (place := (media.url or "").removeprefix(FILE_ID)).startswith("s3://"):
            source = {"s3Location": {"uri": place}}
        elif media.data and (data := kept(media.data)):
            source = {"bytes": data}
        if source is None or form not in FORMATS.get(media.kind, ()):
            return None
        named = {"name": document_name(media.name)} if media.kind == "document" else {}
        return {media.kind: {"format": form, **named, "source": source}}

    def block_of(self, part: Part) -> Block | None:
        """Return the block for a part, ids unchanged; None for what the Converse API does not accept."""
        if isinstance(part, Text):
            return self.text(part.text) if part.text.strip() else None
        if isinstance(part, Thinking):
            told = {"text": part.text, "signature": part.signature}
            return None if part.signature is None else {"reasoningContent": {"reasoningText": told}}
        if isinstance(part, ToolCall):
            return {"toolUse": {"toolUseId": part.id, "name": part.name, "input": input_of(part)}}
        if isinstance(part, Media):
            return self.media(part) or self.text(placeholder(part))
        if isinstance(part, Opaque):
            is_ours = part.dialect == BEDROCK_CONVERSE and isinstance(part.data, dict)
            return cast("Block", part.data) if is_ours else None
        return self.result_of(part, part.call_id)

    def result_of(self, result: ToolResult, call_id: str) -> Block:
        """Return the block of a result; one marked as an error holds only text, as Anthropic wants it."""
        told = [part for part in result.content if isinstance(part, Text) or not result.is_error]
        content = [block for part in told if (block := self.block_of(part)) is not None]
        if result.is_error and not content:
            content = [self.text(NO_OUTPUT)]
        return {"toolResult": {"toolUseId": call_id, "content": content, "status": _status(result)}}

    def answering(self, block: Block, content: Any) -> Block:
        """Return the block of a result with another content."""
        blocks = [self.text(content)] if isinstance(content, str) else content
        return {**block, "toolResult": {**held_in(block), "content": blocks}}

    def patched(self, native: Block, old: Part, new: Part | None) -> Block | None:
        """Return a block with its part replaced, other fields as received; None removes it."""
        if new == old:
            return native
        held = held_in(native)
        if isinstance(new, Text) and "guardContent" in native and "text" in held:
            text = {**held["text"], "text": new.text}
            return {**native, "guardContent": {**held, "text": text}} if new.text.strip() else None
        if isinstance(new, ToolCall) and isinstance(old, ToolCall):
            call = {**held, "toolUseId": new.id, "name": new.name, "input": input_of(new)}
            return {**native, "toolUse": call}
        if isinstance(new, ToolResult) and isinstance(old, ToolResult):
            content = self.kept(items_of(held.get("content")), old, new)
            if new.is_error and not content:
                content = [self.text(NO_OUTPUT)]
            status = {"status": _status(new)} if new.is_error or "status" in held else {}
            return {
                **native,
                "toolResult": {**held, "toolUseId": new.call_id, "content": content, **status},
            }
        return None if new is None else self.block_of(new)

    def request(self, messages: Sequence[Block], losses: Losses) -> list[Block]:
        """Return messages as a request takes them, each document with a text and a name of its own."""
        listed = [
            {**one, "content": self.blocks(one)} if isinstance(one.get("content"), str) else one
            for one in messages
        ]
        found = super().request(listed, losses)
        found = super().request([self._ended(message, losses) for message in found], losses)
        taken: set[str] = set()
        return [self._documented(message, taken, losses) for message in found]

    def _ended(self, message: Block, losses: Losses) -> Block:
        """Return a message that does not end in thinking, if it is the assistant's."""
        blocks = list(items_of(message.get("content")))
        if message.get("role") != "assistant" or not (dropped := self.drop_last_thinking(blocks)):
            return message
        losses.add("thinking at the end of a turn left out", dropped)
        return {**message, "content": blocks}

    def _documented(self, message: Block, taken: set[str], losses: Losses) -> Block:
        given = items_of(message.get("content"))
        after = [None, *given]
        blocks = [
            self._named(block, taken, losses)
            for before, block in zip(after, given, strict=False)
            if not (self.is_silent(block) and self.is_thought(before))
        ]
        kinds = set(map(kind_of, blocks))
        if "document" in kinds and "text" not in kinds:
            losses.add("a text added beside a document")
            blocks.append(self.text(BESIDE_DOCUMENT))
        return message if blocks == given else {**message, "content": blocks}

    def _named(self, block: Any, taken: set[str], losses: Losses) -> Any:
        """Return a block whose documents have names that are not `taken`, in a result as well."""
        held = held_in(block)
        if self.is_result(block):
            inner = [self._named(one, taken, losses) for one in items_of(held.get("content"))]
            return block if inner == held.get("content") else self.answering(block, inner)
        name = held.get("name") if kind_of(block) == "document" else None
        if not isinstance(name, str):
            return block
        own, number = name, 2
        while own in taken:
            end = f"-{number}"
            own, number = name[: DOCUMENT_LIMIT - len(end)] + end, number + 1
        taken.add(own)
        losses.add("document names changed", own != name)
        return block if own == name else {**block, "document": {**held, "name": own}}


def _status(result: ToolResult) -> str:
    return "error" if result.is_error else "success"


def documents(block: Any) -> Iterator[Block]:
    """Yield what the documents of a block hold, those in a result included."""
    if kind_of(block) == "document":
        yield held_in(block)
    elif kind_of(block) == "toolResult":
        yield from (one for inner in items_of(held_in(block).get("content")) for one in documents(inner))


class ConverseWriter(BlocksWriter):
    """Build a list of Converse's messages, their bytes as boto3 takes them."""

    def finish(self, *, whole: bool = False) -> Rendered:
        """Return the list, the system prompt and the losses; a `whole` request is as the API takes it."""
        done = super().finish(whole=whole)
        return msgspec.structs.replace(
            done, messages=with_bytes(done.messages), system=with_bytes(done.system)
        )


BLOCKS = ConverseBlocks()
