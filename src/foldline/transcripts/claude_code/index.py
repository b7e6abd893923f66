"""The first pass over a Claude Code file: the newest path, and how many lines each reply has."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from foldline.transcripts.claude_code.messages import message_id, result_ids
from foldline.transcripts.records import WarningRecord
from foldline.transcripts.shared.lines import Row
from foldline.transcripts.shared.tree import Node, Tree
from foldline.transcripts.shared.values import items, mapping, text_or

TREE_TYPES = ("user", "assistant", "system", "attachment", "progress")


class _Side(NamedTuple):
    """A node's place in a tool batch: its reply, or the calls it answers and the line that made them."""

    reply: str
    answers: tuple[str, ...]
    caller: str


class _FileTree:
    """One tree of the file: the main conversation, or that of all sub-agents."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.sides: list[_Side] = []

    def add(self, row: Row) -> None:
        value = row.value
        kind = value.get("type")
        logical = text_or(
            value.get("logicalParentUuid")
        )  # of a compaction; often a line that was never written
        parent = text_or(value.get("parentUuid")) or (logical if logical in self.tree else None)
        said = kind in ("user", "assistant")
        follows = kind != "user" or value.get("isCompactSummary") is True or "uuid" not in value
        node = Node(text_or(value.get("uuid")) or f"line {row.number}", parent, row.number, said, follows)
        if self.tree.add(node):
            answers = tuple(result_ids(value)) if kind == "user" else ()
            caller = text_or(value.get("sourceToolAssistantUUID")) or parent or ""
            self.sides.append(_Side(message_id(value) if kind == "assistant" else "", answers, caller))

    def newest_path(self) -> list[bool]:
        """Mark the path to the newest message, what follows it, and the rest of its tool batches."""
        self.tree.finish()
        nodes = self.tree.nodes
        leaf = max((place for place, node in enumerate(nodes) if node.said), default=len(nodes) - 1)
        on = self.tree.path(leaf)
        for place in range(leaf + 1, len(nodes)):
            on[place] = self.tree.parents[place] >= 0 and on[self.tree.parents[place]]
        self._complete_batches(on)
        return on

    def _complete_batches(self, on: list[bool]) -> None:
        """Mark the other calls and results of each tool batch on the path.

        Each call of a reply has its own line, and each result follows its call's line, so a path through the
        batch misses the others.
        """
        nodes = self.tree.nodes
        replies = {side.reply for side, marked in zip(self.sides, on, strict=True) if marked and side.reply}
        for place, side in enumerate(self.sides):
            on[place] = on[place] or (side.reply in replies and bool(side.reply))
        callers = {
            node.key
            for node, side, marked in zip(nodes, self.sides, on, strict=True)
            if marked and side.reply
        }
        answered = {
            call for side, marked in zip(self.sides, on, strict=True) if marked for call in side.answers
        }
        for place, side in enumerate(self.sides):
            if not on[place] and side.answers and side.caller in callers and not answered & set(side.answers):
                on[place] = True
                answered.update(side.answers)


class Index:
    """The main conversation of a file (or that of its sub-agents, if it holds nothing else)."""

    def __init__(self) -> None:
        self._main, self._sub = _FileTree(), _FileTree()
        self.keys: dict[int, str] = {}  # line -> key, for the lines that are read
        self.reply_lines: Counter[str] = Counter()
        self.branches: dict[str, Any] = {}
        self.sidechain_messages = 0  # of sub-agents, on their own lines or shown as progress

    @property
    def warnings(self) -> list[WarningRecord]:
        """Return what was wrong with the keys of the conversation."""
        return self._chosen.tree.warnings

    @property
    def _chosen(self) -> _FileTree:
        main = any(node.said for node in self._main.tree.nodes)
        return self._main if main or not self._sub.tree.nodes else self._sub

    def add(self, row: Row) -> None:
        """Note a line of the tree; other lines are ignored."""
        if row.value.get("type") not in TREE_TYPES:
            return
        if row.value.get("type") == "progress" and mapping(row.value.get("data")).get("message"):
            self.sidechain_messages += 1
        sidechain = row.value.get("isSidechain") is True
        (self._sub if sidechain else self._main).add(row)

    def finish(self) -> None:
        """Resolve the path, once every line is known."""
        chain = self._chosen
        on = chain.newest_path()
        for node, side, marked in zip(chain.tree.nodes, chain.sides, on, strict=True):
            if marked:
                self.keys[node.line] = node.key
                if side.reply:
                    self.reply_lines[side.reply] += 1
        self.branches = chain.tree.branches(on)
        if chain is self._main:
            self.sidechain_messages += sum(node.said for node in self._sub.tree.nodes)

    def has(self, key: Any) -> bool:
        """Return whether the path holds a line with that key."""
        return isinstance(key, str) and key in self._chosen.tree and key in self._path_keys

    @property
    def _path_keys(self) -> set[str]:
        return set(self.keys.values())


def preserved_head(value: dict[str, Any]) -> Any:
    """Return the key of the first message that a compaction kept, if its boundary line names one."""
    metadata = mapping(value.get("compactMetadata"))
    listed = items(mapping(metadata.get("preservedMessages")).get("uuids"))
    return mapping(metadata.get("preservedSegment")).get("headUuid") or next(iter(listed), None)
