"""The form of Converse's messages: which blocks a role may have, and the fields of each.

A block is an object of one key, which is its kind: `{"text": "…"}`, `{"toolUse": {…}}`.
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
    left_out,
    look_at,
    look_at_parts,
    matching,
    one_of,
    text_block_fields,
)
from foldline.dialects.payload import Fields, fields_of, filled, items_of
from foldline.dialects.values import Say

MEDIA: Final = ("image", "document", "video", "audio")
OWN: Final = (
    "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "citationsContent",
    "searchResult", "toolAddition", "toolRemoval", *MEDIA,
)  # fmt: skip
"""The kinds of blocks beside text."""
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
_ONLY = {  # the kinds that only one role may have
    **dict.fromkeys((*MEDIA, "toolResult", "guardContent", "searchResult"), "user"),
    **dict.fromkeys(("toolUse", "reasoningContent", "citationsContent"), "assistant"),
}
_IN_RESULT = ("image", "document", "video", "searchResult")


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


def _as_status(value: Any) -> str:
    return "success" if str(value).lower() in ("ok", "true", "") else "error"


def _as_blocks(value: Any) -> list[Fields]:
    text = as_text(value)
    return [{"text": text}] if text.strip() else []


def _is_place(value: Any) -> bool:
    source = fields_of(value)
    return bool(base64_of(source.get("bytes"))) or filled(fields_of(source.get("s3Location")), "uri")


def _is_document(value: Any) -> bool:
    source = fields_of(value)
    return _is_place(source) or filled(source, "text") or bool(items_of(source.get("content")))


def _format(kind: str) -> Field:
    return Field(
        "format", "media-format", matching("|".join(FORMATS[kind])), f"one of {', '.join(FORMATS[kind])}"
    )


def _optional(field: Field) -> Field:
    """Return a field that may be missing."""

    def fits(value: Any) -> bool:
        return value is None or field.fits(value)

    return field._replace(fits=fits)


_is_name = matching(r"(?!.*\s\s)[A-Za-z0-9\s()\[\]-]{1,200}")


def document_name(value: Any) -> str:
    """Return a document's name in the characters, and of the length, that the API takes."""
    letters = (char if _is_name(char) else "-" for char in (value if isinstance(value, str) else ""))
    return " ".join("".join(letters).split())[:DOCUMENT_LIMIT].strip() or "document"


_as_name = partial(as_safe_name, limit=NAME_LIMIT)
_LETTERS = "letters, digits, _ and -"
_is_id = matching(r"[a-zA-Z0-9_.:-]{1,64}")
_SOURCE = Field("source", "media-source", _is_place, "bytes or an s3Location")
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


def look(say: Say, body: Fields) -> Fields:
    """Check a message by itself, and return it as it may be sent; `say(rule, text)` takes what is wrong."""
    content, role = body.get("content"), body.get("role")
    if role not in ("user", "assistant"):
        say("role", f"role is {role!r}; it must be user or assistant")
    if content in ("", []):
        say("content-empty", "a message must say something")
    elif not isinstance(content, list):
        say("content-type", "content must be a list of blocks")
    elif all(kind_of(block) == SILENT for block in items_of(content)):
        say("content-empty", "a message must say something beside its cache points")
    if not isinstance(content, list):
        content = _as_blocks(content)
    speaker = "assistant" if role == "assistant" else "user"
    blocks = look_at_parts(
        say,
        "block-kind",
        items_of(content),
        lambda block: _block(say, speaker, block),
        text_block,
        known=_is_block,
    )
    return {**body, "content": blocks}


def text_block(text: str) -> Fields:
    """Return a text as a block."""
    return {"text": text}


def _is_block(block: Fields) -> bool:
    """Return whether an object is a block: of a known kind, or of one key that may be a newer kind."""
    newer = len(block) == 1 and isinstance(next(iter(block.values())), dict)
    return newer or not {"text", *OWN}.isdisjoint(block)


def _block(say: Say, role: str, block: Fields) -> Fields | None:
    kind = kind_of(block)
    if (only := _ONLY.get(kind, role)) != role:
        say("block-role", f"only a message of the {only} can have a {kind} block")
        return _instead(kind, block)
    return _looked(say, kind, block)


def _looked(say: Say, kind: str, block: Fields) -> Fields | None:
    """Look at the fields of a block of a known kind."""
    held = held_in(block)
    new = look_at(say, kind, FORMS.get(kind, ()), held if kind in FORMS else block)
    if new is None:
        return _instead(kind, block)
    if kind == "toolResult":
        inner = look_at_parts(
            say,
            "block-kind",
            items_of(new["content"]),
            lambda part: _inner(say, part),
            text_block,
            known=_is_inner,
        )
        if new.get("status") == "error" and not inner:
            say("error-result-empty", "a toolResult of status error must say something")
        new = {**new, "content": inner}
    elif kind == "reasoningContent" and not (
        isinstance(fields_of(held.get("reasoningText")).get("text"), str)
        or base64_of(held.get("redactedContent"))
    ):
        say("block-shape", "a reasoningContent block holds reasoningText or redactedContent")
        return None
    if kind not in OWN:  # text, of a newer kind, or what the provider's own tools wrote
        return new
    return block if new is held else {**block, kind: new}


def _is_inner(block: Fields) -> bool:
    return "json" in block or _is_block(block)


def _inner(say: Say, block: Fields) -> Fields | None:
    """Look at a block of a result."""
    kind = kind_of(block)
    if "json" in block:
        return block
    if kind in OWN and kind not in _IN_RESULT:
        say("block-kind", f"a toolResult cannot hold a block of kind {kind!r}")
        return _instead(kind, block)
    return _looked(say, kind, block)


def _instead(kind: str, block: Fields) -> Fields | None:
    """Return what a block becomes that is of no use where it stands: text, but for a thought."""
    if kind == "reasoningContent":
        return None
    return text_block(left_out(kind) if kind in MEDIA else as_text(block))
