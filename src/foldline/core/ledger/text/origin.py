"""Which words of a user message are the user's own.

Agents put much into user messages that no person wrote: reminders, command output, environment dumps,
instruction files, hook feedback, summaries of earlier contexts. A constraint or a request is only ever
taken from what is left when these are cut out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foldline.core.ledger.text.sentences import word_set
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text

_SCANNED = 200_000
"""Characters of one text part that are looked at; what lies beyond is a paste, not prose."""

_SURE = word_set(
    "system-reminder system_reminder system-message system_message command-name command-message "
    "local-command-stdout local-command-stderr local-command-caveat bash-input bash-stdout bash-stderr "
    "environment_context environment_details user_instructions turn_aborted task-notification "
    "ide_opened_file ide_selection ide_diagnostics new-diagnostics user-prompt-submit-hook "
    "session-start-hook post-tool-use-hook pre-tool-use-hook stop-hook hook_context tool_use_error "
    "function_results collaboration_mode skills_instructions plugins_instructions app-context "
    "apps_instructions model_switch previous-summary previous_summary open_and_recently_viewed_files "
    "subagent_notification extremely_important"
)
"""Tags that only programs write: a block is cut out even where it is never closed."""
_LIKELY = word_set(
    "instructions permissions tool_result file_content file_contents attached_files attachment skill "
    "context_summary conversation conversation_history compaction git_status project_layout user_info "
    "rules additional_data editor_context workspace_info context reminderinstructions image "
    "total_tokens budget env summary"
)
"""Tags that a person may also name in prose: a block is cut out only where it is closed."""
_OWN = word_set("command-args user_query user-query userrequest user_message user-memory-input task feedback")
"""Tags that programs put around what a person typed: the tags are cut out, the words stay."""
_TAG = re.compile(
    rf"<(/?)({'|'.join(sorted(_SURE | _LIKELY | _OWN, key=len, reverse=True))})(?:\s[^<>\n]{{0,300}})?>",
    re.IGNORECASE,
)
_PROGRAM_MESSAGE = re.compile(
    r"\s*(?:"
    r"# AGENTS\.md instructions\b|# CLAUDE\.md\b|# GEMINI\.md\b|Contents of \S+\.md\b|"
    r"Caveat: The messages below|\[Request interrupted by user|\[Request aborted|\[Image\b|\[image\]|"
    r"This session is being continued from a previous conversation|"
    r"Another language model started to solve this problem|"
    r"The conversation history before this point was compacted|"
    r"The following is a summary of (?:a branch|the)|"
    r"(?:Stop|SessionStart|UserPromptSubmit|PreToolUse|PostToolUse|SubagentStop)\b[\w: ]{0,60}\bhook\b|"
    r"(?:Stop|PreToolUse|PostToolUse):|Operation stopped by hook|Base directory for this skill:|"
    r"Unknown (?:slash command|skill):|Your task is to create a detailed summary|"
    r"This is the setup of your current|My operating system is:|"
    r"Invoke the [\w:-]+ skill and follow it exactly|\[SYSTEM\b|\[System\b|"
    r"Called the \w+ tool with the following input|<path>[^<\n]*</path>\s*<type>|<file(?: [^>\n]*)"
    r"?>\s*\d+[:|→]|"
    r"Continue if you have next steps, or stop and ask|Tool loaded\.|Continue from where you left "
    r"off\.\s*\Z|The user doesn't want to proceed"
    r")"
)
_COMMAND = re.compile(r"<command-name>\s*/?([\w:-]+)")
_OUTPUT = re.compile(r"<local-command-|<bash-")
_BUILT_IN = word_set(
    "clear exit quit compact model ide login logout plan context config cost mcp status resume doctor help "
    "memory permissions hooks agents plugin plugins rewind rename tasks usage vim theme terminal-setup "
    "add-dir export fast effort stats extra-usage upgrade release-notes"
)
"""Slash commands of Claude Code that act by themselves: no prompt follows them."""
_SKILL = re.compile(r"\s*(?:Launching skill|Skill loaded|Loaded skill)\b", re.IGNORECASE)
_PLAN = re.compile(r"\s*Implement the following plan:", re.IGNORECASE)


def spans(text: str) -> tuple[str, ...]:
    """Cut what programs wrote out of one text of a user message; each span stands in it word for word."""
    if _PROGRAM_MESSAGE.match(text):
        return ()
    kept: list[str] = []
    at = 0
    for start, end, inner in _blocks(text[:_SCANNED]):
        kept.append(text[at:start])
        kept.extend(spans(inner))
        at = end
    kept.append(text[at:])
    return tuple(span for span in (piece.strip() for piece in kept) if span)


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and the user's words of each tagged block, in order, none inside another."""
    tags = list(_TAG.finditer(text)) if "<" in text else []
    last = {match.group(2).lower(): match.start() for match in tags if match.group(1)}
    name, start, inner = "", 0, 0
    for match in tags:
        tag = match.group(2).lower()
        if name and tag == name and match.group(1):
            yield start, match.end(), text[inner : match.start()] if name in _OWN else ""
            name = ""
        elif not name and not match.group(1) and (last.get(tag, -1) > match.start() or tag in _SURE):
            name, start, inner = tag, match.start(), match.end()
    if name:
        yield start, len(text), ""


def own(message: Message) -> tuple[str, ...]:
    """Return the spans of a message that the user wrote: none for any message that is no prompt."""
    if not message.is_prompt:
        return ()
    return tuple(span for part in message.parts if isinstance(part, Text) for span in spans(part.text))


def prompts(entries: Sequence[Said]) -> Iterator[tuple[Said, tuple[str, ...]]]:
    """Yield each entry in which the user speaks, with the user's own spans.

    The message right after a slash command that is no built-in one, or after the result that announces a
    skill, is the prompt that the command or the skill stands for: a program wrote it, so it is passed over.
    """
    expands = False
    for entry in entries:
        mine = () if expands else own(entry.message)
        if mine:
            yield entry, mine
        expands = _expands(entry.message)


def _expands(message: Message) -> bool:
    """Whether the next user message is the text of a command or a skill that this one names."""
    if message.results and message.role != "assistant":  # an assistant's own results are answered in it
        return any(_SKILL.match(result.text[:100]) for result in message.results)
    if message.role != "user":
        return False
    text = message.text[:4000]
    command = _COMMAND.search(text)
    return command is not None and command.group(1) not in _BUILT_IN and not _OUTPUT.search(text)


def is_plan(span: str) -> bool:
    """Whether the span is a plan that an agent wrote and the user only approved."""
    return bool(_PLAN.match(span))
