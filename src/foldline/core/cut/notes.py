"""Text in a session that nobody said: notes of folds, messages of recall, texts of commands and skills.

No facts are taken from the first two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Part, ToolCall, ToolResult

CLEARED = "[Old tool result cleared "
TAKEN_OUT = "[taken out of the context by the user; entry "
HELD = "; it held: "
IMAGE_LEFT_OUT = "[Old image left out "
UNANSWERED = "[No result was recorded for this call: it was interrupted.]"
LATE = "[Late result of tool call {}, quoted as data]"
LATE_REPLY = "[Late reply to an earlier message, quoted as data; it called no tools]"
SYSTEM = "[System message]"
STORED = "[Result of tool call {}, which its provider keeps]"


def is_cleared(text: str) -> bool:
    """Whether a text is the note of a result that was blanked or taken out."""
    return text.startswith((CLEARED, TAKEN_OUT)) and text.endswith("]") and "\n" not in text


def error_in(text: str) -> str:
    """Return the error line in the note of a blanked result, or ""."""
    note = text.removesuffix("]").partition(HELD)[0] if text.startswith(CLEARED) else ""
    return note.rpartition("; ")[2] if "; " in note else ""


def with_held(note: str, held: str) -> str:
    """Return the note of a blanked result with a line on what the result held."""
    return f"{note.removesuffix(']')}{HELD}{held}]"


# ---- messages of recall: they repeat the past, so a value in them is not a new one


MARK: Final = "[Recall] "  # begins every answer that quotes the past
WINDOW_MARK: Final = "[Context window] "  # begins every answer about the window
TOOLS: Final = ("recall_search", "recall_read", "recall_list", "context_stats", "compact_context")
# prefixes that agents give to the tools of `foldline mcp`
OF_SERVER: Final = ("mcp__foldline__", "foldline__", "foldline_")


def is_recall(message: Message) -> bool:
    """Whether a message holds only calls of recall's tools, or only their results."""
    return bool(message.parts) and all(_is_own(part, {}) for part in message.parts)


def without_recall(entries: Sequence[Said]) -> Sequence[Said]:
    """Return the entries without recall's own parts, and without entries that are then empty.

    A result belongs to recall if its call does. If the call is not here, the beginning of the result decides.
    """
    calls: dict[str, bool] = {}
    result: list[Said] = []
    unchanged = True
    for entry in entries:
        parts = tuple(part for part in entry.message.parts if not _is_own(part, calls))
        if len(parts) == len(entry.message.parts):
            result.append(entry)
            continue
        unchanged = False
        if parts:
            message = msgspec.structs.replace(entry.message, parts=parts, native=None)
            result.append(msgspec.structs.replace(entry, message=message))
    return entries if unchanged else result


def _is_own(part: Part, calls: dict[str, bool]) -> bool:
    """Whether a part belongs to recall; `calls` maps the ids of the calls so far to the same answer."""
    if isinstance(part, ToolCall):
        calls[part.id] = part.name in TOOLS or part.name.startswith(OF_SERVER)
        return calls[part.id]
    if not isinstance(part, ToolResult):
        return False
    own = calls.get(part.call_id)
    return part.text.startswith((MARK, WINDOW_MARK)) if own is None else own


# ---- user messages that hold the text of a slash command or a skill: a program wrote them
#
# Only the message before shows that: it names a custom command, or is the result of the tool that launches a
# skill.

_COMMAND = re.compile(
    r"(?=.*<command-name>\s*/?(?P<name>[\w:-]+)\s*</command-name>)"
    r"(?:\s*<(command-name|command-message|command-args)>[^<]*</\2>)+\s*\Z",
    re.DOTALL,
)
_BUILT_IN = re.compile(
    r"clear|exit|quit|compact|model|ide|login|logout|plan|context|config|cost|mcp|status|resume|doctor|help|"
    r"memory|permissions|hooks|agents|plugins?|rewind|rename|tasks|usage|vim|theme|terminal-setup|add-dir|"
    r"export|fast|effort|stats|extra-usage|upgrade|release-notes"
)
"""Claude Code's built-in slash commands: they act directly, and no prompt follows."""
_SKILL_TOOL = "Skill"
_LAUNCHED = re.compile(r"\s*Launching skill: \S+\s*\Z")
"""The result of Claude Code's skill tool; the skill's text follows as the next user message."""


class Expansions:
    """Detects the texts of commands and skills in a conversation, message by message."""

    def __init__(self) -> None:
        self._skills: set[str] = set()
        self._follows = False

    def holds(self, message: Message) -> bool:
        """Whether the next message is the text of the command or skill that the previous one names."""
        result = self._follows and message.is_prompt
        if message.role == "assistant":
            self._skills.update(call.id for call in message.calls if call.name == _SKILL_TOOL)
        self._follows = (bool(self._skills) or message.role == "user") and self._names_one(message)
        return result

    def _names_one(self, message: Message) -> bool:
        if message.results and message.role != "assistant":  # an assistant message answers its own results
            return any(
                result.call_id in self._skills and _LAUNCHED.match(result.text[:200])
                for result in message.results
            )
        command = _COMMAND.match(message.text) if message.role == "user" else None
        return command is not None and not _BUILT_IN.fullmatch(command["name"])


def expansions(entries: Iterable[Said]) -> list[int]:
    """Return the indices of the entries that are texts of commands or skills."""
    detector = Expansions()
    return [at for at, entry in enumerate(entries) if detector.holds(entry.message)]
