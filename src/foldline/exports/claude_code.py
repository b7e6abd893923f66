"""Claude Code's session files: a chain of uuids, one line per message or result, two lines per boundary.

Sources: recorded files of versions 2.1.22 to 2.1.39, and what is public about later versions.
"""

from __future__ import annotations

from typing import Any, ClassVar

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log.log import digest
from foldline.core.log.messages import Usage
from foldline.dialects.writer import OPENING
from foldline.exports.base import FoldStep, Origin, Out, iso, part_key, uuid_of
from foldline.exports.pieces import Block, BlockWriter, ExportPiece, counts_of
from foldline.transcripts.claude_code import HOURLY, SYNTHETIC, USAGE, WRITTEN
from foldline.transcripts.payloads import is_injected

VERSION = "2.1.39"  # of Claude Code, which writes this format
_STOPS = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens"}
_OWN_SUMMARY = "This session is being continued"


class ClaudeCodeWriter(BlockWriter):
    """Write lines that Claude Code can resume."""

    notes: ClassVar[str] = "reminders"
    kept_at: ClassVar[str] = "~/.claude/projects/{letters}/{session}.jsonl"
    resumed_by: ClassVar[str] = "claude --resume {session}"

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._last: str | None = None  # uuid of the previous line
        self._last_said: str | None = None
        self._caller: str | None = None  # uuid of the newest reply
        self._open: dict[str, None] = {}  # calls of the newest reply that wait for their results

    def end(self) -> None:
        """Yield results for the last open calls, and the title."""
        self._close(self.time(None))
        if self.origin.title:
            self.line({"type": "custom-title", "customTitle": self.origin.title, "sessionId": self.session})

    def note(self, key: str, text: str, at: float) -> None:
        """Yield a reminder."""
        self._user(key, f"<system-reminder>\n{text}\n</system-reminder>", at)

    def result(self, piece: ExportPiece) -> None:
        """Yield the line of a result, with the uuid of the line of its call."""
        call = str(piece.content.get("tool_use_id"))
        if call not in self._open and piece.key == piece.step.key:
            self._close(piece.at)
        self._open.pop(call, None)
        self._user(piece.key, [piece.content], piece.at, **self._caller_fields())

    def user(self, piece: ExportPiece) -> None:
        """Yield a user's line, marked as a program's if its text does not show that."""
        if piece.key == piece.step.key:  # no result comes before it
            self._close(piece.at)
        text = piece.content if isinstance(piece.content, str) else ""
        is_meta = piece.step.message.injected and not is_injected(text)
        self._user(piece.key, piece.content, piece.at, **({"isMeta": True} if is_meta else {}))

    def _caller_fields(self) -> Block:
        return {} if self._caller is None else {"sourceToolAssistantUUID": self._caller}

    def _user(self, key: str, content: str | list[Block], at: float, **extra: Any) -> None:
        self._message_line("user", uuid_of(key), at, message={"role": "user", "content": content}, **extra)

    def fold(self, step: FoldStep) -> None:
        """Yield the boundary line, which starts a new chain, and the summary after it."""
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
        self._line(
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
        self._line(
            "user",
            summary,
            at,
            message={"role": "user", "content": text},
            isVisibleInTranscriptOnly=True,
            isCompactSummary=True,
        )

    def _close(self, at: float) -> None:
        """Yield results for calls that have none: Claude Code drops such calls silently."""
        unanswered, self._open = self._open, {}
        for call in unanswered:
            self.losses.add("unanswered calls answered by a note")
            block = {"type": "tool_result", "tool_use_id": call, "content": UNANSWERED, "is_error": True}
            key = digest(f"{self._caller}:{call}".encode())
            self._user(key, [block], at, **self._caller_fields())

    def reply(self, piece: ExportPiece) -> None:
        """Yield the line of a reply."""
        step, key, rest, at = piece
        message = step.message
        self._close(at)
        content: list[Block] = [{"type": "text", "text": rest}] if isinstance(rest, str) else rest
        if self._last is None:  # the API requires a user message before a leading reply
            self.losses.add("a first user message added")
            opening = uuid_of(digest(f"{self.session}:opening".encode()))
            self._line("user", opening, at, message={"role": "user", "content": OPENING}, isMeta=True)
        failed = message.stop == "error" and not message.calls
        if message.stop in ("aborted", "error") and not failed:
            self.losses.add("marks of aborted or failed replies left out")
        if any(block.get("type") in ("thinking", "redacted_thinking") for block in content):
            self.losses.add("replies with thinking, which Claude Code keeps but may not send")
        reply = {
            "model": SYNTHETIC if failed and message.model is None else self.model(message, SYNTHETIC),
            "id": f"msg_{digest(key.encode())[:24]}",
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": _STOPS.get(message.stop or ("tools" if message.calls else "")),
            "stop_sequence": None,
            "usage": _usage(self.usage(step)),
        }
        self._caller = uuid_of(key)
        self._open = {str(block["id"]): None for block in content if block.get("type") == "tool_use"}
        error = {"isApiErrorMessage": True} if failed else {}
        self._message_line("assistant", self._caller, at, message=reply, **error)

    def _message_line(self, kind: str, uuid: str, at: float, **fields: Any) -> None:
        self.wrote(uuid)
        self.count += 1
        self._last_said = uuid
        self._line(kind, uuid, at, **fields)

    def _line(self, kind: str, uuid: str, at: float, **fields: Any) -> None:
        before, self._last = self._last, uuid
        self.line(
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


def _usage(usage: Usage | None) -> dict[str, Any]:
    counts: dict[str, Any] = counts_of(usage, USAGE)
    if usage is not None and (hourly := usage.cache_write_hour):
        counts[WRITTEN] = {"ephemeral_5m_input_tokens": usage.cache_write - hourly, HOURLY: hourly}
    return counts
