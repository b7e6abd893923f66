"""Claude Code's lines as `anthropic` payloads: several lines of one reply become one message."""

from __future__ import annotations

import re
from typing import Any

from foldline.core.log.messages import Usage
from foldline.errors import DialectError
from foldline.transcripts.shared.values import count_or_none, items, mapping, text_or

_STOPS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "refusal": "end",
}

_STORED = re.compile(r"<persisted-output>\s*[^\n]*?saved to: ([^\n]+)")


def message_id(value: dict[str, Any]) -> str:
    """Return the id that all lines of one reply share ("": none)."""
    return text_or(mapping(value.get("message")).get("id"))


def result_ids(value: dict[str, Any]) -> list[str]:
    """Return the ids of the calls that a user line answers."""
    blocks = items(mapping(value.get("message")).get("content"))
    return [
        text_or(mapping(block).get("tool_use_id"))
        for block in blocks
        if mapping(block).get("type") == "tool_result"
    ]


def stored_results(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the results stored outside a user line, which shows their beginning: call id and file."""
    found: list[tuple[str, str]] = []
    for block in map(mapping, items(mapping(value.get("message")).get("content"))):
        inner = block.get("content")
        text = (
            inner if isinstance(inner, str) else text_or(mapping(next(iter(items(inner)), None)).get("text"))
        )
        if block.get("type") == "tool_result" and (match := _STORED.match(text)):
            found.append((text_or(block.get("tool_use_id")), match[1].strip()))
    return found


def call_ids(values: list[dict[str, Any]]) -> set[str]:
    """Return the ids of the calls in the lines of a reply."""
    blocks = [
        mapping(block) for value in values for block in items(mapping(value.get("message")).get("content"))
    ]
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
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    numbers = [count_or_none(counted.get(key)) or 0 for key in keys]
    return Usage(*numbers)


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
