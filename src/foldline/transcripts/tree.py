"""The tree in a session file, built from its keys alone: the newest path, and the branches off it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from foldline.transcripts.records import WarningRecord

_NAMED = 20  # branches listed by name


class Node(NamedTuple):
    """A line of the tree. `said` marks a message; `follows`: without a parent it follows the line before."""

    key: str
    parent: str | None
    line: int
    said: bool = True
    follows: bool = False


class Tree:
    """Nodes in file order. A node's parent always comes before it, so no path can be a cycle.

    A parent that is unknown, later or the node itself is replaced by the line before, with a warning: one
    bad line cuts nothing off from the path.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.parents: list[int] = []
        self.warnings: list[WarningRecord] = []
        self._places: dict[str, int] = {}
        self._doubtful: list[int] = []

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def place(self, key: str) -> int | None:
        """Return the 0-based index of the node with that key, in file order."""
        return self._places.get(key)

    def add(self, node: Node) -> bool:
        """Append a node; a key that was there before is left out with a warning (returns False)."""
        if node.key in self._places:
            known = self.nodes[self._places[node.key]].line
            self.warnings.append(
                WarningRecord(node.line, f"id {node.key} is already on line {known}; the first one counts")
            )
            return False
        place = len(self.nodes)
        parent = self._places.get(node.parent) if node.parent is not None else None
        if node.parent is not None and parent is None:
            self._doubtful.append(place)
        if parent is None and (node.parent is not None or node.follows):
            parent = place - 1
        self.nodes.append(node)
        self.parents.append(-1 if parent is None else parent)
        self._places[node.key] = place
        return True

    def finish(self) -> None:
        """Add a warning for each doubtful parent, now that every key is known."""
        for place in self._doubtful:
            node = self.nodes[place]
            parent = node.parent or ""
            later = self._places.get(parent)
            where = (
                "is not in the file" if later is None else f"comes later, on line {self.nodes[later].line}"
            )
            where = "is the line itself" if later == place else where
            self.warnings.append(
                WarningRecord(node.line, f"its parent {parent} {where}; read as following the line before")
            )
        self._doubtful.clear()

    def path(self, leaf: int) -> list[bool]:
        """Mark the nodes from the root to the leaf (a place)."""
        on = [False] * len(self.nodes)
        while leaf >= 0:
            on[leaf] = True
            leaf = self.parents[leaf]
        return on

    def branches(self, on: list[bool]) -> dict[str, Any]:
        """Describe the unmarked nodes: the number of branches and messages, and the end of each branch."""
        ends: list[Node] = []
        leads_on = [False] * len(self.nodes)
        beside = 0
        for place in range(len(self.nodes) - 1, -1, -1):
            node, parent = self.nodes[place], self.parents[place]
            if on[place]:
                continue
            beside += node.said
            if node.said and not leads_on[place]:
                ends.append(node)
            if parent >= 0 and (node.said or leads_on[place]):
                leads_on[parent] = True
        listed = [{"leaf": node.key, "line": node.line} for node in reversed(ends)]
        return {"branches": len(ends), "messages": beside, "leaves": listed[-_NAMED:]}


def lines_of(tree: Tree, on: Iterable[bool]) -> set[int]:
    """Return the line numbers of the marked nodes."""
    return {node.line for node, marked in zip(tree.nodes, on, strict=True) if marked}
