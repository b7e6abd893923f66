"""Converse's content blocks, told apart by their key: read as parts, and written; what a request refuses.

Cache points are not parts: they stay where they were. Bytes are kept as `blobs.py` says.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any, Final

from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking
from foldline.dialects.bedrock_converse.blobs import base64_of, kept
from foldline.dialects.bedrock_converse.form import (
    DOCUMENT_LIMIT,
    FORMATS,
    FORMS,
    MEDIA,
    NAME_LIMIT,
    SILENT,
    document_name,
    held_in,
    kind_of,
    text_block,
)
from foldline.dialects.blocks import BlockForm
from foldline.dialects.forms import ID_LIMIT
from foldline.dialects.media import PDF, PLAIN
from foldline.dialects.payload import Fields, fields_of, items_of, json_text
from foldline.dialects.values import BEDROCK_CONVERSE, FILE_ID, Losses
from foldline.dialects.writer import Block

# system: newer models take it among the messages; it moves to the system prompt when it is sent
ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}
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
BESIDE_DOCUMENT = "[See the document.]"  # a message with a document must have a text
_FORMATS = {(kind, mime): form for (kind, form), mime in MIMES.items()} | {("audio", "audio/mp3"): "mp3"}


class ConverseBlocks(BlockForm):
    """The blocks of the Converse API."""

    dialect = BEDROCK_CONVERSE
    roles = ROLES
    forms = FORMS
    call = ("toolUse", "toolUseId")
    result = ("toolResult", "toolUseId")
    thoughts = ("reasoningContent",)
    failed = ("status", "error", "success")
    shape = "an object of one key"
    in_system = ("text", "cachePoint", "guardContent")
    id_limit = ID_LIMIT
    name_limit = NAME_LIMIT
    alternates = True
    tells_success = True

    def kind(self, block: Block) -> str:
        """Return the key of a block."""
        return kind_of(block)

    def held(self, block: Block) -> Fields:
        """Return what a block holds under its key."""
        return held_in(block)

    def made(self, kind: str, fields: Fields) -> Block:
        """Return a block of a kind with these fields."""
        return {kind: fields}

    def text(self, text: str) -> Block:
        """Return a text as a block."""
        return text_block(text)

    def thought(self, text: str, signature: str) -> Fields:
        """Return the fields of thinking."""
        return {"reasoningText": {"text": text, "signature": signature}}

    def is_silent(self, block: Any) -> bool:
        """Return whether a block is a cache point."""
        return kind_of(block) == SILENT

    def media(self, media: Media) -> Block | None:
        """Return the block of a user message or a result; None if the API has no such block."""
        form = _FORMATS.get((media.kind, media.mime), media.mime.rpartition("/")[2])
        source: Block | None = None
        if (place := (media.url or "").removeprefix(FILE_ID)).startswith("s3://"):
            source = {"s3Location": {"uri": place}}
        elif media.data and (data := kept(media.data)):
            source = {"bytes": data}
        if source is None or form not in FORMATS.get(media.kind, ()):
            return None
        named = {"name": document_name(media.name)} if media.kind == "document" else {}
        return {media.kind: {"format": form, **named, "source": source}}

    def other(self, kind: str, block: Block, index: int | None) -> Part | None:
        """Read media, thinking, and blocks with text nested inside them."""
        del index
        held = held_in(block)
        if kind in MEDIA:
            return media_in(kind, held)
        if kind == "guardContent" and "image" in held:
            return media_in("image", fields_of(held["image"]))
        if kind == "reasoningContent":
            told = fields_of(held.get("reasoningText"))
            text, signature = told.get("text"), told.get("signature")
            if isinstance(text, str) and isinstance(signature, str | None):
                return Thinking(text, signature or None)
            return Opaque(BEDROCK_CONVERSE, REDACTED, block)
        words = words_in(kind, held)
        return None if words is None else Text(words)

    def patched(self, native: Block, old: Part, new: Part | None) -> Block | None:
        """Return a block with its part replaced, other fields as received; None removes it."""
        held = held_in(native)
        if isinstance(new, Text) and new != old and "guardContent" in native and "text" in held:
            text = {**held["text"], "text": new.text}
            return self.changed(native, {"text": text}) if new.text.strip() else None
        return super().patched(native, old, new)

    def request(self, messages: Sequence[Block], losses: Losses) -> list[Block]:
        """Return messages as a request takes them, each document with a text and a name of its own."""
        listed = [
            {**one, "content": self.blocks(one)} if isinstance(one.get("content"), str) else one
            for one in messages
        ]
        found = super().request(listed, losses)
        found = super().request([self._ended(message, losses) for message in found], losses)
        taken: set[str] = set()
        return [self._documented(message, taken, losses) for message in found]

    def _ended(self, message: Block, losses: Losses) -> Block:
        """Return a message that does not end in thinking, if it is the assistant's."""
        blocks = list(items_of(message.get("content")))
        if message.get("role") != "assistant" or not (dropped := self.drop_last_thinking(blocks)):
            return message
        losses.add("thinking at the end of a turn left out", dropped)
        return {**message, "content": blocks}

    def _documented(self, message: Block, taken: set[str], losses: Losses) -> Block:
        given = items_of(message.get("content"))
        after = [None, *given]
        blocks = [
            self._named(block, taken, losses)
            for before, block in zip(after, given, strict=False)
            if not (self.is_silent(block) and self.is_thought(before))
        ]
        kinds = set(map(kind_of, blocks))
        if "document" in kinds and "text" not in kinds:
            losses.add("a text added beside a document")
            blocks.append(self.text(BESIDE_DOCUMENT))
        return message if blocks == given else {**message, "content": blocks}

    def _named(self, block: Any, taken: set[str], losses: Losses) -> Any:
        """Return a block whose documents have names that are not `taken`, in a result as well."""
        held = held_in(block)
        if self.is_result(block):
            inner = [self._named(one, taken, losses) for one in items_of(held.get("content"))]
            return block if inner == held.get("content") else self.changed(block, {"content": inner})
        name = held.get("name") if kind_of(block) == "document" else None
        if not isinstance(name, str):
            return block
        own, number = name, 2
        while own in taken:
            end = f"-{number}"
            own, number = name[: DOCUMENT_LIMIT - len(end)] + end, number + 1
        taken.add(own)
        losses.add("document names changed", own != name)
        return block if own == name else {**block, "document": {**held, "name": own}}


def words_in(kind: str, held: Fields) -> str | None:
    """Return the text nested inside a block; None for any other block."""
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


def documents(block: Any) -> Iterator[Block]:
    """Yield what the documents of a block hold, those in a result included."""
    if kind_of(block) == "document":
        yield held_in(block)
    elif kind_of(block) == "toolResult":
        yield from (one for inner in items_of(held_in(block).get("content")) for one in documents(inner))


BLOCKS = ConverseBlocks()
