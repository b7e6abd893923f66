"""Claude Code's lines: the newest path through them, the groups that form a message, and their content.

Each call of a reply has a line with the id of the reply, and each result follows its call's line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from foldline.dialects.payload import is_blank_text, items_of
from foldline.errors import DialectError
from foldline.transcripts.lines import Row
from foldline.transcripts.records import WarningRecord
from foldline.transcripts.tree import Node, Tree

BOUNDARY = "compact_boundary"
CHECKPOINT = "<foldline-checkpoint "

_TREE_TYPES = ("user", "assistant", "system", "attachment", "progress")

# ---- the newest path


class _LineRole(NamedTuple):
    """How a line relates to other lines.

    `caller` is the line with the calls that it answers; `alone`: it contains only results.
    """

    kind: str
    reply: str = ""
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    caller: str = ""
    alone: bool = False


def _line_role(row: Row, parent: str | None) -> _LineRole:
    kind = row.text("type")
    if kind == "assistant":
        return _LineRole(kind, row.inner("message").text("id"), tuple(call_ids([row])))
    if kind == "user" and is_summary(row):
        kind = "summary"
    elif kind == "system" and row.get("subtype") == BOUNDARY:
        kind = BOUNDARY
    elif kind == "attachment" and attached_text(row.inner("attachment")) is not None:
        kind = "attached"
    if kind not in ("user", "summary"):
        return _LineRole(kind)
    blocks = blocks_of(row)
    answers = tuple(block.text("tool_use_id") for block in blocks if block.get("type") == "tool_result")
    caller = row.text("sourceToolAssistantUUID") or parent or ""
    return _LineRole(kind, answers=answers, caller=caller, alone=len(answers) == len(blocks))


class _FileTree:
    """One tree of the file: the main conversation, or that of all sub-agents."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.roles: list[_LineRole] = []

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
            self.roles.append(_line_role(row, parent))

    def newest_path(self) -> list[bool]:
        """Mark the path to the newest message, the lines after it, and the rest of its tool batches."""
        nodes = self.tree.nodes
        leaf = max((place for place, node in enumerate(nodes) if node.said), default=len(nodes) - 1)
        on = self.tree.path(leaf)
        for place in range(leaf + 1, len(nodes)):
            on[place] = self.tree.parents[place] >= 0 and on[self.tree.parents[place]]
        self._complete_batches(on)
        return on

    def _complete_batches(self, on: list[bool]) -> None:
        """Mark the calls and results of each tool batch on the path that are on other branches."""
        roles = self.roles
        replies = {role.reply for role, marked in zip(roles, on, strict=True) if marked and role.reply}
        for place, role in enumerate(roles):
            on[place] = on[place] or role.reply in replies
        marked = [place for place in range(len(on)) if on[place]]
        callers = {self.tree.nodes[place].key for place in marked if roles[place].reply}
        answered = {call for place in marked for call in roles[place].answers}
        for place, role in enumerate(roles):
            if (
                not on[place]
                and role.answers
                and role.caller in callers
                and answered.isdisjoint(role.answers)
            ):
                on[place] = True
                answered.update(role.answers)


class LineGroup(msgspec.Struct):
    """The lines of one message, a boundary with its summary, or a single other line."""

    kind: str
    key: str
    lines: list[int]


class Index:
    """The main conversation of a file, or that of its sub-agents if there is no other."""

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
        chosen = self._main if self._main.messages or not self._sub.roles else self._sub
        on = chosen.newest_path()
        grouping = _Grouping()
        for node, role, marked in zip(chosen.tree.nodes, chosen.roles, on, strict=True):
            if marked:
                self._places[node.key] = node.line
                grouping.add(node, role)
        self.groups = grouping.groups
        self.warnings = chosen.tree.warnings()
        self.branches = chosen.tree.branches(on)
        self.sidechain_messages = self._shown + (self._sub.messages if chosen is self._main else 0)

    def message_at(self, key: Any, before: LineGroup) -> str | None:
        """Return the key of the message at that line or the first one after it, if it is before a group."""
        line = self._places.get(key) if isinstance(key, str) else None
        if line is None:
            return None
        end = bisect_right(self.groups, before.lines[0] - 1, key=lambda group: group.lines[0])
        kinds = ("assistant", "user", "results", "attached")
        messages = (group for group in self.groups[:end] if group.kind in kinds)
        return next((group.key for group in messages if line <= group.lines[0] or line in group.lines), None)


class _Grouping:
    """Groups the lines of the path, in the order of each group's first line."""

    def __init__(self) -> None:
        self.groups: list[LineGroup] = []
        self._reply: tuple[str, LineGroup] | None = None
        self._calls: set[str] = set()  # of the newest reply
        self._results: LineGroup | None = None
        self._boundary: LineGroup | None = None

    def add(self, node: Node, role: _LineRole) -> None:
        kind, group = role.kind, None
        if kind == "assistant":
            if self._reply is not None and role.reply and role.reply == self._reply[0]:
                group = self._reply[1]
            else:
                self._calls, self._boundary = set(), None
            self._calls.update(role.calls)
        elif role.answers and self._calls.issuperset(role.answers):
            kind, group = "results", self._results
        elif kind == "summary":
            group = self._boundary
        if group is None:
            group = LineGroup(kind, node.key, [])
            self.groups.append(group)
        group.lines.append(node.line)
        self._note(kind, role, group)

    def _note(self, kind: str, role: _LineRole, group: LineGroup) -> None:
        """Note which group later lines may join."""
        if kind == "assistant":
            if self._reply is None or self._reply[1] is not group:
                self._results = None
            self._reply = role.reply, group
        elif kind == "results":
            self._results = group if role.alone else None
        elif kind in ("user", "summary", "attached", BOUNDARY):
            self._results = None
            self._boundary = group if kind == BOUNDARY else self._boundary if kind == "attached" else None
            if kind == BOUNDARY or (kind != "attached" and not role.answers):
                self._reply = None


# ---- the content of lines


def blocks_of(row: Row) -> list[Row]:
    """Return the content blocks of a line; none if its content is text."""
    return row.inner("message").rows("content")


def is_summary(row: Row) -> bool:
    """Return whether a user's line is a compaction's summary: Claude Code's, or our plugin's checkpoint."""
    ours = row.get("rowSource") == "hook" and row.inner("message").text("content").startswith(CHECKPOINT)
    return ours or row.get("isCompactSummary") is True


def call_ids(rows: list[Row]) -> list[str]:
    """Return the ids of the calls in the lines of a reply."""
    blocks = [block for row in rows for block in blocks_of(row)]
    return [block.text("id") for block in blocks if block.get("type") == "tool_use"]


def merge_lines(contents: list[Any], role: str) -> dict[str, Any]:
    """Merge the contents of one message's lines into one payload, without blank texts, which the API refuses.

    Raises DialectError for content that is neither text nor a list.
    """
    if len(contents) == 1 and isinstance(contents[0], str):
        return {"role": role, "content": contents[0]}
    blocks: list[Any] = []
    for content in contents:
        if not isinstance(content, str | list):
            raise DialectError("the content is neither text nor a list of blocks")
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else items_of(content)
    visible = [block for block in blocks if not is_blank_text(block)]
    return {"role": role, "content": visible or blocks}


def attached_text(attachment: Row) -> tuple[str | list[Any], bool] | None:
    """Return the text of an attachment, and whether the user wrote it; None for an attachment without text.

    A queued command is text that the user typed while the agent worked; files are injected.
    """
    kind = attachment.get("type")
    if kind == "queued_command":
        prompt = attachment.get("prompt")
        content = prompt if isinstance(prompt, str) else items_of(prompt)
        return (content, attachment.get("commandMode", "prompt") == "prompt") if content else None
    file_text = attachment.inner("content", "file").text("content") if kind == "file" else ""
    text = attachment.text("snippet") if kind == "edited_text_file" else file_text
    name = attachment.text("filename")
    return (f"<system-reminder>\nContents of {name}:\n{text}\n</system-reminder>", False) if text else None
