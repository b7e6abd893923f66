"""Claude Code's session files: a chain of uuids, one line per message or result, two lines per boundary.

Sources: recorded files of versions 2.1.22 to 2.1.39, and what is public about later versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log.log import digest
from foldline.core.log.messages import Message, Usage
from foldline.dialects.anthropic.write import OPENING
from foldline.exports.base import ExportWriter, FoldStep, Origin, SaidStep, iso, line, part_key, uuid_of
from foldline.exports.blocks import Block, Blocks
from foldline.transcripts.payloads import is_injected

VERSION = "2.1.39"  # of Claude Code, which writes this form
_STOPS = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens"}
_SYNTHETIC = "<synthetic>"  # what Claude Code calls the model of replies that no model wrote
_OWN_SUMMARY = "This session is being continued"


class ClaudeCodeWriter(ExportWriter):
    """Write lines that Claude Code can resume."""

    stepwise: ClassVar[bool] = True
    joins: ClassVar[bool] = True

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._blocks = Blocks(self.losses)
        self._last: str | None = None  # uuid of the line before
        self._last_said: str | None = None
        self._caller: str | None = None  # uuid of the newest reply
        self._open: dict[str, None] = {}  # calls of the newest reply that wait for their results

    def end(self) -> Iterator[bytes]:
        """Yield what answers the last calls, and the title."""
        yield from self._close()
        if self.origin.title:
            yield line({"type": "custom-title", "customTitle": self.origin.title, "sessionId": self.session})

    def resume(self) -> tuple[str, str]:
        """Return where Claude Code keeps a project's sessions, and its command."""
        project = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.origin.cwd)
        return f"~/.claude/projects/{project}/{self.session}.jsonl", f"claude --resume {self.session}"

    def say(self, step: SaidStep) -> Iterator[bytes]:
        """Yield a message: results first, one line each, then the rest of it."""
        self.expect(step)
        message = step.message
        if message.role in ("system", "developer"):
            yield from self._say_system(step)
            return
        content = self._blocks.of(message, step.edits)
        if not content:
            self.losses.add("empty messages left out")
            return
        groups = _grouped(content)
        if message.role == "assistant" or not self._open.keys() & _answers(groups):
            yield from self._close()
        at = self.clock.at(step.at)
        if message.role == "assistant":
            if self._last is None:
                yield self._opening(at)
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            yield self._reply(step, blocks, at)
            self._open = {str(block["id"]): None for block in blocks if block.get("type") == "tool_use"}
            return
        for number, group in enumerate(groups):
            for call in _answers([group]):
                self._open.pop(call, None)
            yield self._user(step, part_key(step.key, number), group, at)

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Yield the boundary line and the summary after it, which start a new chain."""
        if step.first_kept is None:
            self._open = {}  # folded with their call
        at = self.boundary_time(step)
        boundary, summary = uuid_of(step.key), uuid_of(part_key(step.key, 1))
        metadata: dict[str, Any] = {
            "trigger": "auto" if step.automatic else "manual",
            "preTokens": step.tokens_before,
        }
        head = self.place(step.first_kept)
        if head is not None and self._last_said is not None:
            metadata["preservedSegment"] = {
                "headUuid": head,
                "anchorUuid": summary,
                "tailUuid": self._last_said,
            }
        before, self._last = self._last, None
        yield self._line(
            "system",
            boundary,
            at,
            **({} if before is None else {"logicalParentUuid": before}),
            subtype="compact_boundary",
            content="Conversation compacted",
            isMeta=False,
            level="info",
            compactMetadata=metadata,
        )
        text = step.summary if step.imported and step.summary.startswith(_OWN_SUMMARY) else step.text
        yield self._line(
            "user",
            summary,
            at,
            message={"role": "user", "content": text},
            isVisibleInTranscriptOnly=True,
            isCompactSummary=True,
        )

    def _say_system(self, step: SaidStep) -> Iterator[bytes]:
        """Yield a system message as a reminder; the first one is left to the agent."""
        text = step.message.text.strip()
        if self._last is None:
            self.losses.add("system prompt left out (the agent brings its own)")
        elif text:
            self.losses.add("system messages became reminders")
            content = f"<system-reminder>\n{text}\n</system-reminder>"
            yield self._user(step, step.key, content, self.clock.at(step.at))

    def _close(self) -> Iterator[bytes]:
        """Yield results for the calls that have none: Claude Code leaves such calls out without a word."""
        left, self._open = self._open, {}
        for call in left:
            self.losses.add("unanswered calls answered by a note")
            block = {"type": "tool_result", "tool_use_id": call, "content": UNANSWERED, "is_error": True}
            key = digest(f"{self._caller}:{call}".encode())
            extra = {} if self._caller is None else {"sourceToolAssistantUUID": self._caller}
            message = {"role": "user", "content": [block]}
            yield self._said("user", uuid_of(key), self.clock.at(None), message=message, **extra)

    def _opening(self, at: float) -> bytes:
        """Return a first user line for a conversation that begins with the model, as the API requires."""
        self.losses.add("a first user message added")
        uuid = uuid_of(digest(f"{self.session}:opening".encode()))
        return self._line("user", uuid, at, message={"role": "user", "content": OPENING}, isMeta=True)

    def _reply(self, step: SaidStep, content: list[Block], at: float) -> bytes:
        message = step.message
        failed = message.stop == "error" and not message.calls
        if message.stop in ("aborted", "error") and not failed:
            self.losses.add("marks of aborted or failed replies left out")
        if any(block.get("type") in ("thinking", "redacted_thinking") for block in content):
            self.losses.add("replies with thinking, which Claude Code keeps but may not send")
        reply = {
            "model": _SYNTHETIC if failed and message.model is None else self.model(message, _SYNTHETIC),
            "id": f"msg_{digest(step.key.encode())[:24]}",
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": _STOPS.get(message.stop or ("tools" if message.calls else "")),
            "stop_sequence": None,
            "usage": _usage(self.usage(step) or Usage()),
        }
        self._caller = uuid_of(step.key)
        return self._said(
            "assistant", self._caller, at, message=reply, **({"isApiErrorMessage": True} if failed else {})
        )

    def _user(self, step: SaidStep, key: str, content: str | list[Block], at: float) -> bytes:
        """Return one user line: the user's words, or one result."""
        extra: dict[str, Any] = {}
        if isinstance(content, list) and content[0].get("type") == "tool_result":
            if self._caller is not None:
                extra["sourceToolAssistantUUID"] = self._caller
        elif _is_meta(step.message, content):
            extra["isMeta"] = True
        return self._said("user", uuid_of(key), at, message={"role": "user", "content": content}, **extra)

    def _said(self, kind: str, uuid: str, at: float, **fields: Any) -> bytes:
        self.wrote(uuid)
        self.count += 1
        self._last_said = uuid
        return self._line(kind, uuid, at, **fields)

    def _line(self, kind: str, uuid: str, at: float, **fields: Any) -> bytes:
        before, self._last = self._last, uuid
        return line(
            {
                "parentUuid": before,
                "isSidechain": False,
                "userType": "external",
                "cwd": self.origin.cwd,
                "sessionId": self.session,
                "version": VERSION,
                "gitBranch": "",
                "type": kind,
                **fields,
                "uuid": uuid,
                "timestamp": iso(at),
            }
        )


def _grouped(content: str | list[Block]) -> list[str | list[Block]]:
    """Split a user message: each result by itself, in order, then everything else together."""
    if isinstance(content, str):
        return [content]
    results: list[str | list[Block]] = [[block] for block in content if block.get("type") == "tool_result"]
    rest = [block for block in content if block.get("type") != "tool_result"]
    return [*results, rest] if rest else results


def _answers(groups: list[str | list[Block]]) -> set[str]:
    """Return the ids of the calls that a message answers."""
    blocks = [block for group in groups if isinstance(group, list) for block in group]
    return {str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"}


def _is_meta(message: Message, content: str | list[Block]) -> bool:
    """Return whether a line needs the mark that no user wrote it, because its text does not show that."""
    return message.injected and not (isinstance(content, str) and is_injected(content))


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
