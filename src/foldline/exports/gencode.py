"""GenCode's session files: one JSON document with metadata, messages and summaries.

Source: the session document and the `ConversationSummary` that GenCode publishes. A compaction removes the
folded messages from the file, so only a view can contain one.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.codec import pretty
from foldline.core.log.log import digest
from foldline.core.log.messages import ToolResult
from foldline.dialects.payload import items_of
from foldline.exports.base import FoldStep, Origin, Out, SaidStep, iso
from foldline.exports.pieces import Block, BlockWriter, ExportPiece
from foldline.transcripts.gencode import BLOCKS
from foldline.transcripts.payloads import BlockNames


class GenCodeWriter(BlockWriter):
    """Write a session document; its messages stay in memory until the end."""

    kept_at: ClassVar[str] = "~/.gen/sessions/{session}.json"
    resumed_by: ClassVar[str] = "gencode, then /resume"
    names: ClassVar[BlockNames] = BLOCKS

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._messages: list[dict[str, Any]] = []
        self._summaries: list[dict[str, Any]] = []
        self._folded = 0
        self._covers = 0  # the last message that a summary covers
        self._absent = 0  # messages that the file of an import lacked

    def system(self, step: SaidStep) -> None:
        """Take a system message."""
        if step.message.text.strip():
            self._messages.append({"role": "system", "content": step.message.text})

    def pieces(self, step: SaidStep) -> tuple[list[Block], str | list[Block]]:
        """Return results and all other blocks together: GenCode has them in one message.

        The results that a boundary blanked are marked.
        """
        results, rest = super().pieces(step)
        if isinstance(rest, str):
            return [], rest
        blanked = [edit.replacement for edit in step.edits if edit.kind == "blanked"]
        texts = [result.text for result in blanked if isinstance(result, ToolResult)]
        blocks = self.renamed([*results, *rest])
        for block in blocks:
            if block["type"] == "tool_result" and block[BLOCKS.output] in texts:
                block |= {"pruned": True, "prunedAt": iso(self.origin.ended)}
        return [], blocks

    def user(self, piece: ExportPiece) -> None:
        """Take a message."""
        self.count += 1
        role = "assistant" if piece.step.message.role == "assistant" else "user"
        self._messages.append({"role": role, "content": piece.content})

    reply = user

    def fold(self, step: FoldStep) -> None:
        """Take the boundary of a view, or one of GenCode's own whose messages the file lacks."""
        absent = step.origin.get("messages_absent")
        self._absent += absent if isinstance(absent, int) else 0
        if not self.origin.view and not (step.imported and self._absent):
            self.losses.add("boundaries left out (GenCode's file would lack what they folded)")
            return
        covered, text = self._covers, ""
        for boundary in (*step.earlier, step):
            covers = _covered(boundary, covered)
            covered = covers[1]
            text = boundary.words
            self._summaries.append(_summary(boundary, covers, text, iso(self.origin.ended)))
        self._covers = covered
        self._folded = covered if self.origin.view else self._absent
        content = f"[Earlier conversation - {self._folded} messages summarized]\n\n{text}"
        self._messages.append({"role": "system", "content": content})

    def end(self) -> None:
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
        session = {"metadata": metadata, "messages": self._messages, "summaries": self._summaries}
        self.out(pretty({**session, "fullMessageCount": full}) + b"\n")


def _covered(step: FoldStep, covered: int) -> tuple[int, int]:
    """Return the first and the last message that a boundary covers, counted from 1.

    `covered` is the last one that the previous boundary covers, whose checkpoint this one folded too.
    """
    imported = items_of(step.origin.get("coveringMessages"))
    if len(imported) == 2 and all(isinstance(number, int) for number in imported):
        return imported[0], imported[1]
    return 1, max(1, covered + step.folded - bool(covered))


def _summary(step: FoldStep, covers: tuple[int, int], text: str, at: str) -> dict[str, Any]:
    """Return a boundary's entry in GenCode's list of summaries."""
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
