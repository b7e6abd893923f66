"""Claude Code's lines: the newest path through them, which of them are one message, and what they hold.

Each call of a reply has a line with the id of the reply, and each result follows its call's line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from foldline.dialects.payload import fields_of, items_of
from foldline.errors import DialectError
from foldline.transcripts.lines import Row, text_or
from foldline.transcripts.records import WarningRecord
from foldline.transcripts.tree import Node, Tree

BOUNDARY = "compact_boundary"
CHECKPOINT = "<foldline-checkpoint "

_TREE_TYPES = ("user", "assistant", "system", "attachment", "progress")

# ---- the newest path


class _Side(NamedTuple):
    """What a line is to the lines around it.

    `caller` is the line that made the calls it answers; `alone`: it holds results and nothing else.
    """

    kind: str
    reply: str = ""
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    caller: str = ""
    alone: bool = False


def _side(row: Row, parent: str | None) -> _Side:
    kind = row.text("type")
    if kind == "assistant":
        return _Side(kind, row.inner("message").text("id"), tuple(call_ids([row])))
    if kind == "user" and is_summary(row):
        kind = "summary"
    elif kind == "system" and row.get("subtype") == BOUNDARY:
        kind = BOUNDARY
    elif kind == "attachment" and attached(row.inner("attachment")) is not None:
        kind = "told"
    if kind not in ("user", "summary"):
        return _Side(kind)
    blocks = blocks_of(row)
    answers = tuple(one.text("tool_use_id") for one in blocks if one.get("type") == "tool_result")
    caller = row.text("sourceToolAssistantUUID") or parent or ""
    return _Side(kind, answers=answers, caller=caller, alone=len(answers) == len(blocks))


class _FileTree:
    """One tree of the file: the main conversation, or that of all sub-agents."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.sides: list[_Side] = []

    @property
    def messages(self) -> int:
        return sum(node.said for node in self.tree.nodes)

    def add(self, row: Row) -> None:
        kind, logical = row.get("type"), row.text("logicalParentUuid")  # often a line that was never written
        parent = row.text("parentUuid") or (logical if logical in self.tree.places else None)
        said = kind in ("user", "assistant")
        follows = kind != "user" or is_summary(row) or "uuid" not in row
        node = Node(row.text("uuid") or f"line {row.line}", parent, row.line, said, follows)
        if self.tree.add(node):
            self.sides.append(_side(row, parent))

    def newest_path(self) -> list[bool]:
        """Mark the path to the newest message, what follows it, and the rest of its tool batches."""
        nodes = self.tree.nodes
        leaf = max((place for place, node in enumerate(nodes) if node.said), default=len(nodes) - 1)
        on = self.tree.path(leaf)
        for place in range(leaf + 1, len(nodes)):
            on[place] = self.tree.parents[place] >= 0 and on[self.tree.parents[place]]
        self._complete_batches(on)
        return on

    def _complete_batches(self, on: list[bool]) -> None:
        """Mark the other calls and results of each tool batch on the path, which misses them."""
        sides = self.sides
        replies = {side.reply for side, marked in zip(sides, on, strict=True) if marked and side.reply}
        for place, side in enumerate(sides):
            on[place] = on[place] or side.reply in replies
        marked = [place for place in range(len(on)) if on[place]]
        callers = {self.tree.nodes[place].key for place in marked if sides[place].reply}
        answered = {call for place in marked for call in sides[place].answers}
        for place, side in enumerate(sides):
            if (
                not on[place]
                and side.answers
                and side.caller in callers
                and answered.isdisjoint(side.answers)
            ):
                on[place] = True
                answered.update(side.answers)


class LineGroup(msgspec.Struct):
    """Lines that are one message, a boundary with its summary, or a line that says something else."""

    kind: str
    key: str
    lines: list[int]


class Index:
    """The main conversation of a file (or that of its sub-agents, if it holds nothing else)."""

    def __init__(self) -> None:
        self._main, self._sub = _FileTree(), _FileTree()
        self._shown = 0  # messages of sub-agents shown as progress
        self._places: dict[str, int] = {}  # key -> line, on the path
        self.groups: list[LineGroup] = []
        self.warnings: Sequence[WarningRecord] = ()
        self.branches: dict[str, Any] = {}
        self.sidechain_messages = 0

    def add(self, row: Row) -> None:
        """Note a line of the tree; other lines are ignored."""
        if row.get("type") in _TREE_TYPES:
            self._shown += row.get("type") == "progress" and bool(row.inner("data").get("message"))
            (self._sub if row.get("isSidechain") is True else self._main).add(row)

    def finish(self) -> None:
        """Resolve the path, once every line is known."""
        chosen = self._main if self._main.messages or not self._sub.sides else self._sub
        on = chosen.newest_path()
        grouping = _Grouping()
        for node, side, marked in zip(chosen.tree.nodes, chosen.sides, on, strict=True):
            if marked:
                self._places[node.key] = node.line
                grouping.add(node, side)
        self.groups = grouping.groups
        self.warnings = chosen.tree.warnings()
        self.branches = chosen.tree.branches(on)
        self.sidechain_messages = self._shown + (self._sub.messages if chosen is self._main else 0)

    def message_at(self, key: Any, before: LineGroup) -> str | None:
        """Return the key of the message with that line, or of the first one after it, before a group."""
        line = self._places.get(key) if isinstance(key, str) else None
        if line is None:
            return None
        end = bisect_right(self.groups, before.lines[0] - 1, key=lambda group: group.lines[0])
        said = (one for one in self.groups[:end] if one.kind in ("assistant", "user", "results", "told"))
        return next((one.key for one in said if line <= one.lines[0] or line in one.lines), None)


class _Grouping:
    """The lines of the path, in the order of the first line of what they belong to."""

    def __init__(self) -> None:
        self.groups: list[LineGroup] = []
        self._reply: tuple[str, LineGroup] | None = None
        self._calls: set[str] = set()  # of the newest reply
        self._results: LineGroup | None = None
        self._boundary: LineGroup | None = None

    def add(self, node: Node, side: _Side) -> None:
        """Take the next line."""
        kind, group = side.kind, None
        if kind == "assistant":
            if self._reply is not None and side.reply and side.reply == self._reply[0]:
                group = self._reply[1]
            else:
                self._calls, self._boundary = set(), None
            self._calls.update(side.calls)
        elif side.answers and self._calls.issuperset(side.answers):
            kind, group = "results", self._results
        elif kind == "summary":
            group = self._boundary
        if group is None:
            group = LineGroup(kind, node.key, [])
            self.groups.append(group)
        group.lines.append(node.line)
        self._note(kind, side, group)

    def _note(self, kind: str, side: _Side, group: LineGroup) -> None:
        """Note which group a later line may join."""
        if kind == "assistant":
            if self._reply is None or self._reply[1] is not group:
                self._results = None
            self._reply = side.reply, group
        elif kind == "results":
            self._results = group if side.alone else None
        elif kind in ("user", "summary", "told", BOUNDARY):
            self._results = None
            self._boundary = group if kind == BOUNDARY else self._boundary if kind == "told" else None
            if kind == BOUNDARY or (kind != "told" and not side.answers):
                self._reply = None


# ---- what the lines hold


def blocks_of(row: Row) -> list[Row]:
    """Return the content blocks of a line; none where its content is text."""
    return row.inner("message").rows("content")


def is_summary(row: Row) -> bool:
    """Whether a user's line is a compaction's summary: Claude Code's own, or a checkpoint by our plugin."""
    ours = row.get("rowSource") == "hook" and row.inner("message").text("content").startswith(CHECKPOINT)
    return ours or row.get("isCompactSummary") is True


def call_ids(rows: list[Row]) -> list[str]:
    """Return the ids of the calls in the lines of a reply."""
    blocks = [block for row in rows for block in blocks_of(row)]
    return [block.text("id") for block in blocks if block.get("type") == "tool_use"]


def merge_lines(contents: list[Any], role: str) -> dict[str, Any]:
    """Merge the contents of one message's lines into one payload; blank texts, which the API refuses, go.

    Raises DialectError for content that is neither text nor a list.
    """
    if len(contents) == 1 and isinstance(contents[0], str):
        return {"role": role, "content": contents[0]}
    blocks: list[Any] = []
    for content in contents:
        if not isinstance(content, str | list):
            raise DialectError("the content is neither text nor a list of blocks")
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else items_of(content)
    told = [block for block in blocks if not _blank(fields_of(block))]
    return {"role": role, "content": told or blocks}


def _blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not text_or(block.get("text"), "?").strip()


def attached(attachment: Row) -> tuple[str | list[Any], bool] | None:
    """Return what an attachment told the model, and whether the user wrote it; None if it told nothing.

    A queued command is what the user typed while the agent worked; files are injected.
    """
    kind = attachment.get("type")
    if kind == "queued_command":
        prompt = attachment.get("prompt")
        content = prompt if isinstance(prompt, str) else items_of(prompt)
        return (content, attachment.get("commandMode", "prompt") == "prompt") if content else None
    shown = attachment.inner("content", "file").text("content") if kind == "file" else ""
    text = attachment.text("snippet") if kind == "edited_text_file" else shown
    name = attachment.text("filename")
    return (f"<system-reminder>\nContents of {name}:\n{text}\n</system-reminder>", False) if text else None
