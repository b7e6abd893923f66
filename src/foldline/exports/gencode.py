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
from foldline.exports.base import ExportWriter, FoldStep, Origin, SaidStep, iso
from foldline.exports.blocks import Block, Blocks, result_text


class GenCodeWriter(ExportWriter):
    """Write a session document; its messages stay in memory until the end."""

    stepwise = True
    joins = True

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._blocks = Blocks(self.losses)
        self._messages: list[dict[str, Any]] = []
        self._summaries: list[dict[str, Any]] = []
        self._folded = 0

    def say(self, step: SaidStep) -> Iterator[bytes]:
        """Take a message."""
        message = step.message
        if message.role in ("system", "developer"):
            if message.text.strip():
                self._messages.append({"role": "system", "content": message.text})
            return
        content = self._blocks.of(message, step.edits)
        written: str | list[Block] = (
            content
            if isinstance(content, str)
            else [block for one in content if (block := self._block(one)) is not None]
        )
        if not written:
            self.losses.add("empty messages left out")
            return
        self.count += 1
        role = "assistant" if message.role == "assistant" else "user"
        self._messages.append({"role": role, "content": written})
        yield from ()

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Take the boundary of a view; a whole history has no place for one."""
        if not self.origin.view:
            self.losses.add("boundaries left out (GenCode's file would lack what they folded)")
            return
        covers = _covered(step)
        self._folded = covers[1] - covers[0] + 1
        text = step.summary if step.imported else step.text
        content = f"[Earlier conversation - {self._folded} messages summarized]\n\n{text}"
        self._messages.append({"role": "system", "content": content})
        self._summaries.append(_summary(step, covers, text, iso(self.origin.ended)))
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

    def _block(self, block: Block) -> Block | None:
        """Write one of Anthropic's blocks as one of GenCode's: results differ."""
        kind = block.get("type")
        if kind == "tool_result":
            failed = {"isError": True} if block.get("is_error") is True else {}
            text = result_text(block, self.losses)
            return {"type": kind, "toolUseId": block["tool_use_id"], "content": text, **failed}
        if kind in ("text", "tool_use", "image", "thinking"):
            return block
        self.losses.add(f"{kind} left out")
        return None


def _covered(step: FoldStep) -> tuple[int, int]:
    """Return the first and the last message that a boundary covers, counted from 1."""
    own = step.origin.get("coveringMessages")
    if isinstance(own, list) and len(own) == 2 and all(isinstance(one, int) for one in own):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return own[0], own[1]  # pyright: ignore[reportUnknownVariableType]
    return 1, max(1, step.folded)


def _summary(step: FoldStep, covers: tuple[int, int], text: str, at: str) -> dict[str, Any]:
    """Return what GenCode's list of summaries says of a boundary."""
    facts = msgspec.convert(step.ledger, Ledger)
    changed = ("created", "modified", "deleted")
    return {
        "id": f"sum-{digest(step.key.encode())[:16]}",
        "type": "compaction",
        "coveringMessages": list(covers),
        "content": text,
        "keyDecisions": [fact.text for fact in facts.decisions],
        "filesModified": [fact.path for fact in facts.files if fact.status in changed],
        "toolsUsed": [
            {"tool": tool.name, "count": tool.uses, "notableUses": list(tool.notable)} for tool in facts.tools
        ],
        "generatedAt": iso(step.at) if step.at is not None else at,
        "estimatedTokens": (len(text) + 3) // 4,
    }
