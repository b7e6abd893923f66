"""Images, documents, audio and video: native blocks <-> `Media`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from mimetypes import MimeTypes
from typing import Any

from foldline.core.log.messages import Media, Part, Text, Thinking, ToolResult
from foldline.dialects.payload import Fields, fields_of, optional_string
from foldline.dialects.values import FILE_ID

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"
PLAIN = "text/plain"
_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
_ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}


def mime_of(value: Any) -> str:
    """Return the canonical form of a MIME type, without parameters; "" for anything but a string."""
    mime = value.partition(";")[0].strip().lower() if isinstance(value, str) else ""
    return _ALIASES.get(mime, mime)


@lru_cache(256)
def mime_at(url: str) -> str:
    """Guess a MIME type from the extension of a URL; "" if it is unknown."""
    return MimeTypes().guess_type(re.sub(r"[?#].*", "", url, flags=re.DOTALL), strict=False)[0] or ""


def kind_of(mime: str) -> str:
    """Return the kind of media of a MIME type."""
    family = mime.partition("/")[0]
    return family if family in ("image", "audio", "video") else "document"


def placeholder(media: Media) -> str:
    """Return the text that replaces media that cannot be converted."""
    label = ", ".join(part for part in (media.name, media.mime) if part)
    return f"[{media.kind} left out{': ' + label if label else ''}]"


def plain_text(media: Media) -> str | None:
    """Return the text of a plain text document; None for other media."""
    if media.mime != PLAIN or media.data is None:
        return None
    try:
        return base64.b64decode(media.data, validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return None


def text_document(kind: str, text: str, name: str | None) -> Media:
    """Return a text as media of type text/plain."""
    data = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
    return Media(kind, mime=PLAIN, data=data, name=name)


def words_of(part: Part) -> str:
    """Return a part as text, with a placeholder for media; "" for a part without text."""
    if isinstance(part, Text | Thinking | ToolResult):
        return part.text
    return (plain_text(part) or placeholder(part)) if isinstance(part, Media) else ""


def joined_words(parts: Iterable[Part]) -> str:
    """Return the texts of parts, one per line."""
    return "\n".join(text for text in map(words_of, parts) if text)


def from_openai(part: Fields) -> Media | None:
    """Read an image_url, input_audio or file part; None for an invalid one."""
    kind = part.get("type")
    value = part.get(str(kind))
    if kind == "image_url":
        url = fields_of(value).get("url") if isinstance(value, dict) else value
        return from_url("image", url) if isinstance(url, str) else None
    fields = fields_of(value)
    if kind == "input_audio":
        data, encoding = fields.get("data"), fields.get("format")
        valid = isinstance(data, str) and isinstance(encoding, str)
        return Media("audio", mime=f"audio/{encoding}", data=data) if valid else None
    return _from_file("document", fields, "file_data")


def from_responses(part: Fields) -> Media | None:
    """Read an input_image or input_file part; None without data, URL or file id."""
    if part.get("type") == "input_image":
        return _from_file("image", part, "image_url")
    return _from_file("document", part, "file_data", "file_url")


def _from_file(kind: str, fields: Fields, *keys: str) -> Media | None:
    """Read media from the first key with data or a URL, otherwise from a file id."""
    name = optional_string(fields, "filename")
    for key in keys:
        if isinstance(url := fields.get(key), str):
            is_base64 = key == "file_data" and not url.startswith("data:")
            media = Media(kind, data=url) if is_base64 else from_url(kind, url)
            return Media(kind, mime=media.mime, data=media.data, url=media.url, name=name)
    file_id = fields.get("file_id")
    return Media(kind, url=FILE_ID + file_id, name=name) if isinstance(file_id, str) else None


def to_openai(media: Media) -> Fields | None:
    """Return a part of a user message; None if Chat Completions does not support the media."""
    if media.kind == "image" and (url := _image_url(media)):
        return {"type": "image_url", "image_url": {"url": url}}
    if media.kind == "audio" and media.data is not None and (encoding := _AUDIO_FORMATS.get(media.mime)):
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": encoding}}
    pdf = _pdf(media)
    return {"type": "file", "file": pdf} if pdf else None


def to_responses(media: Media) -> Fields | None:
    """Return a part of a user message or tool output; None if the Responses API does not support it."""
    if media.kind == "image":
        url = _image_url(media)
        return {"type": "input_image", "image_url": url, "detail": "auto"} if url else None
    if media.kind == "document" and media.data is None and is_linked(media):
        return {"type": "input_file", "file_url": media.url}
    pdf = _pdf(media)
    return {"type": "input_file", **pdf} if pdf else None


def is_linked(media: Media) -> bool:
    """Return whether media have an http(s) URL."""
    return media.url is not None and media.url.lower().startswith(("http://", "https://"))


def _image_url(media: Media) -> str | None:
    if media.data:
        return f"data:{media.mime or 'image/png'};base64,{media.data}"
    return media.url if is_linked(media) else None


def _pdf(media: Media) -> Fields | None:
    if media.mime != PDF or media.data is None or media.kind == "image":
        return None
    return {"filename": media.name or "document.pdf", "file_data": f"data:{PDF};base64,{media.data}"}


def from_anthropic(block: Fields) -> Media | None:
    """Read an image or document block; None for an invalid source."""
    source, kind = fields_of(block.get("source")), str(block.get("type"))
    form, mime, data = source.get("type"), mime_of(source.get("media_type")), source.get("data")
    name = optional_string(block, "title")
    if form == "base64" and isinstance(data, str):
        return Media(kind, mime=mime, data=data, name=name)
    if form == "text" and isinstance(data, str):
        return text_document(kind, data, name)
    if form == "url" and isinstance(url := source.get("url"), str):
        return Media(kind, mime=mime, url=url, name=name)
    if form == "file" and isinstance(file_id := source.get("file_id"), str):
        return Media(kind, mime=mime, url=FILE_ID + file_id, name=name)
    return None


def to_anthropic(media: Media) -> Fields | None:
    """Return a block of a user message or tool result; None if the Messages API does not support it."""
    source = _anthropic_source(media) if media.kind in ("image", "document") else None
    if source is None:
        return None
    title = {"title": media.name} if media.kind == "document" and media.name else {}
    return {"type": media.kind, "source": source, **title}


def _anthropic_source(media: Media) -> Fields | None:
    if media.data is None:
        return {"type": "url", "url": media.url} if is_linked(media) else None
    text = plain_text(media) if media.kind == "document" else None
    if text is not None:
        return {"type": "text", "media_type": PLAIN, "data": text} if text.strip() else None
    allowed = IMAGE_TYPES if media.kind == "image" else (PDF,)
    supported = bool(media.data) and media.mime in allowed
    return {"type": "base64", "media_type": media.mime, "data": media.data} if supported else None


def from_url(kind: str, url: str) -> Media:
    """Read a URL as media; the data and type of a base64 data URL are extracted."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Media(kind, mime=mime_of(head.removeprefix("data:")), data=data)
    return Media(kind, url=url)


_TYPES: dict[str, tuple[str, Callable[[Fields], Media | None]]] = {
    "image": ("image", from_anthropic),
    "document": ("document", from_anthropic),
    "image_url": ("image", from_openai),
    "input_audio": ("audio", from_openai),
    "file": ("document", from_openai),
    "input_image": ("image", from_responses),
    "input_file": ("document", from_responses),
}
_MCP = ("image", "audio", "media", "image-data", "file", "file-data")  # and what SDKs convert them to


def from_mcp(block: Fields) -> Media | None:
    """Read media that an MCP tool returned, also as SDKs convert them; None for other blocks."""
    types = (mime_of(block.get(key)) for key in ("mediaType", "mimeType", "mime_type"))
    data, mime = block.get("data"), next(filter(None, types), "")
    if block.get("type") not in _MCP or not isinstance(data, str) or not mime:
        return None
    return Media(kind_of(mime), mime=mime, data=data)


def from_any(block: Fields) -> Media | None:
    """Read media of any dialect; None for a block of another kind.

    Invalid media are read as `Media` without data, except a `file`: it may be an ordinary value of a tool.
    """
    kind, read = _TYPES.get(str(block.get("type")), ("", from_mcp))
    empty = Media(kind) if kind and block["type"] != "file" else None
    return from_mcp(block) or read(block) or empty
