"""Gemini's `contents`, as its API, its SDKs (in snake case too) and Google's ADK have them."""

from __future__ import annotations

from typing import Any, Final

from foldline.transcripts.forms.written import Written, keys_of
from foldline.transcripts.lines import items, mapping, text_or

NAME: Final = "Gemini's contents"
_ROLES: Final = {
    "user": "user",
    "model": "assistant",
    "function": "user",
    "tool": "user",
    "system": "system",
    "": "user",
}
_KINDS: Final = {
    "text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
}  # fmt: skip
_BESIDE: Final = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}


def fits(body: dict[str, Any]) -> bool:
    """Return whether a message is a content: its parts have no type, and each a key that names it."""
    parts = items(body.get("parts"))
    if text_or(body.get("role")) not in _ROLES or not parts or "content" in body or "kind" in body:
        return False
    named = [_camel(mapping(part)) for part in parts if isinstance(part, dict)]
    if any("type" in part for part in named):
        return False
    return any(part.keys() & _KINDS for part in named) or (not named and isinstance(parts[0], str))


def write(body: dict[str, Any], out: Written) -> None:
    """Write a message."""
    for part in items(body["parts"]):
        _part({"text": part} if isinstance(part, str) else _camel(mapping(part)), out)
    out.end(_ROLES[text_or(body.get("role"))])


def _camel(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part with its keys as the API has them, without those that hold nothing."""
    known = {key: value for key, value in part.items() if value is not None}
    return {"".join([key.split("_")[0], *map(str.title, key.split("_")[1:])]): known[key] for key in known}


def _part(part: dict[str, Any], out: Written) -> None:
    kind = next((key for key in part if key in _KINDS), "")
    held, signature = _camel(mapping(part.get(kind))), text_or(part.get("thoughtSignature"))
    match kind:
        case "text" if part.get("thought") is True:
            out.thought(part["text"], signature)
        case "text":
            out.text(part["text"])
            if signature:
                out.losses.add("signatures of thoughts left out")
        case "functionCall":
            # where Google's own Chat Completions endpoint has it
            more = {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}
            out.call(held.get("id"), held.get("name"), held.get("args"), **more)
        case "functionResponse":
            _result(held, out)
        case "inlineData":
            out.media(held.get("mimeType"), data=held.get("data"), name=held.get("displayName"))
        case "fileData":
            out.media(held.get("mimeType"), url=held.get("fileUri"), name=held.get("displayName"))
        case "executableCode":
            out.text(f"```{text_or(held.get('language')).lower()}\n{text_or(held.get('code'))}\n```")
        case "codeExecutionResult":
            out.text(f"```\n{text_or(held.get('output'))}\n```")
        case "toolCall" | "toolResponse":
            out.losses.add(f"{kind} parts left out")
        case _ if part.keys() <= _BESIDE:
            out.losses.add("signatures of thoughts left out")
        case _:
            out.refuse(f"a part with {keys_of(part)}")


def _result(held: dict[str, Any], out: Written) -> None:
    """Write a function's response; the SDKs wrap a value in `result` or `output`, an error in `error`."""
    response = held.get("response")
    told, failed = response, False
    if isinstance(response, dict) and len(mapping(response)) == 1:
        key, value = next(iter(mapping(response).items()))
        if key in ("result", "output", "error"):
            told, failed = value, key == "error"
    if items(held.get("parts")):
        out.losses.add("media of results left out", len(items(held["parts"])))
    out.result(held.get("id"), told, name=held.get("name"), failed=failed)
