"""The tree in a session file, built from its keys alone: the newest path, and the branches off it."""

from __future__ import annotations

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
        self.places: dict[str, int] = {}  # key -> index in `nodes`
        self._doubled: list[WarningRecord] = []
        self._doubtful: list[Node] = []

    def add(self, node: Node) -> bool:
        """Append a node; a key that was there before is left out with a warning (returns False)."""
        if node.key in self.places:
            known = self.nodes[self.places[node.key]].line
            text = f"id {node.key} is already on line {known}; the first one counts"
            self._doubled.append(WarningRecord(node.line, text))
            return False
        place = len(self.nodes)
        parent = self.places.get(node.parent) if node.parent is not None else None
        if node.parent is not None and parent is None:
            self._doubtful.append(node)
        if parent is None and (node.parent is not None or node.follows):
            parent = place - 1
        self.nodes.append(node)
        self.parents.append(-1 if parent is None else parent)
        self.places[node.key] = place
        return True

    def warnings(self) -> list[WarningRecord]:
        """Return what is wrong with the keys and parents, once every line is known."""
        return self._doubled + [self._doubt(node) for node in self._doubtful]

    def _doubt(self, node: Node) -> WarningRecord:
        later = self.places.get(node.parent or "")
        where = "is not in the file" if later is None else f"comes later, on line {self.nodes[later].line}"
        where = "is the line itself" if node.parent == node.key else where
        return WarningRecord(
            node.line, f"its parent {node.parent} {where}; read as following the line before"
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
