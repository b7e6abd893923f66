"""coop's session files: one message a line, the newest compaction in a file of its own beside them.

Source: the form that coop publishes for its messages and its `CompactionState`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldline.core.log.codec import pretty
from foldline.core.log.messages import Usage
from foldline.exports.base import ExportWriter, FoldStep, Origin, SaidStep, iso, line, part_key, uuid_of
from foldline.exports.blocks import Block, Blocks, result_text
from foldline.transcripts.coop import BESIDE, BLOCKS, USAGE
from foldline.transcripts.lines import mapping


class CoopWriter(ExportWriter):
    """Write a session that coop loads; its compaction names the first message that it kept by id."""

    stepwise = True
    joins = True

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._blocks = Blocks(self.losses)
        self._state: dict[str, Any] | None = None

    def say(self, step: SaidStep) -> Iterator[bytes]:
        """Yield a message: results first, in a message of their own."""
        self.expect(step)
        message = step.message
        if message.role in ("system", "developer"):
            self.losses.add("system messages left out (the agent brings its own)")
            return
        content = self._blocks.of(message, step.edits)
        blocks: list[Block] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        written = [block for one in blocks if (block := self._block(one)) is not None]
        if not written:
            self.losses.add("empty messages left out")
            return
        results = [block for block in written if block["type"] == "tool_result"]
        rest = [block for block in written if block["type"] != "tool_result"]
        at = iso(self.clock.at(step.at))
        for number, group in enumerate(part for part in (results, rest) if part):
            yield self._message(part_key(step.key, number), step, group, at)

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

    def _message(self, key: str, step: SaidStep, content: list[Block], at: str) -> bytes:
        identity = f"msg_{uuid_of(key)}"
        self.wrote(identity)
        if self._state is not None and not self._state["first_kept_message_id"]:
            self._state["first_kept_message_id"] = identity
        self.count += 1
        role = "assistant" if step.message.role == "assistant" else "user"
        about = {} if role == "user" else self._about(step)
        return line({"id": identity, "role": role, "created": at, "content": content, "metadata": about})

    def _about(self, step: SaidStep) -> dict[str, Any]:
        usage = self.usage(step) or Usage()
        counts = (usage.input, usage.cache_read, usage.cache_write, usage.output)
        return {**dict(zip(USAGE, counts, strict=True)), "model": self.model(step.message, "unknown")}

    def _block(self, block: Block) -> Block | None:
        """Write one of Anthropic's blocks as one of coop's."""
        kind = block.get("type")
        if kind in ("text", "thinking"):
            return block
        if kind == "tool_use":
            known = {"type": BLOCKS.call, "id": block["id"], "name": block["name"]}
            return {**known, BLOCKS.arguments: block["input"]}
        if kind == "tool_result":
            known = {"type": kind, BLOCKS.result_id: block["tool_use_id"]}
            text, failed = result_text(block, self.losses), block.get("is_error") is True
            return {**known, BLOCKS.output: text, BLOCKS.failed: failed}
        source = mapping(block.get("source"))
        if kind == "image" and source.get("type") == "base64":
            return {"type": "image", "mime_type": source["media_type"], "data": source["data"]}
        self.losses.add(f"{kind} left out")
        return None
