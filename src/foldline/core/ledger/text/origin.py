"""Which words of a user message are the user's own.

Agents put much into user messages that no person wrote: reminders, command output, environment dumps,
instruction files, hook feedback, summaries of earlier contexts. A constraint or a request is only ever
taken from what is left when these are cut out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from foldline.core.ledger.text.machine_forms import PLACEHOLDER, past_forms
from foldline.core.ledger.text.sentences import word_set
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text

_MACHINE = word_set(
    "system-reminder system_reminder system-message system_message command-name command-message "
    "local-command-stdout local-command-stderr local-command-caveat bash-input bash-stdout bash-stderr "
    "environment_context environment_details user_instructions turn_aborted task-notification "
    "ide_opened_file ide_selection ide_diagnostics new-diagnostics user-prompt-submit-hook "
    "session-start-hook post-tool-use-hook pre-tool-use-hook stop-hook hook_context tool_use_error "
    "function_results collaboration_mode skills_instructions plugins_instructions app-context "
    "apps_instructions model_switch previous-summary previous_summary open_and_recently_viewed_files "
    "subagent_notification extremely_important foldline-checkpoint user-rules "
    "instructions permissions tool_result file_content file_contents attached_files attachment skill "
    "context_summary conversation conversation_history compaction git_status project_layout user_info "
    "rules additional_data editor_context workspace_info context reminderinstructions image "
    "total_tokens budget env summary"
)
"""Tags of blocks that programs write: a block is cut out where it is closed, a tag that is named is prose."""
_OWN = word_set("command-args user_query user-query userrequest user_message user-memory-input task feedback")
"""Tags that programs put around what a person typed: the tags are cut out, the words stay."""
_TAG = re.compile(
    rf"<(/?)(?=[a-z])({'|'.join(sorted(_MACHINE | _OWN, key=len, reverse=True))})(?:\s[^<>\n]{{0,300}})?>",
    re.IGNORECASE,
)
_PICTURES = re.compile(rf"^(?:[ \t]*(?:{PLACEHOLDER}))+", re.MULTILINE)
_COMMAND = re.compile(
    r"(?=.*<command-name>\s*/?(?P<name>[\w:-]+)\s*</command-name>)"
    r"(?:\s*<(command-name|command-message|command-args)>[^<]*</\2>)+\s*\Z",
    re.DOTALL,
)
_BUILT_IN = word_set(
    "clear exit quit compact model ide login logout plan context config cost mcp status resume doctor help "
    "memory permissions hooks agents plugin plugins rewind rename tasks usage vim theme terminal-setup "
    "add-dir export fast effort stats extra-usage upgrade release-notes"
)
"""Slash commands of Claude Code that act by themselves: no prompt follows them."""
_SKILL_TOOL = "Skill"
_LAUNCHED = re.compile(r"\s*Launching skill: \S+\s*\Z")
"""What Claude Code's tool answers before it sends a skill's text as the next user message."""
_PLAN = re.compile(r"\s*+Implement the following plan:[ \t]*\n\s*#")


def spans(text: str) -> tuple[str, ...]:
    """Cut what programs wrote out of one text of a user message; each span stands in it word for word."""
    kept: list[str] = []
    at = past_forms(text)
    for start, end, inner in _blocks(text):
        if start >= at:
            kept.append(text[at:start])
            kept.extend(spans(inner))
            at = past_forms(text, end)
    kept.append(text[at:])
    return tuple(span for piece in kept for span in _around_pictures(piece))


def _around_pictures(piece: str) -> Iterator[str]:
    """Yield what stands around placeholders of pictures that begin a line."""
    found = _PICTURES.split(piece) if "[" in piece else [piece]
    yield from (span for span in map(str.strip, found) if span)


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and the user's words of each tagged block that is closed: in order, none nested."""
    tags = list(_TAG.finditer(text)) if "<" in text else []
    last = {match.group(2).lower(): match.start() for match in tags if match.group(1)}
    name, start, inner = "", 0, 0
    for match in tags:
        tag = match.group(2).lower()
        if name and tag == name and match.group(1):
            yield start, match.end(), text[inner : match.start()] if name in _OWN else ""
            name = ""
        elif not name and not match.group(1) and last.get(tag, -1) > match.start():
            name, start, inner = tag, match.start(), match.end()


def own(message: Message) -> tuple[str, ...]:
    """Return the spans of a message that the user wrote: none for any message that is no prompt."""
    if not message.is_prompt:
        return ()
    return tuple(span for part in message.parts if isinstance(part, Text) for span in spans(part.text))


class UserSpeech:
    """Tells in which entries of a conversation the user speaks; it is shown one after the other.

    The message right after a slash command that is no built-in one, or after the answer of the tool that
    launches a skill, is the text of that command or skill: a program wrote it, so it is passed over.
    """

    def __init__(self) -> None:
        self._skills: set[str] = set()
        self._expands = False

    def own(self, entry: Said) -> tuple[str, ...]:
        """Return the user's own spans of the next entry; none where the user does not speak."""
        message = entry.message
        mine = () if self._expands else own(message)
        if message.role == "assistant":
            self._skills.update(call.id for call in message.calls if call.name == _SKILL_TOOL)
        self._expands = (bool(self._skills) or message.role == "user") and _expands(message, self._skills)
        return mine


def prompts(entries: Iterable[Said]) -> Iterator[tuple[Said, tuple[str, ...]]]:
    """Yield each entry in which the user speaks, with the user's own spans."""
    shown = UserSpeech()
    for entry in entries:
        if mine := shown.own(entry):
            yield entry, mine


def _expands(message: Message, skills: AbstractSet[str]) -> bool:
    """Whether the next user message is the text of a command or a skill that this one names."""
    if message.results and message.role != "assistant":  # an assistant's own results are answered in it
        return any(
            result.call_id in skills and _LAUNCHED.match(result.text[:200]) for result in message.results
        )
    command = _COMMAND.match(message.text) if message.role == "user" else None
    return command is not None and command["name"] not in _BUILT_IN


def is_plan(span: str) -> bool:
    """Whether the span is a plan that an agent wrote and the user only approved."""
    return bool(_PLAN.match(span))
