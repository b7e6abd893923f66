"""Tell the user's own words from what agents write in the user's name.

Agents send reminders, hook output, command output and notices as user messages. None of it is a request.
"""

from __future__ import annotations

import re

from foldline.core.ledger.text.machine_forms import past_notices

_TAGS = (
    "system-reminder", "local-command-caveat", "local-command-stdout", "local-command-stderr", "command-name",
    "command-message", "command-args", "command-contents", "bash-stdout", "bash-stderr", "bash-input",
    "task-notification", "user-prompt-submit-hook", "environment_context", "user_instructions",
    "INSTRUCTIONS", "turn_aborted", "ide_opened_file", "ide_selection", "permissions instructions", "skill",
    "subagent_notification",
)  # fmt: skip
_WRAPPED = re.compile(
    r"\s*<(?P<tag>" + "|".join(re.escape(tag) for tag in _TAGS) + r")(?:\s[^>]*)?>.*?</(?P=tag)>", re.DOTALL
)
_ARGUMENTS = re.compile(r"<command-args>\s*[^<\s]")


def is_injected(text: str) -> bool:
    """Return whether a program wrote a user message's whole text: known tags around it, or known notices.

    A slash command with arguments is the user's own; a reminder next to the user's words does not count.
    """
    if _ARGUMENTS.search(text):
        return False
    at = past_notices(text)
    while wrapped := _WRAPPED.match(text, at):
        at = past_notices(text, wrapped.end())
    return at > 0 and not text[at:].strip()
