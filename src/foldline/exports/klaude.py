"""klaude-code's session files: one `{"type", "data"}` a line, a compaction as an entry among them.

Source: the history items that klaude-code publishes. A compaction gives the first item that it kept by its
index in the history and by its line, both from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.codec import encode_utf8, pretty
from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.exports.base import FoldStep, Origin, Out, SaidStep, is_readable, iso
from foldline.exports.pieces import Block, ExportPiece, PieceWriter, counts_of, has_text
from foldline.transcripts.klaude import STOPS, USAGE

_STOPS = {ours: theirs for theirs, ours in STOPS.items()}


class KlaudeWriter(PieceWriter):
    """Write a history that klaude-code loads."""

    kept_at: ClassVar[str] = "~/.klaude/projects/{dashed}/sessions/{session}/events.jsonl"
    resumed_by: ClassVar[str] = "klaude --resume-by-id {session}"

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._items = 0

    def system(self, step: SaidStep) -> None:
        """Yield a system message."""
        if step.message.text.strip():
            parts = [{"type": "text", "text": step.message.text}]
            self._item("SystemMessage", self.time(step.at), role="user", parts=parts)

    def result(self, piece: ExportPiece) -> None:
        """Yield a result."""
        result: ToolResult = piece.content
        media = [part for part in result.content if not isinstance(part, Text)]
        self._item(
            "ToolResultMessage",
            piece.at,
            role="tool",
            call_id=result.call_id,
            tool_name=self.tool_of(result),
            status="error" if result.is_error else "success",
            output_text=result.text,
            parts=[block for part in media for block in self.blocks(part)],
        )

    def reply(self, piece: ExportPiece) -> None:
        """Yield a reply."""
        message = piece.step.message
        usage = counts_of(self.usage(piece.step), USAGE, inclusive=True)
        counted = {**usage, "reasoning_tokens": 0, "model_name": self.model(message, "unknown")}
        stop = _STOPS[message.stop or ("tools" if message.calls else "end")]
        fields = {"role": "assistant", "usage": counted, "stop_reason": stop}
        self._item("AssistantMessage", piece.at, parts=piece.content, **fields)

    def user(self, piece: ExportPiece) -> None:
        """Yield a message of the user, or of a program in the user's name."""
        injected = piece.step.message.injected
        kind, role = ("DeveloperMessage", "developer") if injected else ("UserMessage", "user")
        self._item(kind, piece.at, role=role, parts=piece.content)

    def fold(self, step: FoldStep) -> None:
        """Yield a compaction; if it kept nothing, its first kept item is the next one."""
        place = self.place(step.first_kept)
        first = self._items + 1 if place is None else int(place)
        ledger = msgspec.convert(step.ledger, Ledger)
        details = {
            "read_files": [fact.path for fact in ledger.files if fact.status == "read"],
            "modified_files": [fact.path for fact in ledger.files if fact.status in ("created", "modified")],
        }
        self._item(
            "CompactionEntry",
            self.boundary_time(step),
            summary=step.words,
            first_kept_index=first,
            first_kept_line=first,
            tokens_before=step.tokens_before,
            details=details,
        )

    def beside(self) -> dict[str, bytes]:
        """Return the metadata that klaude-code keeps in `meta.json` next to the events."""
        meta = {
            "id": self.session,
            "work_dir": self.origin.cwd,
            "title": self.origin.title,
            "created_at": self.origin.started,
            "updated_at": self.origin.ended,
            "model_name": self.origin.model,
            "messages_count": self.count,
        }
        fields = {key: value for key, value in meta.items() if value is not None}
        return {"/meta.json": pretty(fields) + b"\n"}

    def _item(self, kind: str, at: float, **data: Any) -> None:
        if kind != "CompactionEntry":
            self.wrote(str(self._items))
            self.count += 1
        self._items += 1
        self.line({"type": kind, "data": {**data, "created_at": iso(at)}})

    def blocks(self, part: Part) -> Iterator[Block]:
        """Convert a part to klaude-code's parts; a thought and its signature are two."""
        if isinstance(part, Text) and has_text(part):
            yield {"type": "text", "text": part.text}
        elif isinstance(part, Thinking):
            yield {"type": "thinking_text", "text": part.text}
            if part.signature:
                yield {"type": "thinking_signature", "signature": part.signature}
        elif isinstance(part, ToolCall):
            text = part.arguments if isinstance(part.arguments, str) else encode_utf8(part.arguments).decode()
            yield {"type": "tool_call", "call_id": part.id, "tool_name": part.name, "arguments_json": text}
        elif isinstance(part, Media) and part.kind == "image" and part.data and is_readable(part):
            yield {"type": "image_url", "url": f"data:{part.mime or 'image/png'};base64,{part.data}"}
        elif isinstance(part, Media | Opaque):
            self.lose(part)
