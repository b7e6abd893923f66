"""What a tool call is about, whatever the tool is called."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from foldline.core.ledger.facts.calls import argument_texts, strings
from foldline.core.ledger.text import names
from foldline.core.ledger.text.reasons import reason as told
from foldline.core.ledger.text.sentences import clip
from foldline.core.log.messages import ToolCall

LONGEST_REASON = 240  # characters of a reason that a call states itself

_SEARCH_KEYS = frozenset(("pattern", "query", "regex", "search", "glob", "regexp", "q", "keyword"))
_PATH_KEYS = frozenset(
    ("path", "filepath", "file", "filename", "notebookpath", "targetfile", "absolutepath", "paths")
)
_COMMAND_KEYS = frozenset(("command", "cmd", "script", "shellcommand"))
_REASON_KEYS = frozenset(("description", "explanation", "reason", "purpose", "why", "justification"))
_PART_KEYS = frozenset(
    ("offset", "limit", "startline", "endline", "start", "end", "line", "lines", "viewrange")
)


class CallTopic(msgspec.Struct):
    """What a call is about, from the shape and the names of its arguments.

    `part` says which part of a file was read, in the call's own words.
    """

    tool: str = ""
    topic: str = ""
    place: str = ""
    pattern: str = ""
    command: str = ""
    reason: str = ""
    part: str = ""
    changes: bool = False


def describe(call: ToolCall, reason: str) -> CallTopic:
    """Read a call's arguments: the file it addresses, what it searches for or runs, and its stated reason."""
    found = CallTopic(tool=call.name, reason=clip(told(reason), 160))
    given: Any = call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}
    for key, value in given.items():
        plain = re.sub(r"[^a-z]", "", str(key).lower())
        if plain in _PART_KEYS and isinstance(value, int) and not isinstance(value, bool):
            found.part += f"{', ' if found.part else ''}{key} {value}"
        if isinstance(value, list):
            value = " ".join(strings(value))  # noqa: PLW2901  an argument vector is one command
        if not isinstance(value, str) or not value:
            continue
        if plain in _COMMAND_KEYS:
            found.command = value
        elif plain in _SEARCH_KEYS:
            found.pattern = value
        elif plain in _PATH_KEYS:
            found.place = value
            found.topic = names.path_key(value) if "\n" not in value else ""
        elif plain in _REASON_KEYS and len(value) < LONGEST_REASON:
            found.reason = value
    found.changes = any(body for body, _ in argument_texts(call.arguments))
    if found.command and not found.topic:
        paths = {name.key for name in names.find(found.command) if name.kind == "path" and "." in name.key}
        found.topic = paths.pop() if len(paths) == 1 else ""
    return found
