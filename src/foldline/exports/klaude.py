"""klaude-code's session files: one `{"type", "data"}` a line, a compaction as an entry among them.

Source: the history items that klaude-code publishes. A compaction names the first item that it kept by its
place in the history and by its line, both from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.codec import encode_utf8, pretty
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
from foldline.dialects.edits import with_edits
from foldline.exports.base import ExportWriter, FoldStep, Origin, SaidStep, is_readable, iso, line
from foldline.transcripts.klaude import STOPS

_STOPS = {ours: theirs for theirs, ours in STOPS.items()}

Block = dict[str, Any]


class KlaudeWriter(ExportWriter):
    """Write a history that klaude-code loads."""

    stepwise = True
    joins = True

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._items = 0
        self._names: dict[str, str] = {}  # call id -> tool, for calls without a result yet

    def say(self, step: SaidStep) -> Iterator[bytes]:
        """Yield a message: each result by itself, then the rest of it."""
        self.expect(step)
        kept = with_edits(step.message, step.edits)
        if kept is None:
            self.losses.add("empty messages left out")
            return
        at = self.clock.at(step.at)
        for part in kept.parts:
            if isinstance(part, ToolResult):
                yield self._item("ToolResultMessage", at, **self._result(part))
        rest = [part for part in kept.parts if not isinstance(part, ToolResult)]
        parts = [block for part in rest for block in self._blocks(part)]
        if parts and kept.role == "assistant":
            yield self._item("AssistantMessage", at, parts=parts, **self._reply(step, kept))
        elif parts:
            yield self._item(_kind(kept), at, role="developer" if kept.injected else "user", parts=parts)
        elif not kept.results:
            self.losses.add("empty messages left out")

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Yield a compaction; one that kept nothing keeps what comes after it."""
        place = self.place(step.first_kept)
        first = self._items + 1 if place is None else int(place)
        facts = msgspec.convert(step.ledger, Ledger)
        details = {
            "read_files": [fact.path for fact in facts.files if fact.status == "read"],
            "modified_files": [fact.path for fact in facts.files if fact.status in ("created", "modified")],
        }
        yield self._item(
            "CompactionEntry",
            self.boundary_time(step),
            summary=step.words,
            first_kept_index=first,
            first_kept_line=first,
            tokens_before=step.tokens_before,
            details=details,
        )

    def beside(self) -> dict[str, bytes]:
        """Return what klaude-code keeps about a session in `meta.json` beside its events."""
        meta = {
            "id": self.session,
            "work_dir": self.origin.cwd,
            "title": self.origin.title,
            "created_at": self.origin.started,
            "updated_at": self.origin.ended,
            "model_name": self.origin.model,
            "messages_count": self.count,
        }
        return {
            "/meta.json": pretty({key: value for key, value in meta.items() if value is not None}) + b"\n"
        }

    def resume(self) -> tuple[str, str]:
        """Return where klaude-code keeps a project's sessions, and its command."""
        project = self.origin.cwd.strip("/").replace("/", "-")
        place = f"~/.klaude/projects/{project}/sessions/{self.session}/events.jsonl"
        return place, f"klaude --resume-by-id {self.session}"

    def _item(self, kind: str, at: float, **data: Any) -> bytes:
        if kind != "CompactionEntry":
            self.wrote(str(self._items))
            self.count += 1
        self._items += 1
        return line({"type": kind, "data": {**data, "created_at": iso(at)}})

    def _result(self, result: ToolResult) -> Block:
        left = [part for part in result.content if not isinstance(part, Text)]
        shown = [block for part in left for block in self._blocks(part)]
        return {
            "role": "tool",
            "call_id": result.call_id,
            "tool_name": self._names.pop(result.call_id, "unknown"),
            "status": "error" if result.is_error else "success",
            "output_text": result.text,
            "parts": shown,
        }

    def _reply(self, step: SaidStep, message: Message) -> Block:
        usage = self.usage(step) or Usage()
        counted = {
            "input_tokens": usage.input + usage.cache_read + usage.cache_write,
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "reasoning_tokens": 0,
            "output_tokens": usage.output,
            "model_name": self.model(message, "unknown"),
        }
        stop = _STOPS[message.stop or ("tools" if message.calls else "end")]
        return {"role": "assistant", "usage": counted, "stop_reason": stop}

    def _blocks(self, part: Part) -> Iterator[Block]:
        """Yield a part as klaude-code's parts; a thought and its signature are two."""
        if isinstance(part, Text) and part.text.strip():
            yield {"type": "text", "text": part.text}
        elif isinstance(part, Thinking):
            yield {"type": "thinking_text", "text": part.text}
            if part.signature:
                yield {"type": "thinking_signature", "signature": part.signature}
        elif isinstance(part, ToolCall):
            self._names[part.id] = part.name
            text = part.arguments if isinstance(part.arguments, str) else encode_utf8(part.arguments).decode()
            yield {"type": "tool_call", "call_id": part.id, "tool_name": part.name, "arguments_json": text}
        elif isinstance(part, Media) and part.kind == "image" and part.data and is_readable(part):
            yield {"type": "image_url", "url": f"data:{part.mime or 'image/png'};base64,{part.data}"}
        elif isinstance(part, Media | Opaque):
            self.lose(part)


def _kind(message: Message) -> str:
    """Return the kind of item: the user's, a program's in the user's name, or the system's."""
    if message.role in ("system", "developer"):
        return "SystemMessage"
    return "DeveloperMessage" if message.injected else "UserMessage"
