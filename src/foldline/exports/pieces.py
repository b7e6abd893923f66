"""Split messages into pieces: each result, then everything else; as parts, or as Anthropic's blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import msgspec

from foldline.core.log.entries import Edit
from foldline.core.log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from foldline.dialects.anthropic.blocks import BLOCKS
from foldline.dialects.dialect import lost_fields
from foldline.dialects.edits import replacements, with_edits
from foldline.dialects.ids import Ids
from foldline.dialects.media import to_anthropic
from foldline.dialects.payload import is_blank_text, parse
from foldline.dialects.values import ANTHROPIC
from foldline.exports.base import ExportWriter, Origin, Out, SaidStep, part_key
from foldline.transcripts.payloads import BlockNames

Block = dict[str, Any]

NOT_AN_OBJECT = "call arguments that are not a JSON object wrapped in one"


class ExportPiece(NamedTuple):
    """A result, or all other content of a message; written with its own key and time."""

    step: SaidStep
    key: str
    content: Any
    at: float


class PieceWriter(ExportWriter):
    """The base of formats whose results are separate messages, or parts that come first.

    `notes` names what later system messages become; the first one is left to the agent. `empty_replies`:
    replies without content are written too.
    """

    stepwise: ClassVar[bool] = True
    joins: ClassVar[bool] = True
    notes: ClassVar[str] = "notes"
    empty_replies: ClassVar[bool] = False

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._names: dict[str, str] = {}  # call id -> tool, for calls without a result yet

    def say(self, step: SaidStep) -> None:
        """Yield a message."""
        self.expect(step)
        if step.message.role in ("system", "developer"):
            kept = with_edits(step.message, step.edits)
            if kept is not None:
                self.system(msgspec.structs.replace(step, message=kept, edits=()))
            return
        results, rest = self.pieces(step)
        replies = step.message.role == "assistant"
        if not results and not rest and not (replies and self.empty_replies):
            self.losses.add("empty messages left out")
            return
        self.begun = True
        at = self.time(step.at)
        for number, result in enumerate(results):
            self.result(ExportPiece(step, part_key(step.key, number), result, at))
        if rest or not results:
            write = self.reply if replies else self.user
            write(ExportPiece(step, part_key(step.key, len(results)), rest, at))

    def system(self, step: SaidStep) -> None:
        """Yield a system message as a note of a program; the first one is left to the agent."""
        text = step.message.text.strip()
        if not self.begun:
            self.losses.add("system prompt left out (the agent adds its own)")
        elif text:
            self.losses.add(f"system messages became {self.notes}")
            self.note(step.key, text, self.time(step.at))

    def pieces(self, step: SaidStep) -> tuple[list[Any], Any]:
        """Return a message's results, and its other content."""
        lost_fields(step.message.native, self.losses)
        return self.parts(step)

    def parts(self, step: SaidStep) -> tuple[list[Any], list[Any]]:
        """Return a message's results, and the pieces of its other parts."""
        kept = with_edits(step.message, step.edits)
        parts = kept.parts if kept is not None else ()
        for part in parts:
            if isinstance(part, ToolCall):
                self._names[part.id] = part.name
        rest = [part for part in parts if not isinstance(part, ToolResult)]
        results = [part for part in parts if isinstance(part, ToolResult)]
        return results, [block for part in rest for block in self.blocks(part)]

    def tool_of(self, result: ToolResult) -> str:
        """Return the name of the tool that a result is from."""
        return self._names.pop(result.call_id, "unknown")

    def object_of(self, call: ToolCall) -> dict[str, Any]:
        """Return a call's arguments as an object."""
        if isinstance(call.arguments, str):
            self.losses.add(NOT_AN_OBJECT)
            return {"input": call.arguments}
        return call.arguments

    # ---- for formats to override

    def blocks(self, part: Part) -> Iterator[Any]:
        """Yield the pieces of a part that is not a result."""
        yield part

    def note(self, key: str, text: str, at: float) -> None:
        """Yield a program's note in the user's name."""
        raise NotImplementedError

    def result(self, piece: ExportPiece) -> None:
        """Yield a result."""
        raise NotImplementedError

    def reply(self, piece: ExportPiece) -> None:
        """Yield a reply."""
        raise NotImplementedError

    def user(self, piece: ExportPiece) -> None:
        """Yield a message in the user's name."""
        raise NotImplementedError


def has_text(part: Part) -> bool:
    """Return whether a part is text that is not blank."""
    return isinstance(part, Text) and bool(part.text.strip())


def counts_of(usage: Usage | None, names: Sequence[str], *, inclusive: bool = False) -> dict[str, int]:
    """Return a usage under the format's names of input, cached input read and written, and output.

    `inclusive`: the input includes the cached tokens. The reverse of `transcripts.payloads.usage_of`.
    """
    usage = usage or Usage()
    input_tokens = usage.input + (usage.cache_read + usage.cache_write if inclusive else 0)
    return dict(zip(names, (input_tokens, usage.cache_read, usage.cache_write, usage.output), strict=True))


# ---- Anthropic's blocks


class BlockWriter(PieceWriter):
    """The base of formats close to Anthropic's: native blocks as received, others made from parts.

    Call ids are valid and unique for Anthropic's API; nothing else is remembered between messages.
    `names` are the agent's names for the fields, for `renamed`.
    """

    names: ClassVar[BlockNames]

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._ids = Ids(limit=BLOCKS.id_limit, everywhere=True, any_text=False)
        self._renamed = 0

    def pieces(self, step: SaidStep) -> tuple[list[Block], str | list[Block]]:
        """Return the blocks of a message's results, and its other blocks or its text."""
        content = self._native(step)
        if content is None:
            content = self._encoded(step.message, step.edits)
        if isinstance(content, str):
            return [], content if content.strip() else ""
        if step.message.role == "assistant":
            self._ids.batch()
        blocks = [self._with_id(block) for block in content if not is_blank_text(block)]
        changed = self._ids.renamed - self._renamed
        if changed:
            self._renamed = self._ids.renamed
            self.losses.add("call ids changed", changed)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        return results, [block for block in blocks if block.get("type") != "tool_result"]

    def _native(self, step: SaidStep) -> str | list[Block] | None:
        """Return the content as received, edited; None for a message of another dialect."""
        native = step.message.native
        if native is None or native.dialect != ANTHROPIC:
            return None
        body = parse(native.raw)
        if step.edits:
            body = BLOCKS.edit(body, replacements(step.edits))
        content = body.get("content") if body else None
        return content if isinstance(content, str) else cast("list[Block]", content or [])

    def _encoded(self, message: Message, edits: Sequence[Edit]) -> str | list[Block]:
        lost_fields(message.native, self.losses)
        kept = with_edits(message, edits)
        blocks: list[Block] = []
        for part in kept.parts if kept is not None else ():
            self._count_losses(part)
            for inner in part.content if isinstance(part, ToolResult) else ():
                self._count_losses(inner)
            if (block := BLOCKS.block_of(part)) is not None:
                blocks.append(block)
        return BLOCKS.content(blocks)

    def _count_losses(self, part: Part) -> None:
        """Count a part that the Messages API does not accept."""
        if isinstance(part, ToolCall) and isinstance(part.arguments, str):
            self.losses.add(NOT_AN_OBJECT)
        elif isinstance(part, Thinking) and part.signature is None:
            self.losses.add("unsigned thinking left out")
        elif (isinstance(part, Media) and to_anthropic(part) is None) or (
            isinstance(part, Opaque) and BLOCKS.block_of(part) is None
        ):
            self.lose(part)

    def _with_id(self, block: Block) -> Block:
        kind = block.get("type")
        if kind == "tool_use":
            return {**block, "id": self._ids.call(str(block.get("id")))}
        if kind == "tool_result":
            return {**block, "tool_use_id": self._ids.result(str(block.get("tool_use_id")))}
        return block

    def renamed(self, blocks: list[Block]) -> list[Block]:
        """Return blocks under the agent's names, with results as text; count those that it cannot have."""
        converted: list[Block] = []
        for block in blocks:
            text = self.result_text(block) if block.get("type") == "tool_result" else ""
            written = self.names.write(block, text)
            if written is None:
                self.losses.add(f"{block.get('type')} left out")
            else:
                converted.append(written)
        return converted

    def result_text(self, block: Block) -> str:
        """Return the text of a result block, for formats whose results are text."""
        content = block.get("content")
        if not isinstance(content, list):
            return str(content or "")
        blocks = cast("list[Block]", content)
        for inner in blocks:
            if inner.get("type") != "text":
                self.losses.add(f"{inner.get('type')} in a result left out")
        return "\n".join(str(inner.get("text", "")) for inner in blocks if inner.get("type") == "text")
