"""Converse messages -> parts, one for each content block but cache points.

A block is an object of one key, which is its kind: `{"text": "…"}`, `{"toolUse": {…}}`.
"""

from __future__ import annotations

import base64
from typing import Any, Final, cast

from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.bedrock_converse.blobs import base64_of
from foldline.dialects.media import PDF, PLAIN
from foldline.dialects.payload import Fields, fields_of, items_of, json_text, role_in, string
from foldline.dialects.values import BEDROCK_CONVERSE, FILE_ID
from foldline.errors import DialectError

# system: newer models take it among the messages; it moves to the system prompt when it is sent
ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}
MEDIA: Final = ("image", "document", "video", "audio")
OWN: Final = (
    "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "citationsContent",
    "searchResult", "toolAddition", "toolRemoval", *MEDIA,
)  # fmt: skip
"""The kinds of blocks beside text."""
SILENT: Final = "cachePoint"
REDACTED: Final = "redacted_thinking"
_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
MIMES: Final = {
    ("image", "jpeg"): "image/jpeg",
    ("document", "pdf"): PDF,
    ("document", "txt"): PLAIN,
    ("document", "csv"): "text/csv",
    ("document", "html"): "text/html",
    ("document", "md"): "text/markdown",
    ("document", "doc"): "application/msword",
    ("document", "docx"): f"{_OFFICE}.wordprocessingml.document",
    ("document", "xls"): "application/vnd.ms-excel",
    ("document", "xlsx"): f"{_OFFICE}.spreadsheetml.sheet",
    ("video", "mkv"): "video/x-matroska",
    ("video", "mov"): "video/quicktime",
    ("video", "three_gp"): "video/3gpp",
    ("audio", "mp3"): "audio/mpeg",
    ("audio", "m4a"): "audio/mp4",
}
"""The MIME types of kinds and formats that are not called by their format alone."""


def kind_of(block: Any) -> str:
    """Return the kind of a block; of one that the provider's own tools wrote, the type of that."""
    fields = fields_of(block)
    kind = next((key for key in fields if key == "text" or key in OWN), next(iter(fields), ""))
    served = fields_of(fields.get(kind)).get("type") if kind in ("toolUse", "toolResult") else None
    return served if isinstance(served, str) and served else kind


def held_in(block: Any) -> Fields:
    """Return the object that has the fields of a block."""
    fields = fields_of(block)
    kind = next((key for key in fields if key in OWN), "")
    return fields_of(fields.get(kind)) if kind else fields


def role_of(body: Fields, index: int | None = None) -> Role:
    """Return the role of a message; raises DialectError for one that Converse lacks."""
    remedy = "; a tool message belongs to openai-chat" if body.get("role") == "tool" else ""
    return role_in(ROLES, body, index, remedy)


def parts_of(content: Any, index: int | None = None) -> list[Part]:
    """Read a message's content: a string is one text, a list gives a part for each block but cache points.

    Raises DialectError (with `index`) if a field that is read has the wrong type; unknown blocks are kept.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise DialectError("content must be a list of blocks", index=index)
    return [_part(block, index) for block in cast("list[Any]", content) if kind_of(block) != SILENT]


def _part(block: Any, index: int | None) -> Part:
    if not isinstance(block, dict) or not block:
        raise DialectError("a content block must be an object of one key", index=index)
    kind, held = kind_of(cast("Fields", block)), held_in(block)
    if kind == "text":
        return Text(string(held, "text", "text block", index))
    if kind == "toolUse":
        return _call(held, index)
    if kind == "toolResult":
        return _result(held, index)
    if kind in MEDIA and (media := media_in(kind, held)):
        return media
    if kind == "guardContent" and "image" in held:
        return media_in("image", fields_of(held["image"])) or Opaque(BEDROCK_CONVERSE, kind, block)
    if kind == "reasoningContent":
        return _thinking(held, block)
    told = words_in(kind, held)
    return Opaque(BEDROCK_CONVERSE, kind, block) if told is None else Text(told)


def words_in(kind: str, held: Fields) -> str | None:
    """Return the text of a block whose words stand deeper in it; None for any other block."""
    if kind == "guardContent":
        text = fields_of(held.get("text")).get("text")
        return text if isinstance(text, str) else None
    if kind == "json":
        return json_text(held["json"])
    if kind not in ("citationsContent", "searchResult"):
        return None
    texts = [fields_of(part).get("text") for part in items_of(held.get("content"))]
    named = [held.get("title"), held.get("source")] if kind == "searchResult" else []
    return "\n".join(text for text in (*named, *texts) if isinstance(text, str))


def _thinking(held: Fields, block: Any) -> Part:
    told = fields_of(held.get("reasoningText"))
    text, signature = told.get("text"), told.get("signature")
    if isinstance(text, str) and isinstance(signature, str | None):
        return Thinking(text, signature or None)
    return Opaque(BEDROCK_CONVERSE, REDACTED, block)


def _call(held: Fields, index: int | None) -> ToolCall:
    call_id = string(held, "toolUseId", "toolUse block", index)
    name = string(held, "name", "toolUse block", index)
    arguments = held.get("input", {})
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict | str):
        raise DialectError(f"toolUse {call_id!r}: input must be an object", index=index)
    return ToolCall(call_id, name, cast("Fields | str", arguments))


def _result(held: Fields, index: int | None) -> ToolResult:
    call_id = string(held, "toolUseId", "toolResult block", index)
    content = held.get("content")
    if not isinstance(content, list | None):
        raise DialectError(f"toolResult {call_id!r}: content must be a list of blocks", index=index)
    inner = [_part(block, index) for block in items_of(content)]
    return ToolResult(
        call_id,
        tuple(
            part
            if isinstance(part, Text | Media | Opaque)
            else Opaque(BEDROCK_CONVERSE, kind_of(block), block)
            for part, block in zip(inner, items_of(content), strict=True)
        ),
        held.get("status") == "error",
    )


def media_in(kind: str, held: Fields) -> Media | None:
    """Read an image, a document, a video or a sound; None if its source has another shape."""
    source, form, name = fields_of(held.get("source")), held.get("format"), held.get("name")
    mime = (
        MIMES.get((kind, form), f"{'application' if kind == 'document' else kind}/{form}")
        if isinstance(form, str)
        else ""
    )
    name = name if isinstance(name, str) else None
    if (data := base64_of(source.get("bytes"))) is not None:
        return Media(kind, mime=mime, data=data, name=name)
    if isinstance(place := fields_of(source.get("s3Location")).get("uri"), str):
        return Media(kind, mime=mime, url=FILE_ID + place, name=name)
    texts = [fields_of(part).get("text") for part in (source, *items_of(source.get("content")))]
    if said := "\n".join(text for text in texts if isinstance(text, str)):
        packed = base64.b64encode(said.encode("utf-8", "surrogatepass")).decode("ascii")
        return Media(kind, mime=PLAIN, data=packed, name=name)
    return None
