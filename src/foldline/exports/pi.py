"""pi's session files, version 3: a header, then a tree of id and parentId with compaction entries.

Sources: the session format that pi documents, and how its session manager builds a context.

pi's plan for compaction describes the same files without ids: lines in order, in which a compaction counts
the messages right before it that were kept (`keepLastMessages`), never across an earlier compaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from foldline.core.log.log import digest
from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.media import IMAGE_TYPES, placeholder
from foldline.exports.base import FoldStep, Origin, Out, is_readable, iso, provider_of
from foldline.exports.pieces import Block, ExportPiece, PieceWriter, counts_of, has_text
from foldline.transcripts.payloads import content_of, is_injected
from foldline.transcripts.pi import STOPS, USAGE

VERSION = 3
_STOPS = {ours: theirs for theirs, ours in STOPS.items()}


class PiWriter(PieceWriter):
    """Write entries that pi opens with `pi --session FILE`."""

    notes: ClassVar[str] = "custom messages"
    empty_replies: ClassVar[bool] = True
    kept_at: ClassVar[str] = "~/.pi/agent/sessions/--{dashed}--/{time}_{session}.jsonl"
    resumed_by: ClassVar[str] = "pi --session {place}"

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._parent: str | None = None
        self._model = ""
        self._waiting: tuple[FoldStep, float] | None = (
            None  # a boundary whose first kept message is the next one
        )

    def begin(self) -> None:
        """Yield the header, the title and the model."""
        self._header(version=VERSION)
        if self.origin.title:
            key = digest(f"{self.session}:title".encode())
            self._entry("session_info", key, self.origin.started, name=self.origin.title)

    def _header(self, **fields: Any) -> None:
        session = {"id": self.session, "timestamp": iso(self.origin.started), "cwd": self.origin.cwd}
        self.line({"type": "session", **fields, **session})

    def end(self) -> None:
        """Yield a boundary that still waits, and the session's model if no reply names one."""
        self._end_fold(None)
        if not self._model and self.origin.model is not None:
            provider, _ = provider_of(self.origin.model, None)
            key = digest(f"{self.session}:model".encode())
            at = self.time(None)
            self._entry("model_change", key, at, provider=provider, modelId=self.origin.model)

    def fold(self, step: FoldStep) -> None:
        """Yield a boundary; if it kept nothing, wait for the next message and name that."""
        self._end_fold(None)
        first = self.place(step.first_kept)
        at = self.boundary_time(step)
        if first is not None:
            self._compaction(step, at, first)
        else:
            self._waiting = step, at

    def _end_fold(self, first: str | None) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            step, at = waiting
            self._compaction(step, at, first or step.key)

    def _compaction(self, step: FoldStep, at: float, first: str) -> None:
        fields = {"summary": step.words, "firstKeptEntryId": first, "tokensBefore": step.tokens_before}
        self._entry("compaction", step.key, at, **fields)

    def note(self, key: str, text: str, at: float) -> None:
        """Yield a message that a program wrote in the user's name."""
        self._custom(key, text, at)

    def result(self, piece: ExportPiece) -> None:
        """Yield a result."""
        result: ToolResult = piece.content
        body = {
            "role": "toolResult",
            "toolCallId": result.call_id,
            "toolName": self.tool_of(result),
            "content": [block for part in result.content for block in self.blocks(part)],
            "isError": result.is_error,
        }
        self._message(piece.key, piece.at, body)

    def user(self, piece: ExportPiece) -> None:
        """Yield a message of the user, or of a program in the user's name."""
        step, key, rest, at = piece
        content = content_of(rest)
        if step.message.injected and not (isinstance(content, str) and is_injected(content)):
            self._custom(key, content, at)
        else:
            self._message(key, at, {"role": "user", "content": content})

    def _custom(self, key: str, content: str | list[Block], at: float) -> None:
        self._end_fold(key)
        self.wrote(key)
        self.count += 1
        self._entry("custom_message", key, at, customType="foldline", content=content, display=True)

    def reply(self, piece: ExportPiece) -> None:
        """Yield a reply, after a model change if its model is new."""
        step, key, rest, at = piece
        message = step.message
        model = self.model(message, "unknown")
        signed = any(isinstance(part, Thinking) and part.signature for part in message.parts)
        provider, api = provider_of(model, message.native, signed=signed)
        if model != self._model:
            self._model = model
            change_key = digest(f"{key}:model".encode())
            self._end_fold(change_key)
            self._entry("model_change", change_key, at, provider=provider, modelId=model)
        if message.stop in ("aborted", "error") and message.parts:
            self.losses.add("aborted or failed replies, which pi keeps but does not send")
        if any(block["type"] == "thinking" for block in rest):
            self.losses.add("replies with thinking, which pi sends only to the model that wrote it")
        usage = self.usage(step)
        if usage is not None:
            self.losses.add("costs of replies are zero (a log holds none)")
        counted = counts_of(usage, USAGE)
        body = {
            "role": "assistant",
            "content": rest,
            "api": api,
            "provider": provider,
            "model": model,
            "usage": {
                **counted,
                "totalTokens": sum(counted.values()),
                "cost": {**dict.fromkeys(USAGE, 0), "total": 0},
            },
            "stopReason": _STOPS[message.stop or ("tools" if message.calls else "end")],
        }
        self._message(key, at, body)

    def _message(self, key: str, at: float, message: dict[str, Any]) -> None:
        self._end_fold(key)
        self.wrote(key)
        self.count += 1
        self._entry("message", key, at, message={**message, "timestamp": round(at * 1000)})

    def _entry(self, kind: str, key: str, at: float, **fields: Any) -> None:
        before, self._parent = self._parent, key
        self.line({"type": kind, "id": key, "parentId": before, "timestamp": iso(at), **fields})

    def blocks(self, part: Part) -> Iterator[Block]:
        """Convert a part to pi's; blank texts are left out."""
        if isinstance(part, Text) and has_text(part):
            yield {"type": "text", "text": part.text}
        elif isinstance(part, Media):
            if part.kind == "image" and part.data and part.mime in IMAGE_TYPES and is_readable(part):
                yield {"type": "image", "data": part.data, "mimeType": part.mime}
            else:
                self.lose(part)
                yield {"type": "text", "text": placeholder(part)}
        elif isinstance(part, Thinking):
            signature = {} if part.signature is None else {"thinkingSignature": part.signature}
            yield {"type": "thinking", "thinking": part.text, **signature}
        elif isinstance(part, ToolCall):
            yield {"type": "toolCall", "id": part.id, "name": part.name, "arguments": self.object_of(part)}
        elif isinstance(part, Opaque) and part.kind == "redacted_thinking":
            sealed = {"thinkingSignature": part.data.get("data"), "redacted": True}
            yield {"type": "thinking", "thinking": "", **sealed}
        elif isinstance(part, Opaque):
            self.lose(part)


class PiPlanWriter(PiWriter):
    """Write a header, messages and compactions, without ids: each line follows the previous one."""

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._since = 0  # messages since the newest compaction

    def begin(self) -> None:
        """Yield the header."""
        self._header()
        if self.origin.title:
            self.losses.add("title left out")

    def end(self) -> None:
        """Yield nothing more."""

    def fold(self, step: FoldStep) -> None:
        """Yield a compaction; messages before an earlier compaction count as folded there."""
        place = self.place(step.first_kept)
        from_start = step.first_kept is not None and place is None
        kept = self._since if from_start else self._since - int(place) if place is not None else 0
        fields = {"summary": step.words, "keepLastMessages": kept, "tokensBefore": step.tokens_before}
        self._entry("compaction", step.key, self.boundary_time(step), **fields)
        self._since = 0
        self.forget_places()

    def wrote(self, place: str) -> None:
        """Note a message by the number of messages between it and the newest compaction."""
        del place  # lines have no ids
        super().wrote(str(self._since))
        self._since += 1

    def _entry(self, kind: str, key: str, at: float, **fields: Any) -> None:
        del key  # lines have no ids
        if kind == "custom_message":
            message = {"role": "user", "content": fields["content"], "timestamp": round(at * 1000)}
            kind, fields = "message", {"message": message}
        if kind not in ("message", "compaction"):
            return  # replies contain their model
        self.line({"type": kind, "timestamp": iso(at), **fields})
