"""Claude Code's lines: the newest path through them, and the `anthropic` payload that several of them make.

Each call of a reply has a line of its own, with the id of the reply, and each result follows its call's line.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from foldline.core.log.messages import Usage
from foldline.errors import DialectError
from foldline.transcripts.lines import Row, items, mapping, text_or
from foldline.transcripts.payloads import usage_of
from foldline.transcripts.records import WarningRecord
from foldline.transcripts.tree import Node, Tree

_STOPS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "refusal": "end",
}

_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_STORED = re.compile(r"<persisted-output>\s*[^\n]*?saved to: ([^\n]+)")
_TREE_TYPES = ("user", "assistant", "system", "attachment", "progress")

# ---- the newest path


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
        if row.value.get("type") not in _TREE_TYPES:
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
        return isinstance(key, str) and key in set(self.keys.values())


def preserved_head(value: dict[str, Any]) -> Any:
    """Return the key of the first message that a compaction kept, if its boundary line names one."""
    metadata = mapping(value.get("compactMetadata"))
    listed = items(mapping(metadata.get("preservedMessages")).get("uuids"))
    return mapping(metadata.get("preservedSegment")).get("headUuid") or next(iter(listed), None)


# ---- what the lines hold


def message_id(value: dict[str, Any]) -> str:
    """Return the id that all lines of one reply share ("": none)."""
    return text_or(mapping(value.get("message")).get("id"))


def blocks_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the content blocks of a line; none where its content is text."""
    return [mapping(block) for block in items(mapping(value.get("message")).get("content"))]


def result_ids(value: dict[str, Any]) -> list[str]:
    """Return the ids of the calls that a user line answers."""
    return [
        text_or(block.get("tool_use_id")) for block in blocks_of(value) if block.get("type") == "tool_result"
    ]


def only_results(value: dict[str, Any]) -> bool:
    """Return whether a user line holds nothing but results."""
    return all(block.get("type") == "tool_result" for block in blocks_of(value))


def has_media(value: dict[str, Any]) -> bool:
    """Return whether a user line holds media: pasted images are the user's own."""
    return any(block.get("type") in ("image", "document") for block in blocks_of(value))


def stored_results(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the results stored outside a user line, which shows their beginning: call id and file."""
    found: list[tuple[str, str]] = []
    for block in blocks_of(value):
        inner = block.get("content")
        text = (
            inner if isinstance(inner, str) else text_or(mapping(next(iter(items(inner)), None)).get("text"))
        )
        if block.get("type") == "tool_result" and (match := _STORED.match(text)):
            found.append((text_or(block.get("tool_use_id")), match[1].strip()))
    return found


def call_ids(values: list[dict[str, Any]]) -> set[str]:
    """Return the ids of the calls in the lines of a reply."""
    blocks = [block for value in values for block in blocks_of(value)]
    return {text_or(block.get("id")) for block in blocks if block.get("type") == "tool_use"}


def merge_lines(values: list[dict[str, Any]], role: str) -> dict[str, Any]:
    """Merge the lines of one message, in order, into one payload; blank texts, which the API refuses, go.

    Raises DialectError for content that is neither text nor a list.
    """
    if len(values) == 1 and isinstance(content := mapping(values[0].get("message")).get("content"), str):
        return {"role": role, "content": content}
    blocks: list[Any] = []
    for value in values:
        content = mapping(value.get("message")).get("content")
        if isinstance(content, str):
            blocks.append({"type": "text", "text": content})
        elif isinstance(content, list):
            blocks.extend(items(content))
        else:
            raise DialectError("the content is neither text nor a list of blocks")
    told = [block for block in blocks if not _blank(mapping(block))]
    return {"role": role, "content": told or blocks}


def _blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not text_or(block.get("text"), "?").strip()


def usage(value: dict[str, Any]) -> Usage | None:
    """Return the API's usage of a reply; None for a message that no model wrote."""
    message = mapping(value.get("message"))
    counted = mapping(message.get("usage"))
    if not counted or message.get("model") == "<synthetic>":
        return None
    return usage_of(counted, _USAGE)


def model(value: dict[str, Any]) -> str | None:
    """Return the model that wrote the reply; None if Claude Code wrote it itself."""
    name = text_or(mapping(value.get("message")).get("model"))
    return name if name and name != "<synthetic>" else None


def stop(values: list[dict[str, Any]]) -> str | None:
    """Return why the model stopped: the last recorded reason, or error for an API error in a message."""
    if any(value.get("isApiErrorMessage") is True for value in values):
        return "error"
    reasons = [text_or(mapping(value.get("message")).get("stop_reason")) for value in values]
    known = [_STOPS[reason] for reason in reasons if reason in _STOPS]
    return known[-1] if known else "tools" if call_ids(values) else None


def attached_content(attachment: dict[str, Any]) -> tuple[str | list[Any], bool] | None:
    """Return what an attachment told the model, and whether the user wrote it; None if it told nothing.

    A queued command is what the user typed while the agent worked; files are injected.
    """
    kind = attachment.get("type")
    if kind == "queued_command":
        prompt = attachment.get("prompt")
        typed = attachment.get("commandMode", "prompt") == "prompt"
        content = prompt if isinstance(prompt, str) else items(prompt)
        return (content, typed) if content else None
    if kind == "file":
        shown = mapping(mapping(attachment.get("content")).get("file"))
        return _file(text_or(attachment.get("filename")), text_or(shown.get("content")))
    if kind == "edited_text_file":
        return _file(text_or(attachment.get("filename")), text_or(attachment.get("snippet")))
    return None


def _file(name: str, text: str) -> tuple[str, bool] | None:
    return (f"<system-reminder>\nContents of {name}:\n{text}\n</system-reminder>", False) if text else None
