"""UI messages -> parts with their places in the native message."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking
from foldline.dialects.edits import PlacedPart
from foldline.dialects.media import from_url, kind_of, mime_of
from foldline.dialects.payload import Fields, fields_of, items_of, role_in, string
from foldline.dialects.ui_message.tools import is_tool, read_tool, sdk4_call
from foldline.dialects.values import ANTHROPIC, UI_MESSAGE
from foldline.errors import DialectError

ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
REDACTED = "redacted_thinking"
V4_KEYS = ("toolInvocations", "experimental_attachments")


def role_of(body: Fields, index: int | None = None) -> Role:
    """Return the role of a message; raises DialectError (with `index`) for an unknown role."""
    is_data = body.get("role") == "data"
    remedy = "; remove messages with role data, they are never sent to a model" if is_data else ""
    return role_in(ROLES, body, index, remedy)


def slots(body: Fields, index: int | None = None) -> list[PlacedPart]:
    """Return the parts of a message in order, each with its place; unknown parts are opaque.

    A tool part is read as a call and its result. Raises DialectError (with `index`) for a wrong type.
    """
    role = role_of(body, index)
    natives = body.get("parts")
    if natives is None:
        return _v4(body, role, index)
    if not isinstance(natives, list):
        raise DialectError("parts must be a list", index=index)
    return [
        (part, ("parts", place))
        for place, native in enumerate(cast("list[Any]", natives))
        for part in _parts(native, role, index)
    ]


def _parts(native: Any, role: Role, index: int | None) -> list[Part]:
    fields = fields_of(native)
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise DialectError("a part must be an object with a type", index=index)
    if kind == "text":
        return [Text(_string(fields, "text", index))]
    if kind == "reasoning" and role == "assistant":
        return [_reasoning(fields, index)]
    if kind == "file":
        return [_file(fields, index)]
    if role == "assistant" and (is_tool(fields) or sdk4_call(fields)):
        return [*(read_tool(fields, index) or [Opaque(UI_MESSAGE, kind, fields)])]
    return [Opaque(UI_MESSAGE, kind, fields)]


def _reasoning(fields: Fields, index: int | None) -> Part:
    """Read reasoning; provider metadata may contain Anthropic's signature or redacted thinking."""
    text = _string(fields, "reasoning" if "text" not in fields and "reasoning" in fields else "text", index)
    metadata = fields_of(fields_of(fields.get("providerMetadata")).get(ANTHROPIC))
    if isinstance(data := metadata.get("redactedData"), str) and data and not text:
        return Opaque(ANTHROPIC, REDACTED, {"type": REDACTED, "data": data})
    signature = metadata.get("signature")
    return Thinking(text, signature if isinstance(signature, str) and signature else _v4_signature(fields))


def _v4_signature(fields: Fields) -> str | None:
    for detail in items_of(fields.get("details")):
        signature = fields_of(detail).get("signature")
        if isinstance(signature, str) and signature:
            return signature
    return None


def _file(fields: Fields, index: int | None) -> Part:
    if "url" not in fields and "data" in fields:  # AI SDK 4
        mime, data = _string(fields, "mimeType", index), _string(fields, "data", index)
        return Media(kind_of(mime), mime=mime, data=data)
    return _media(_string(fields, "mediaType", index), _string(fields, "url", index), fields.get("filename"))


def _media(mime: str, url: str, name: Any) -> Media:
    media = from_url(kind_of(mime), url)
    exact = "" if mime.endswith("/*") else mime_of(mime)
    name = name if isinstance(name, str) else None
    return Media(media.kind, mime=exact or media.mime, data=media.data, url=media.url, name=name)


def _v4(body: Fields, role: Role, index: int | None) -> list[PlacedPart]:
    """Read a message of AI SDK 4, without parts: reasoning, calls, text, attachments."""
    content = body.get("content")
    if not isinstance(content, str) or not (
        isinstance(body.get("id"), str) or any(k in body for k in V4_KEYS)
    ):
        raise DialectError("no parts: a UI message is an object with id, role and parts", index=index)
    placed: list[PlacedPart] = []
    reasoning = body.get("reasoning")
    if role == "assistant" and isinstance(reasoning, str) and reasoning:
        placed.append((Thinking(reasoning), ("reasoning", None)))
    for place, native in enumerate(items_of(body.get("toolInvocations"))):
        fields = fields_of(native)
        read = read_tool(fields, index) if role == "assistant" and sdk4_call(fields) else None
        parts: list[Part] = [*(read or [Opaque(UI_MESSAGE, "tool-invocation", native)])]
        placed += [(part, ("toolInvocations", place)) for part in parts]
    if content:
        placed.append((Text(content), ("content", None)))
    for place, native in enumerate(items_of(body.get("experimental_attachments"))):
        fields = fields_of(native)
        url, mime = fields.get("url"), fields.get("contentType")
        part: Part = Opaque(UI_MESSAGE, "attachment", native)
        if isinstance(url, str):
            part = _media(mime if isinstance(mime, str) else "image/*", url, fields.get("name"))
        placed.append((part, ("experimental_attachments", place)))
    return placed


def _string(fields: Fields, key: str, index: int | None) -> str:
    return string(fields, key, f"{fields.get('type')} part", index)
