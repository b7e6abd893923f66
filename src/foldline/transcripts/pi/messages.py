"""pi's messages as `anthropic` payloads, with what pi recorded about them."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline.core.log.messages import Message, Usage
from foldline.errors import DialectError
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.values import count_or_none, items, mapping, text_or

_STOPS = {"stop": "end", "toolUse": "tools", "length": "length", "aborted": "aborted", "error": "error"}
_SIGNED = (
    "anthropic-messages",
    "bedrock-converse-stream",
)  # APIs whose signatures Anthropic's API accepts


class PiPayload(msgspec.Struct, frozen=True):
    """A payload, and what pi recorded about it."""

    payload: dict[str, Any]
    usage: Usage | None = None
    model: str | None = None
    stop: str | None = None
    injected: bool = False


def write(entry: dict[str, Any]) -> PiPayload:
    """Write a session entry (message, custom_message or branch_summary) as an `anthropic` payload.

    Raises DialectError for a message without a known role or with content of a wrong type.
    """
    kind = entry.get("type")
    if kind == "branch_summary":
        opening = "The following is a summary of a branch that this conversation left:"
        return _note(f"{opening}\n\n{_text(entry, 'summary')}")
    if kind == "custom_message":
        return PiPayload({"role": "user", "content": _content(entry.get("content"))}, injected=True)
    message = mapping(entry.get("message"))
    role = message.get("role")
    if role == "user":
        content = _content(message.get("content"))
        return PiPayload({"role": "user", "content": content}, injected=is_injected(_joined(content)))
    if role == "assistant":
        return _assistant(message)
    if role == "toolResult":
        return PiPayload({"role": "user", "content": [_result(message)]})
    if role == "bashExecution":
        return _note(_bash(message))
    if role in ("custom", "hookMessage"):
        return PiPayload({"role": "user", "content": _content(message.get("content"))}, injected=True)
    if role in ("branchSummary", "compactionSummary"):
        return _note(_text(message, "summary"))
    raise DialectError(f"pi writes no role {str(role)[:40]!r}")


def with_recorded(message: Message, written: PiPayload) -> Message:
    """Add to a decoded message what pi recorded about it."""
    return msgspec.structs.replace(
        message, usage=written.usage, model=written.model, stop=written.stop, injected=written.injected
    )


def _note(text: str) -> PiPayload:
    """Make an injected user message."""
    return PiPayload({"role": "user", "content": text}, injected=True)


def _text(holder: dict[str, Any], key: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        raise DialectError(f"its {key} is not text")
    return value


def _content(content: Any) -> str | list[dict[str, Any]]:
    """Return text, or text and image blocks; blank texts, which no API accepts, are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise DialectError("the content is neither text nor a list of blocks")
    blocks = [_block(mapping(block)) for block in items(content)]
    return [block for block in blocks if block]


def _block(block: dict[str, Any]) -> dict[str, Any] | None:
    kind = block.get("type")
    if kind == "text":
        text = _text(block, "text")
        return {"type": "text", "text": text} if text.strip() else None
    if kind == "image":
        source = {
            "type": "base64",
            "media_type": text_or(block.get("mimeType")),
            "data": _text(block, "data"),
        }
        return {"type": "image", "source": source}
    raise DialectError(f"a block of unknown type {str(kind)[:40]!r}")


def _joined(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_or(block.get("text"), "\0") for block in content)


def _assistant(message: dict[str, Any]) -> PiPayload:
    signed = message.get("api") in _SIGNED
    content = message.get("content")
    if not isinstance(content, list):
        raise DialectError("an assistant's content is not a list of blocks")
    blocks = [_said(mapping(block), signed=signed) for block in items(content)]
    return PiPayload(
        {"role": "assistant", "content": [block for block in blocks if block]},
        usage=_usage(mapping(message.get("usage"))),
        model=text_or(message.get("model")) or None,
        stop=_STOPS.get(text_or(message.get("stopReason"))),
    )


def _said(block: dict[str, Any], *, signed: bool) -> dict[str, Any] | None:
    """Write an assistant's block; a thought without Anthropic's signature is text, as pi itself sends it."""
    kind = block.get("type")
    if kind == "thinking":
        if block.get("redacted"):
            return {"type": "redacted_thinking", "data": text_or(block.get("thinkingSignature"))}
        thought, signature = _text(block, "thinking"), text_or(block.get("thinkingSignature"))
        if signed and signature:
            return {"type": "thinking", "thinking": thought, "signature": signature}
        return {"type": "text", "text": thought} if thought.strip() else None
    if kind == "toolCall":
        arguments = block.get("arguments")
        if not isinstance(arguments, dict):
            raise DialectError("the arguments of a call are not an object")
        return {
            "type": "tool_use",
            "id": _text(block, "id"),
            "name": _text(block, "name"),
            "input": arguments,
        }
    return _block(block)


def _result(message: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": _text(message, "toolCallId"),
        "content": _content(message.get("content")),
    }
    if message.get("isError") is True:
        result["is_error"] = True
    return result


def _bash(message: dict[str, Any]) -> str:
    """Return what the model is told about a command that the user ran in the terminal."""
    output = text_or(message.get("output"))
    told = f"The user ran `{_text(message, 'command')}`"
    told += f"\n```\n{output}\n```" if output else " (no output)"
    code = message.get("exitCode")
    if message.get("cancelled") is True:
        return told + "\n(cancelled)"
    return told + f"\nExit code {code}" if code else told


def _usage(usage: dict[str, Any]) -> Usage | None:
    """Read a usage; pi's four counts do not overlap. None if nothing was recorded."""
    if not usage:
        return None
    keys = ("input", "cacheRead", "cacheWrite", "output")
    numbers = [count_or_none(usage.get(key)) or 0 for key in keys]
    return Usage(*numbers)
