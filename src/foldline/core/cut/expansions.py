"""Find user messages that hold the text of a slash command or a skill: a program wrote them.

Only the message before shows that: it names a custom command, or is the result of the tool that launches a
skill.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message

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
