"""Images, documents and sound: native blocks of the dialects <-> Media."""

from __future__ import annotations

import base64
import binascii
from typing import Any, cast

from foldline.core.log.messages import Media, Part, Text, Thinking, ToolResult
from foldline.dialects.values import FILE_ID

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"
PLAIN = "text/plain"
_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def placeholder(media: Media) -> str:
    """Return the text that stands in for media that cannot be carried over."""
    label = ", ".join(part for part in (media.name, media.mime) if part)
    return f"[{media.kind} left out{': ' + label if label else ''}]"


def plain_text(media: Media) -> str | None:
    """Return the text of a plain text document; None for everything else."""
    if media.mime != PLAIN or media.data is None:
        return None
    try:
        return base64.b64decode(media.data, validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return None


def words_of(part: Part) -> str:
    """Return a part as text, where nothing else can carry it."""
    if isinstance(part, Text | Thinking | ToolResult):
        return part.text
    return (plain_text(part) or placeholder(part)) if isinstance(part, Media) else ""


def from_openai(part: dict[str, Any]) -> Media | None:
    """Read an image_url, input_audio or file part; None if it has another shape."""
    kind = part.get("type")
    value = part.get(str(kind))
    if kind == "image_url":
        url = cast("dict[str, Any]", value).get("url") if isinstance(value, dict) else value
        return from_url("image", url) if isinstance(url, str) else None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    if kind == "input_audio":
        data, form = fields.get("data"), fields.get("format")
        if isinstance(data, str) and isinstance(form, str):
            return Media("audio", mime=f"audio/{form}", data=data)
        return None
    name = fields.get("filename")
    name = name if isinstance(name, str) else None
    if isinstance(data := fields.get("file_data"), str):
        media = from_url("document", data)
        return Media("document", mime=media.mime, data=media.data, url=media.url, name=name)
    if isinstance(file_id := fields.get("file_id"), str):
        return Media("document", url=FILE_ID + file_id, name=name)
    return None


def to_openai(media: Media) -> dict[str, Any] | None:
    """Return the part of a user message; None if Chat Completions has no such part."""
    if media.url is not None and media.url.startswith(FILE_ID):
        return None
    if media.kind == "image":
        url = media.url if media.data is None else f"data:{media.mime or 'image/png'};base64,{media.data}"
        return {"type": "image_url", "image_url": {"url": url}} if url else None
    if media.data is None:
        return None
    if media.kind == "audio" and (form := _AUDIO_FORMATS.get(media.mime)):
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
    if media.mime == PDF:
        data = f"data:{PDF};base64,{media.data}"
        return {"type": "file", "file": {"filename": media.name or "document.pdf", "file_data": data}}
    return None


def from_responses(part: dict[str, Any]) -> Media | None:
    """Read an input_image or input_file part; None if it names no data, URL or file."""
    kind = "image" if part.get("type") == "input_image" else "document"
    name = part.get("filename")
    name = name if isinstance(name, str) else None
    for key in ("image_url",) if kind == "image" else ("file_data", "file_url"):
        if isinstance(url := part.get(key), str):
            bare = key == "file_data" and not url.startswith("data:")
            media = Media(kind, data=url) if bare else from_url(kind, url)
            return Media(kind, mime=media.mime, data=media.data, url=media.url, name=name)
    file_id = part.get("file_id")
    return Media(kind, url=FILE_ID + file_id, name=name) if isinstance(file_id, str) else None


def to_responses(media: Media) -> dict[str, Any] | None:
    """Return the part of a user message or a tool output; None if the Responses API has no such part."""
    if (media.url or "").startswith(FILE_ID) or not (media.data or media.url):
        return None
    if media.kind == "image":
        url = media.url if media.data is None else f"data:{media.mime or 'image/png'};base64,{media.data}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    if media.data is None:
        return {"type": "input_file", "file_url": media.url} if media.kind == "document" else None
    if media.mime != PDF:
        return None
    data = f"data:{PDF};base64,{media.data}"
    return {"type": "input_file", "filename": media.name or "document.pdf", "file_data": data}


def from_anthropic(block: dict[str, Any]) -> Media | None:
    """Read an image or document block; None if its source has another shape."""
    source = block.get("source")
    if not isinstance(source, dict):
        return None
    fields = cast("dict[str, Any]", source)
    kind, title = str(block.get("type")), block.get("title")
    name = title if isinstance(title, str) else None
    mime, data = fields.get("media_type"), fields.get("data")
    mime = mime if isinstance(mime, str) else ""
    form = fields.get("type")
    if form == "base64" and isinstance(data, str):
        return Media(kind, mime=mime, data=data, name=name)
    if form == "text" and isinstance(data, str):
        packed = base64.b64encode(data.encode("utf-8", "surrogatepass")).decode("ascii")
        return Media(kind, mime=PLAIN, data=packed, name=name)
    if form == "url" and isinstance(url := fields.get("url"), str):
        return Media(kind, mime=mime, url=url, name=name)
    if form == "file" and isinstance(file_id := fields.get("file_id"), str):
        return Media(kind, mime=mime, url=FILE_ID + file_id, name=name)
    return None


def to_anthropic(media: Media) -> dict[str, Any] | None:
    """Return the block of a user message or a tool result; None if the Messages API has no such block."""
    if media.kind not in {"image", "document"} or (media.url or "").startswith(FILE_ID):
        return None
    source = _anthropic_source(media)
    if source is None:
        return None
    block: dict[str, Any] = {"type": media.kind, "source": source}
    if media.kind == "document" and media.name:
        block["title"] = media.name
    return block


def _anthropic_source(media: Media) -> dict[str, Any] | None:
    if media.data is None:
        return {"type": "url", "url": media.url} if media.url else None
    if not media.data:
        return None
    text = plain_text(media)
    if media.kind == "document" and text is not None:
        return {"type": "text", "media_type": PLAIN, "data": text} if text.strip() else None
    allowed = IMAGE_TYPES if media.kind == "image" else (PDF,)
    if media.mime not in allowed:
        return None
    return {"type": "base64", "media_type": media.mime, "data": media.data}


def from_url(kind: str, url: str) -> Media:
    """Read a URL as media: a base64 data URL as its data and type, any other as it is."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Media(kind, mime=head[len("data:") : -len(";base64")], data=data)
    return Media(kind, url=url)
