"""GenCode's session files: one JSON document with metadata, messages and summaries.

Source: the session document and the `ConversationSummary` that GenCode publishes. A compaction removes what
it folded from the file, so only a view can hold one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.codec import pretty
from foldline.core.log.log import digest
from foldline.core.log.messages import ToolResult
from foldline.exports.base import FoldStep, Origin, SaidStep, iso
from foldline.exports.pieces import Block, BlockWriter, ExportPiece
from foldline.transcripts.gencode import BLOCKS


class GenCodeWriter(BlockWriter):
    """Write a session document; its messages stay in memory until the end."""

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._messages: list[dict[str, Any]] = []
        self._summaries: list[dict[str, Any]] = []
        self._folded = 0
        self._covers = 0  # the last message that a summary covers
        self._absent = 0  # messages that the file of an import lacked

    def system(self, step: SaidStep) -> Iterator[bytes]:
        """Take a system message."""
        if step.message.text.strip():
            self._messages.append({"role": "system", "content": step.message.text})
        yield from ()

    def pieces(self, step: SaidStep) -> tuple[list[Block], str | list[Block]]:
        """Return all that a message says: results and the rest are in one message."""
        results, rest = super().pieces(step)
        if isinstance(rest, str):
            return [], rest
        return [], [block for one in (*results, *rest) if (block := self._block(one, step)) is not None]

    def user(self, piece: ExportPiece) -> Iterator[bytes]:
        """Take a message."""
        self.count += 1
        role = "assistant" if piece.step.message.role == "assistant" else "user"
        self._messages.append({"role": role, "content": piece.content})
        yield from ()

    reply = user

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Take the boundary of a view, or one of GenCode's own whose messages are in no file any more."""
        absent = step.origin.get("messages_absent")
        self._absent += absent if isinstance(absent, int) else 0
        if not self.origin.view and not (step.imported and self._absent):
            self.losses.add("boundaries left out (GenCode's file would lack what they folded)")
            return
        known, text = self._covers, ""
        for one in (*step.earlier, step):
            covers = _covered(one, known)
            known = covers[1]
            text = one.words
            self._summaries.append(_summary(one, covers, text, iso(self.origin.ended)))
        self._covers = known
        self._folded = known if self.origin.view else self._absent
        content = f"[Earlier conversation - {self._folded} messages summarized]\n\n{text}"
        self._messages.append({"role": "system", "content": content})
        yield from ()

    def end(self) -> Iterator[bytes]:
        """Yield the document."""
        full = self.count + self._folded
        metadata = {
            "id": self.session,
            "title": self.origin.title or self.origin.session,
            "createdAt": iso(self.origin.started),
            "updatedAt": iso(self.origin.ended),
            "cwd": self.origin.cwd,
            **({"model": self.origin.model} if self.origin.model else {}),
            "messageCount": len(self._messages),
            "fullMessageCount": full,
        }
        whole = {"metadata": metadata, "messages": self._messages, "summaries": self._summaries}
        yield pretty({**whole, "fullMessageCount": full}) + b"\n"

    def resume(self) -> tuple[str, str]:
        """Return where GenCode keeps its sessions, and how it resumes the newest."""
        return f"~/.gen/sessions/{self.session}.json", "gencode, then /resume"

    def _block(self, block: Block, step: SaidStep) -> Block | None:
        """Write one of Anthropic's blocks as one of GenCode's; a result may be blanked."""
        if block.get("type") == "tool_result":
            text = self.result_text(block)
            written = BLOCKS.write(block, text) or {}
            blanked = {"pruned": True, "prunedAt": iso(self.origin.ended)} if _is_blanked(text, step) else {}
            return {**written, **blanked}
        written = BLOCKS.write(block)
        if written is None:
            self.losses.add(f"{block.get('type')} left out")
        return written


def _is_blanked(text: str, step: SaidStep) -> bool:
    """Return whether a boundary blanked the result with this text."""
    blanked = [edit.replacement for edit in step.edits if edit.kind == "blanked"]
    return any(isinstance(result, ToolResult) and result.text == text for result in blanked)


def _covered(step: FoldStep, known: int) -> tuple[int, int]:
    """Return the first and the last message that a boundary covers, counted from 1.

    `known` is the last one that the boundary before covers, whose checkpoint this one folded too.
    """
    own = step.origin.get("coveringMessages")
    if isinstance(own, list) and len(own) == 2 and all(isinstance(one, int) for one in own):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return own[0], own[1]  # pyright: ignore[reportUnknownVariableType]
    return 1, max(1, known + step.folded - bool(known))


def _summary(step: FoldStep, covers: tuple[int, int], text: str, at: str) -> dict[str, Any]:
    """Return what GenCode's list of summaries says of a boundary."""
    facts = msgspec.convert(step.ledger, Ledger)
    changed = ("created", "modified", "deleted")
    return {
        "id": f"sum-{digest(step.key.encode())[:16]}",
        "type": "compaction",
        "coveringMessages": list(covers),
        "content": text,
        "keyDecisions": [
            item.text.removeprefix("Decided: ")
            for item in facts.items
            if item.kind in ("answer", "proposal") or item.text.startswith("Decided: ")
        ],
        "filesModified": [fact.path for fact in facts.files if fact.status in changed],
        "toolsUsed": [
            {"tool": tool.name, "count": tool.uses, "notableUses": list(tool.notable)} for tool in facts.tools
        ],
        "generatedAt": iso(step.at) if step.at is not None else at,
        "estimatedTokens": (len(text) + 3) // 4,
    }
