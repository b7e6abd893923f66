"""The tree in a session file, built from its keys: the newest path, and the branches off it."""

from __future__ import annotations

from typing import Any, NamedTuple

from foldline.transcripts.records import WarningRecord

_LISTED = 20  # branches listed individually


class Node(NamedTuple):
    """A line of the tree. `said`: it is a message; `follows`: without a parent, it follows the last line."""

    key: str
    parent: str | None
    line: int
    said: bool = True
    follows: bool = False


class Tree:
    """Nodes in file order. A node's parent always comes before it, so no path can be a cycle.

    A parent that is unknown, later or the node itself is replaced by the previous line, with a warning, so
    that one bad line does not cut off the path.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.parents: list[int] = []
        self.places: dict[str, int] = {}  # key -> index in `nodes`
        self._duplicates: list[WarningRecord] = []
        self._orphans: list[Node] = []

    def add(self, node: Node) -> bool:
        """Append a node; for a duplicate key, note a warning and return False."""
        if node.key in self.places:
            first_line = self.nodes[self.places[node.key]].line
            text = f"id {node.key} is already on line {first_line}; the first one counts"
            self._duplicates.append(WarningRecord(node.line, text))
            return False
        place = len(self.nodes)
        parent = self.places.get(node.parent) if node.parent is not None else None
        if node.parent is not None and parent is None:
            self._orphans.append(node)
        if parent is None and (node.parent is not None or node.follows):
            parent = place - 1
        self.nodes.append(node)
        self.parents.append(-1 if parent is None else parent)
        self.places[node.key] = place
        return True

    def warnings(self) -> list[WarningRecord]:
        """Return the warnings about keys and parents; call it after the last line."""
        return self._duplicates + [self._orphan_warning(node) for node in self._orphans]

    def _orphan_warning(self, node: Node) -> WarningRecord:
        later = self.places.get(node.parent or "")
        where = "is not in the file" if later is None else f"comes later, on line {self.nodes[later].line}"
        where = "is the line itself" if node.parent == node.key else where
        return WarningRecord(
            node.line, f"its parent {node.parent} {where}; read as following the previous line"
        )

    def path(self, leaf: int) -> list[bool]:
        """Mark the nodes from the root to the leaf (an index of `nodes`)."""
        on = [False] * len(self.nodes)
        while leaf >= 0:
            on[leaf] = True
            leaf = self.parents[leaf]
        return on

    def marked(self, on: list[bool]) -> list[Node]:
        """Return the marked nodes."""
        return [node for node, marked in zip(self.nodes, on, strict=True) if marked]

    def branches(self, on: list[bool]) -> dict[str, Any]:
        """Describe the unmarked nodes: the number of branches and messages, and the leaf of each branch."""
        ends: list[Node] = []
        has_messages_below = [False] * len(self.nodes)
        messages = 0
        for place in range(len(self.nodes) - 1, -1, -1):
            node, parent = self.nodes[place], self.parents[place]
            if on[place]:
                continue
            messages += node.said
            if node.said and not has_messages_below[place]:
                ends.append(node)
            if parent >= 0 and (node.said or has_messages_below[place]):
                has_messages_below[parent] = True
        listed = [{"leaf": node.key, "line": node.line} for node in reversed(ends)]
        return {"branches": len(ends), "messages": messages, "leaves": listed[-_LISTED:]}
