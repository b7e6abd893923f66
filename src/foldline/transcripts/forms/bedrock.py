"""Bedrock's Converse messages, which Strands keeps too: content blocks told apart by their only key."""

from __future__ import annotations

from typing import Any, Final

from foldline.transcripts.forms.written import Written, keys_of
from foldline.transcripts.lines import items, mapping, text_or
from foldline.transcripts.payloads import words_of

NAME: Final = "Bedrock Converse"
_MARKS: Final = {
    "toolUse",
    "toolResult",
    "reasoningContent",
    "cachePoint",
    "guardContent",
    "citationsContent",
}
_MEDIA: Final = {"image": "image", "video": "video", "audio": "audio", "document": "document"}
_MIMES: Final = {"pdf": "application/pdf", "txt": "text/plain", "jpeg": "image/jpeg"}


def fits(body: dict[str, Any]) -> bool:
    """Return whether a message is of this form: none of its blocks has a type, and one has a known key."""
    blocks = items(body.get("content"))
    if text_or(body.get("role")) not in ("user", "assistant", "system") or not blocks:
        return False
    if not all(isinstance(block, dict) and "type" not in block for block in blocks):
        return False
    return any(block.keys() & (_MARKS | _MEDIA.keys() | {"text"}) for block in blocks)


def write(body: dict[str, Any], out: Written) -> None:
    """Write a message."""
    for block in items(body["content"]):
        _block(mapping(block), out)
    out.end(body["role"])


def _block(block: dict[str, Any], out: Written) -> None:
    kind = next(
        (key for key in block if key in _MARKS or key in _MEDIA or key in ("text", "searchResult")), ""
    )
    value = mapping(block.get(kind))
    match kind:
        case "text":
            out.text(block["text"])
        case "toolUse":
            out.call(value.get("toolUseId"), value.get("name"), value.get("input"))
        case "toolResult":
            _result(value, out)
        case "reasoningContent":
            told = mapping(value.get("reasoningText"))
            out.thought(told.get("text"), told.get("signature") or value.get("redactedContent"))
        case "guardContent":
            out.text(mapping(value.get("text")).get("text") or "")
        case "citationsContent":
            for part in items(value.get("content")):
                out.text(mapping(part).get("text") or "")
        case "cachePoint":
            pass
        case "searchResult":
            out.text(words_of(value))
        case "image" | "video" | "audio" | "document":
            _media(kind, value, out)
        case _:
            out.refuse(f"a block with {keys_of(block)}")


def _media(kind: str, value: dict[str, Any], out: Written) -> None:
    source, form = mapping(value.get("source")), text_or(value.get("format"))
    mime = _MIMES.get(form, f"{'application' if kind == 'document' else kind}/{form}")
    if isinstance(source.get("text"), str):
        out.text(source["text"])
    elif "content" in source:
        for part in items(source["content"]):
            out.text(mapping(part).get("text") or "")
    else:
        place = mapping(source.get("s3Location")).get("uri")
        out.media(mime, data=source.get("bytes"), url=place, name=value.get("name"), kind=kind)


def _result(value: dict[str, Any], out: Written) -> None:
    said = [
        words_of(part["json"]) if "json" in part else out.in_result(part.get("text"), next(iter(part), ""))
        for part in map(mapping, items(value.get("content")))
    ]
    out.result(value.get("toolUseId"), "\n".join(said), failed=value.get("status") == "error")
