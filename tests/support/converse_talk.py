"""Messages of Anthropic's as Bedrock's Converse API has them."""

from __future__ import annotations

from typing import Any


def as_converse(message: dict[str, Any]) -> dict[str, Any]:
    """Write one message; a cache mark becomes a cache point behind its block."""
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": [{"text": content}]}
    blocks: list[dict[str, Any]] = []
    for block in content:
        blocks.append(_block(block))
        if "cache_control" in block:
            blocks.append({"cachePoint": {"type": "default"}})
    return {**message, "content": blocks}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "thinking":
            reasoning = {"text": block["thinking"], "signature": block["signature"]}
            return {"reasoningContent": {"reasoningText": reasoning}}
        case "redacted_thinking":
            return {"reasoningContent": {"redactedContent": "c2VhbGVk"}}
        case "tool_use":
            use = {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}
            return {"toolUse": use}
        case "tool_result":
            content = block.get("content", [])
            text = [{"text": content}] * bool(content)
            inner = text if isinstance(content, str) else [_block(part) for part in content]
            status = {"status": "error"} if block.get("is_error") else {}
            return {"toolResult": {"toolUseId": block["tool_use_id"], "content": inner, **status}}
        case "image":
            data = block["source"].get("data", "iVBORw0KGgo=")
            return {"image": {"format": "png", "source": {"bytes": data}}}
        case _:
            return {"text": block["text"]}
