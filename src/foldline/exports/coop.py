"""coop's session files: one message a line, the newest compaction in a separate file next to it.

Source: the form that coop publishes for its messages and its `CompactionState`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from foldline.core.log.codec import pretty
from foldline.exports.base import FoldStep, Origin, Out, SaidStep, iso, uuid_of
from foldline.exports.pieces import Block, BlockWriter, ExportPiece, counts_of
from foldline.transcripts.coop import BESIDE, BLOCKS, USAGE
from foldline.transcripts.payloads import BlockNames


class CoopWriter(BlockWriter):
    """Write a session that coop loads; its compaction names the first message that it kept by id."""

    kept_at: ClassVar[str] = "SESSION.jsonl in coop's folder of sessions, for session {session}"
    resumed_by: ClassVar[str] = "coop"
    names: ClassVar[BlockNames] = BLOCKS

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._state: dict[str, Any] | None = None

    def system(self, step: SaidStep) -> None:
        """Leave a system message out."""
        del step
        self.losses.add("system messages left out (the agent adds its own)")

    def pieces(self, step: SaidStep) -> tuple[list[Any], list[Any]]:
        """Return all results of a message as one piece, which becomes a separate message, and the rest."""
        results, rest = super().pieces(step)
        if isinstance(rest, str):
            rest = [{"type": "text", "text": rest}] if rest else []
        written = [{BLOCKS.failed: False, **result} for result in self.renamed(results)]
        return [written] if written else [], self.renamed(rest)

    def fold(self, step: FoldStep) -> None:
        """Take a boundary; coop keeps the newest."""
        if self._state is not None:
            self.losses.add("older boundaries left out (coop keeps the newest)")
        at = self.origin.ended if self.origin.view or step.at is None else step.at
        self._state = {
            "summary": step.words,
            "first_kept_message_id": self.place(step.first_kept) or "",
            "tokens_before": step.tokens_before,
            "created_at": iso(at),
        }

    def beside(self) -> dict[str, bytes]:
        """Return the compaction in the file that coop reads next to the session."""
        return {} if self._state is None else {BESIDE: pretty(self._state) + b"\n"}

    def user(self, piece: ExportPiece) -> None:
        """Yield a message in the user's name, or results."""
        self._message("user", piece, {})

    result = user

    def reply(self, piece: ExportPiece) -> None:
        """Yield a reply."""
        model = self.model(piece.step.message, "unknown")
        self._message("assistant", piece, {**counts_of(self.usage(piece.step), USAGE), "model": model})

    def _message(self, role: str, piece: ExportPiece, metadata: Block) -> None:
        message_id = f"msg_{uuid_of(piece.key)}"
        self.wrote(message_id)
        if self._state is not None and not self._state["first_kept_message_id"]:
            self._state["first_kept_message_id"] = message_id
        self.count += 1
        fields = {"id": message_id, "role": role, "created": iso(piece.at)}
        self.line({**fields, "content": piece.content, "metadata": metadata})
