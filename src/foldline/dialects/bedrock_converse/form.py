"""Checks of Converse's messages: the blocks that a role may have, and their fields.

A block is an object with one key, its kind: `{"text": "…"}`, `{"toolUse": {…}}`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from foldline.dialects.bedrock_converse.blobs import base64_of
from foldline.dialects.forms import (
    Field,
    Forms,
    a,
    as_input,
    as_safe_id,
    as_safe_name,
    as_text,
    check_fields,
    check_parts,
    matching,
    missing_media,
    one_of,
    text_block_fields,
)
from foldline.dialects.payload import Fields, fields_of, filled, items_of
from foldline.dialects.values import Report

MEDIA: Final = ("image", "document", "video", "audio")
OWN: Final = (
    "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "citationsContent",
    "searchResult", "toolAddition", "toolRemoval", *MEDIA,
)  # fmt: skip
"""The kinds of blocks other than text."""
SILENT: Final = "cachePoint"
NAME_LIMIT: Final = 64
DOCUMENT_LIMIT: Final = 200
FORMATS: Final = {
    "image": ("png", "jpeg", "gif", "webp"),
    "document": ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
    "video": ("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"),
    "audio": (
        "mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a", "mpeg", "mpga",
        "pcm", "webm",
    ),
}  # fmt: skip
_ONLY = {  # kinds that only one role may have
    **dict.fromkeys((*MEDIA, "toolResult", "guardContent", "searchResult"), "user"),
    **dict.fromkeys(("toolUse", "reasoningContent", "citationsContent"), "assistant"),
}
_IN_RESULT = ("image", "document", "video", "searchResult")


def kind_of(block: Any) -> str:
    """Return the kind of a block; for calls and results of server tools their type."""
    fields = fields_of(block)
    kind = next((key for key in fields if key == "text" or key in OWN), next(iter(fields), ""))
    served = fields_of(fields.get(kind)).get("type") if kind in ("toolUse", "toolResult") else None
    return served if isinstance(served, str) and served else kind


def inner_fields(block: Any) -> Fields:
    """Return the object with the fields of a block."""
    fields = fields_of(block)
    kind = next((key for key in fields if key in OWN), "")
    return fields_of(fields.get(kind)) if kind else fields


def _as_status(value: Any) -> str:
    return "success" if str(value).lower() in ("ok", "true", "") else "error"


def _as_blocks(value: Any) -> list[Fields]:
    text = as_text(value)
    return [{"text": text}] if text.strip() else []


def _is_source(value: Any) -> bool:
    source = fields_of(value)
    return bool(base64_of(source.get("bytes"))) or filled(fields_of(source.get("s3Location")), "uri")


def _is_document(value: Any) -> bool:
    source = fields_of(value)
    return _is_source(source) or filled(source, "text") or bool(items_of(source.get("content")))


def _format(kind: str) -> Field:
    return Field(
        "format", "media-format", matching("|".join(FORMATS[kind])), f"one of {', '.join(FORMATS[kind])}"
    )


def _optional(field: Field) -> Field:
    def fits(value: Any) -> bool:
        return value is None or field.fits(value)

    return field._replace(fits=fits)


_is_name = matching(r"(?!.*\s\s)[A-Za-z0-9\s()\[\]-]{1,200}")


def document_name(value: Any) -> str:
    """Return a document's name with the characters and length that the API accepts."""
    letters = (char if _is_name(char) else "-" for char in (value if isinstance(value, str) else ""))
    return " ".join("".join(letters).split())[:DOCUMENT_LIMIT].strip() or "document"


_as_name = partial(as_safe_name, limit=NAME_LIMIT)
_LETTERS = "letters, digits, _ and -"
_is_id = matching(r"[a-zA-Z0-9_.:-]{1,64}")
_SOURCE = Field("source", "media-source", _is_source, "bytes or an s3Location")
FORMS: Forms = {
    "text": text_block_fields(),
    "toolUse": (
        Field("toolUseId", "call-id", _is_id, f"at most 64 {_LETTERS}, also . and :", as_safe_id),
        Field("name", "call-name", matching(r"[a-zA-Z0-9_-]{1,64}"), f"at most 64 {_LETTERS}", _as_name),
        Field("input", "call-input", a(dict), "an object", as_input),
    ),
    "toolResult": (
        Field("toolUseId", "result-id", _is_id, f"at most 64 {_LETTERS}, also . and :", as_safe_id),
        _optional(Field("status", "block-shape", one_of("success", "error"), "success or error", _as_status)),
        Field("content", "content-type", a(list), "a list of blocks", _as_blocks),
    ),
    "image": (_format("image"), _SOURCE),
    "video": (_format("video"), _SOURCE),
    "audio": (_format("audio"), _SOURCE),
    "document": (
        Field("name", "document-name", _is_name, "at most 200 letters, digits, spaces, -()[]", document_name),
        _optional(_format("document")),
        Field("source", "media-source", _is_document, "bytes, an s3Location or text"),
    ),
}  # fmt: skip


def check_message(report: Report, body: Fields) -> Fields:
    """Report broken rules of a message and return it repaired."""
    content, role = body.get("content"), body.get("role")
    if role not in ("user", "assistant"):
        report("role", f"role is {role!r}; it must be user or assistant")
    if content in ("", []):
        report("content-empty", "a message must have content")
    elif not isinstance(content, list):
        report("content-type", "content must be a list of blocks")
    elif all(kind_of(block) == SILENT for block in items_of(content)):
        report("content-empty", "a message must have content other than cache points")
    if not isinstance(content, list):
        content = _as_blocks(content)
    speaker = "assistant" if role == "assistant" else "user"
    blocks = check_parts(
        report,
        "block-kind",
        items_of(content),
        lambda block: _block(report, speaker, block),
        text_block,
        is_part=_is_block,
    )
    return {**body, "content": blocks}


def text_block(text: str) -> Fields:
    """Return a text as a block."""
    return {"text": text}


def _is_block(block: Fields) -> bool:
    """Return whether an object is a block: of a known kind, or with one key that may be a newer kind."""
    newer = len(block) == 1 and isinstance(next(iter(block.values())), dict)
    return newer or not {"text", *OWN}.isdisjoint(block)


def _block(report: Report, role: str, block: Fields) -> Fields | None:
    kind = kind_of(block)
    if (only := _ONLY.get(kind, role)) != role:
        report("block-role", f"only {only} messages can have a {kind} block")
        return _replacement(kind, block)
    return _checked(report, kind, block)


def _checked(report: Report, kind: str, block: Fields) -> Fields | None:
    """Check the fields of a block."""
    inner = inner_fields(block)
    new = check_fields(report, kind, FORMS.get(kind, ()), inner if kind in FORMS else block)
    if new is None:
        return _replacement(kind, block)
    if kind == "toolResult":
        content = check_parts(
            report,
            "block-kind",
            items_of(new["content"]),
            lambda part: _result_block(report, part),
            text_block,
            is_part=lambda part: "json" in part or _is_block(part),
        )
        if new.get("status") == "error" and not content:
            report("error-result-empty", "a toolResult with status error must have content")
        new = {**new, "content": content}
    elif kind == "reasoningContent" and not (
        isinstance(fields_of(inner.get("reasoningText")).get("text"), str)
        or base64_of(inner.get("redactedContent"))
    ):
        report("block-shape", "a reasoningContent block needs reasoningText or redactedContent")
        return None
    if kind not in OWN:  # text, a newer kind, or a server tool
        return new
    return block if new is inner else {**block, kind: new}


def _result_block(report: Report, block: Fields) -> Fields | None:
    """Check a block of a result."""
    kind = kind_of(block)
    if "json" in block:
        return block
    if kind in OWN and kind not in _IN_RESULT:
        report("block-kind", f"a toolResult cannot contain a block of kind {kind!r}")
        return _replacement(kind, block)
    return _checked(report, kind, block)


def _replacement(kind: str, block: Fields) -> Fields | None:
    """Return the text that replaces an invalid block; None for thinking."""
    if kind == "reasoningContent":
        return None
    return text_block(missing_media(kind) if kind in MEDIA else as_text(block))
