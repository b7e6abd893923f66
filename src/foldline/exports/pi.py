"""pi's session files, version 3: a header, then a tree of id and parentId with compaction entries.

Sources: the session format that pi documents, and how its session manager builds a context.

pi's plan for compaction describes the same files without ids: lines in order, where a compaction says how
many of the messages right before it were kept (`keepLastMessages`), and never across an earlier compaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from foldline.core.log.log import digest
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
from foldline.dialects.dialect import lost_fields
from foldline.dialects.edits import with_edits
from foldline.dialects.media import IMAGE_TYPES, placeholder
from foldline.exports.base import (
    ExportWriter,
    FoldStep,
    Origin,
    SaidStep,
    is_readable,
    iso,
    line,
    part_key,
    provider_of,
    quoted,
)
from foldline.transcripts.payloads import is_injected
from foldline.transcripts.pi import STOPS

VERSION = 3
_STOPS = {ours: theirs for theirs, ours in STOPS.items()}
_NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}

Block = dict[str, Any]


class PiWriter(ExportWriter):
    """Write entries that pi opens with `pi --session FILE`."""

    stepwise: ClassVar[bool] = True
    joins: ClassVar[bool] = True

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._parent: str | None = None
        self._model = ""
        self._names: dict[str, str] = {}  # call id -> tool, for calls without a result yet
        self._waiting: tuple[FoldStep, float] | None = None  # a boundary that keeps what comes next

    def begin(self) -> Iterator[bytes]:
        """Yield the header, the title and the model."""
        yield self._header(version=VERSION)
        if self.origin.title:
            key = digest(f"{self.session}:title".encode())
            yield self._entry("session_info", key, self.origin.started, name=self.origin.title)

    def _header(self, **more: Any) -> bytes:
        known = {"id": self.session, "timestamp": iso(self.origin.started), "cwd": self.origin.cwd}
        return line({"type": "session", **more, **known})

    def end(self) -> Iterator[bytes]:
        """Yield a boundary held back at the end, and the session's model if no reply names one."""
        yield from self._end_fold(None)
        if not self._model and self.origin.model is not None:
            provider, _ = provider_of(self.origin.model, None)
            key = digest(f"{self.session}:model".encode())
            at = self.clock.at(None)
            yield self._entry("model_change", key, at, provider=provider, modelId=self.origin.model)

    def resume(self) -> tuple[str, str]:
        """Return where pi keeps a folder's sessions, and its command."""
        project = self.origin.cwd.lstrip("/\\").replace("/", "-").replace("\\", "-").replace(":", "-")
        stamp = iso(self.origin.started).replace(":", "-").replace(".", "-")
        place = f"~/.pi/agent/sessions/--{project}--/{stamp}_{self.session}.jsonl"
        return place, f"pi --session {quoted(place)}"

    def say(self, step: SaidStep) -> Iterator[bytes]:
        """Yield a message: a reply, or each result by itself and then the rest of it."""
        self.expect(step)
        lost_fields(step.message.native, self.losses)
        kept = with_edits(step.message, step.edits)
        if kept is None:
            self.losses.add("empty messages left out")
        elif kept.role in ("system", "developer"):
            yield from self._say_system(step, kept)
        elif kept.role == "assistant":
            yield from self._reply(step, kept)
        else:
            yield from self._say_user(step, kept)

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Yield a boundary; one that kept nothing waits for the next message, to name it."""
        yield from self._end_fold(None)
        first = self.place(step.first_kept)
        at = self.boundary_time(step)
        if first is not None:
            yield self._compaction(step, at, first)
        else:
            self._waiting = step, at

    def _end_fold(self, first: str | None) -> Iterator[bytes]:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            step, at = waiting
            yield self._compaction(step, at, first or step.key)

    def _compaction(self, step: FoldStep, at: float, first: str) -> bytes:
        told = {"summary": step.words, "firstKeptEntryId": first, "tokensBefore": step.tokens_before}
        return self._entry("compaction", step.key, at, **told)

    def _say_system(self, step: SaidStep, message: Message) -> Iterator[bytes]:
        """Yield a system message as a custom message; the first one is left to the agent."""
        if not self.count:
            self.losses.add("system prompt left out (the agent brings its own)")
        elif message.text.strip():
            self.losses.add("system messages became custom messages")
            yield from self._custom(step.key, message.text, self.clock.at(step.at))

    def _say_user(self, step: SaidStep, message: Message) -> Iterator[bytes]:
        at = self.clock.at(step.at)
        rest: list[Part] = []
        number = 0
        for part in message.parts:
            if isinstance(part, ToolResult):
                yield from self._message(part_key(step.key, number), at, self._result(part))
                number += 1
            else:
                rest.append(part)
        content = self._content(rest)
        if not content:
            if not number:
                self.losses.add("empty messages left out")
        elif message.injected and not (isinstance(content, str) and is_injected(content)):
            yield from self._custom(part_key(step.key, number), content, at)
        else:
            yield from self._message(part_key(step.key, number), at, {"role": "user", "content": content})

    def _custom(self, key: str, content: str | list[Block], at: float) -> Iterator[bytes]:
        """Yield a message that a program wrote in the user's name."""
        yield from self._end_fold(key)
        self.wrote(key)
        self.count += 1
        yield self._entry("custom_message", key, at, customType="foldline", content=content, display=True)

    def _reply(self, step: SaidStep, message: Message) -> Iterator[bytes]:
        at = self.clock.at(step.at)
        model = self.model(message, "unknown")
        signed = any(isinstance(part, Thinking) and part.signature for part in message.parts)
        provider, api = provider_of(model, message.native, signed=signed)
        if model != self._model:
            self._model = model
            key = digest(f"{step.key}:model".encode())
            yield from self._end_fold(key)
            yield self._entry("model_change", key, at, provider=provider, modelId=model)
        if message.stop in ("aborted", "error") and message.parts:
            self.losses.add("aborted or failed replies, which pi keeps but does not send")
        for call in message.calls:
            self._names[call.id] = call.name
        content = [block for part in message.parts if (block := self._said(part)) is not None]
        if any(block["type"] == "thinking" for block in content):
            self.losses.add("replies with thinking, which pi sends as such to the model that wrote it alone")
        usage = self.usage(step)
        if usage is not None:
            self.losses.add("costs of replies are zero (a log holds none)")
        body = {
            "role": "assistant",
            "content": content,
            "api": api,
            "provider": provider,
            "model": model,
            "usage": _usage(usage or Usage()),
            "stopReason": _STOPS[message.stop or ("tools" if message.calls else "end")],
        }
        yield from self._message(step.key, at, body)

    def _message(self, key: str, at: float, message: dict[str, Any]) -> Iterator[bytes]:
        yield from self._end_fold(key)
        self.wrote(key)
        self.count += 1
        yield self._entry("message", key, at, message={**message, "timestamp": round(at * 1000)})

    def _entry(self, kind: str, key: str, at: float, **fields: Any) -> bytes:
        before, self._parent = self._parent, key
        return line({"type": kind, "id": key, "parentId": before, "timestamp": iso(at), **fields})

    # ---- content

    def _result(self, result: ToolResult) -> dict[str, Any]:
        content = self._content(result.content)
        return {
            "role": "toolResult",
            "toolCallId": result.call_id,
            "toolName": self._names.pop(result.call_id, "unknown"),
            "content": [{"type": "text", "text": content}] if isinstance(content, str) else content,
            "isError": result.is_error,
        }

    def _content(self, parts: list[Part] | tuple[Text | Media | Opaque, ...]) -> str | list[Block]:
        """Return text, or text and image blocks; blank texts are left out."""
        blocks = [block for part in parts if (block := self._block(part)) is not None]
        if len(blocks) == 1 and blocks[0]["type"] == "text":
            return str(blocks[0]["text"])
        return blocks

    def _block(self, part: Part) -> Block | None:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text} if part.text.strip() else None
        if isinstance(part, Media):
            if part.kind == "image" and part.data and part.mime in IMAGE_TYPES and is_readable(part):
                return {"type": "image", "data": part.data, "mimeType": part.mime}
            self.lose(part)
            return {"type": "text", "text": placeholder(part)}
        if isinstance(part, Opaque):
            self.lose(part)
        return None

    def _said(self, part: Part) -> Block | None:
        """Return a block of a reply."""
        if isinstance(part, Thinking):
            signed = {} if part.signature is None else {"thinkingSignature": part.signature}
            return {"type": "thinking", "thinking": part.text, **signed}
        if isinstance(part, ToolCall):
            arguments = part.arguments
            if isinstance(arguments, str):
                self.losses.add("call arguments that are not a JSON object wrapped in one")
                arguments = {"input": arguments}
            return {"type": "toolCall", "id": part.id, "name": part.name, "arguments": arguments}
        if isinstance(part, Opaque) and part.kind == "redacted_thinking":
            sealed = {"thinkingSignature": part.data.get("data"), "redacted": True}
            return {"type": "thinking", "thinking": "", **sealed}
        return self._block(part)


class PiPlanWriter(PiWriter):
    """Write a header, messages and compactions; a line follows the one before it."""

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._since = 0  # messages since the newest compaction

    def begin(self) -> Iterator[bytes]:
        """Yield the header."""
        yield self._header()
        if self.origin.title:
            self.losses.add("title left out")

    def end(self) -> Iterator[bytes]:
        """Yield nothing more."""
        yield from ()

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Yield a compaction; what it kept from before an earlier one was folded there."""
        place = self.place(step.first_kept)
        from_start = step.first_kept is not None and place is None
        kept = self._since if from_start else self._since - int(place) if place is not None else 0
        told = {"summary": step.words, "keepLastMessages": kept, "tokensBefore": step.tokens_before}
        yield self._entry("compaction", step.key, self.boundary_time(step), **told)
        self._since = 0
        self.forget_places()

    def wrote(self, place: str) -> None:
        """Note a message by the number of messages since the newest compaction that stand before it."""
        del place  # lines have no ids
        super().wrote(str(self._since))
        self._since += 1

    def _entry(self, kind: str, key: str, at: float, **fields: Any) -> bytes:
        del key  # lines have no ids
        if kind == "custom_message":
            said = {"role": "user", "content": fields["content"], "timestamp": round(at * 1000)}
            kind, fields = "message", {"message": said}
        if kind not in ("message", "compaction"):
            return b""  # a reply names its model itself
        return line({"type": kind, "timestamp": iso(at), **fields})


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.total,
        "cost": dict(_NO_COST),
    }
