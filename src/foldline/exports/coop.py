"""coop's session files: one message a line, the newest compaction in a file of its own beside them.

Source: the form that coop publishes for its messages and its `CompactionState`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldline.core.log.codec import pretty
from foldline.exports.base import FoldStep, Origin, SaidStep, iso, line, uuid_of
from foldline.exports.pieces import Block, BlockWriter, ExportPiece, counts_of
from foldline.transcripts.coop import BESIDE, BLOCKS, USAGE


class CoopWriter(BlockWriter):
    """Write a session that coop loads; its compaction names the first message that it kept by id."""

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._state: dict[str, Any] | None = None

    def system(self, step: SaidStep) -> Iterator[bytes]:
        """Leave a system message out."""
        del step
        self.losses.add("system messages left out (the agent brings its own)")
        yield from ()

    def pieces(self, step: SaidStep) -> tuple[list[Any], list[Any]]:
        """Return the results of a message as one piece, which is a message of its own, and the rest."""
        results, rest = super().pieces(step)
        if isinstance(rest, str):
            rest = [{"type": "text", "text": rest}] if rest else []
        return [self._written(results)] if results else [], self._written(rest)

    def _written(self, blocks: list[Block]) -> list[Block]:
        found: list[Block] = []
        for block in blocks:
            result = block.get("type") == "tool_result"
            written = BLOCKS.write(block, self.result_text(block) if result else "")
            if written is None:
                self.losses.add(f"{block.get('type')} left out")
            else:
                found.append({BLOCKS.failed: False, **written} if result else written)
        return found

    def fold(self, step: FoldStep) -> Iterator[bytes]:
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
        yield from ()

    def beside(self) -> dict[str, bytes]:
        """Return the compaction, in the file that coop looks for beside the session."""
        return {} if self._state is None else {BESIDE: pretty(self._state) + b"\n"}

    def resume(self) -> tuple[str, str]:
        """Return the names that coop gives its files."""
        return f"SESSION.jsonl in coop's folder of sessions, for session {self.session}", "coop"

    def user(self, piece: ExportPiece) -> Iterator[bytes]:
        """Yield what was said in the user's name, or results."""
        yield self._message("user", piece, {})

    result = user

    def reply(self, piece: ExportPiece) -> Iterator[bytes]:
        """Yield what a model said."""
        model = self.model(piece.step.message, "unknown")
        yield self._message("assistant", piece, {**counts_of(self.usage(piece.step), USAGE), "model": model})

    def _message(self, role: str, piece: ExportPiece, about: Block) -> bytes:
        identity = f"msg_{uuid_of(piece.key)}"
        self.wrote(identity)
        if self._state is not None and not self._state["first_kept_message_id"]:
            self._state["first_kept_message_id"] = identity
        self.count += 1
        known = {"id": identity, "role": role, "created": iso(piece.at)}
        return line({**known, "content": piece.content, "metadata": about})
