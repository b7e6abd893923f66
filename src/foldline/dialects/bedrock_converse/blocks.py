"""Reading and writing of Converse's content blocks, and the form of requests.

Cache points are not parts: they stay in their place. Bytes are stored as described in `blobs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking
from foldline.dialects.bedrock_converse.blobs import base64_of, stored_bytes
from foldline.dialects.bedrock_converse.form import (
    DOCUMENT_LIMIT,
    FORMATS,
    FORMS,
    MEDIA,
    NAME_LIMIT,
    SILENT,
    document_name,
    inner_fields,
    kind_of,
    text_block,
)
from foldline.dialects.blocks import BlockForm
from foldline.dialects.forms import ID_LIMIT
from foldline.dialects.media import PDF, PLAIN, text_document
from foldline.dialects.payload import Fields, fields_of, items_of, json_text, optional_string
from foldline.dialects.values import BEDROCK_CONVERSE, FILE_ID, Losses
from foldline.dialects.writer import Block

# system: a message of newer models; moved to the system prompt when rendered
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
"""MIME types that differ from `kind/format`."""
_DOCUMENT_TEXT = "[See the document.]"  # a message with a document must have a text
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
    shape = "an object with one key"
    in_system = ("text", "cachePoint", "guardContent")
    id_limit = ID_LIMIT
    name_limit = NAME_LIMIT
    alternates = True
    tells_success = True

    def kind(self, block: Block) -> str:
        """Return the key of a block."""
        return kind_of(block)

    def fields_in(self, block: Block) -> Fields:
        """Return the object under the key of a block."""
        return inner_fields(block)

    def build(self, kind: str, fields: Fields) -> Block:
        """Return a block of a kind with these fields."""
        return {kind: fields}

    def text(self, text: str) -> Block:
        """Return a text as a block."""
        return text_block(text)

    def thought(self, text: str, signature: str) -> Fields:
        """Return the fields of a thinking block."""
        return {"reasoningText": {"text": text, "signature": signature}}

    def is_silent(self, block: Any) -> bool:
        """Return whether a block is a cache point."""
        return kind_of(block) == SILENT

    def media(self, media: Media) -> Block | None:
        """Return the block of media in a user message or result; None if the API does not support it."""
        encoding = _FORMATS.get((media.kind, media.mime), media.mime.rpartition("/")[2])
        source: Block | None = None
        if (uri := (media.url or "").removeprefix(FILE_ID)).startswith("s3://"):
            source = {"s3Location": {"uri": uri}}
        elif media.data and (data := stored_bytes(media.data)):
            source = {"bytes": data}
        if source is None or encoding not in FORMATS.get(media.kind, ()):
            return None
        name = {"name": document_name(media.name)} if media.kind == "document" else {}
        return {media.kind: {"format": encoding, **name, "source": source}}

    def other(self, kind: str, block: Block, index: int | None) -> Part | None:
        """Read media, thinking, and blocks with nested texts."""
        del index
        fields = inner_fields(block)
        if kind in MEDIA:
            return media_in(kind, fields)
        if kind == "guardContent" and "image" in fields:
            return media_in("image", fields_of(fields["image"]))
        if kind == "reasoningContent":
            reasoning = fields_of(fields.get("reasoningText"))
            text, signature = reasoning.get("text"), reasoning.get("signature")
            if isinstance(text, str) and isinstance(signature, str | None):
                return Thinking(text, signature or None)
            return Opaque(BEDROCK_CONVERSE, REDACTED, block)
        text = nested_text(kind, fields)
        return None if text is None else Text(text)

    def patched(self, native: Block, old: Part, new: Part | None) -> Block | None:
        """Return a block with its part replaced, other fields as received; None if it is removed."""
        fields = inner_fields(native)
        if isinstance(new, Text) and new != old and "guardContent" in native and "text" in fields:
            text = {**fields["text"], "text": new.text}
            return self.changed(native, {"text": text}) if new.text.strip() else None
        return super().patched(native, old, new)

    def request(self, messages: Sequence[Block], losses: Losses) -> list[Block]:
        """Return messages in the form that a request requires; documents have unique names, and a text."""
        bodies = [
            {**body, "content": self.blocks(body)} if isinstance(body.get("content"), str) else body
            for body in messages
        ]
        bodies = super().request(bodies, losses)
        bodies = super().request([self._without_last_thinking(body, losses) for body in bodies], losses)
        taken: set[str] = set()
        return [self._with_valid_documents(body, taken, losses) for body in bodies]

    def _without_last_thinking(self, message: Block, losses: Losses) -> Block:
        blocks = list(items_of(message.get("content")))
        if message.get("role") != "assistant" or not (dropped := self.drop_last_thinking(blocks)):
            return message
        losses.add("thinking at the end of a turn left out", dropped)
        return {**message, "content": blocks}

    def _with_valid_documents(self, message: Block, taken: set[str], losses: Losses) -> Block:
        content = items_of(message.get("content"))
        blocks = [
            self._with_unique_names(block, taken, losses)
            for before, block in zip([None, *content], content, strict=False)
            if not (self.is_silent(block) and self.is_thought(before))
        ]
        kinds = set(map(kind_of, blocks))
        if "document" in kinds and "text" not in kinds:
            losses.add("a text added to a document")
            blocks.append(self.text(_DOCUMENT_TEXT))
        return message if blocks == content else {**message, "content": blocks}

    def _with_unique_names(self, block: Any, taken: set[str], losses: Losses) -> Any:
        """Return a block whose documents, also in a result, have names that are not `taken`."""
        fields = inner_fields(block)
        if self.is_result(block):
            inner = [self._with_unique_names(item, taken, losses) for item in items_of(fields.get("content"))]
            return block if inner == fields.get("content") else self.changed(block, {"content": inner})
        name = fields.get("name") if kind_of(block) == "document" else None
        if not isinstance(name, str):
            return block
        new, number = name, 2
        while new in taken:
            suffix = f"-{number}"
            new, number = name[: DOCUMENT_LIMIT - len(suffix)] + suffix, number + 1
        taken.add(new)
        losses.add("document names changed", new != name)
        return block if new == name else {**block, "document": {**fields, "name": new}}


def nested_text(kind: str, fields: Fields) -> str | None:
    """Return the nested text of a block; None for other kinds."""
    if kind == "guardContent":
        text = fields_of(fields.get("text")).get("text")
        return text if isinstance(text, str) else None
    if kind == "json":
        return json_text(fields["json"])
    if kind not in ("citationsContent", "searchResult"):
        return None
    texts = [fields_of(part).get("text") for part in items_of(fields.get("content"))]
    head = [fields.get("title"), fields.get("source")] if kind == "searchResult" else []
    return "\n".join(text for text in (*head, *texts) if isinstance(text, str))


def media_in(kind: str, fields: Fields) -> Media | None:
    """Read an image, document, video or audio; None for an invalid source."""
    source, encoding = fields_of(fields.get("source")), fields.get("format")
    mime, name = "", optional_string(fields, "name")
    if isinstance(encoding, str):
        mime = MIMES.get((kind, encoding), f"{'application' if kind == 'document' else kind}/{encoding}")
    if (data := base64_of(source.get("bytes"))) is not None:
        return Media(kind, mime=mime, data=data, name=name)
    if isinstance(uri := fields_of(source.get("s3Location")).get("uri"), str):
        return Media(kind, mime=mime, url=FILE_ID + uri, name=name)
    texts = [fields_of(part).get("text") for part in (source, *items_of(source.get("content")))]
    text = "\n".join(text for text in texts if isinstance(text, str))
    return text_document(kind, text, name) if text else None


def documents(block: Any) -> Iterator[Block]:
    """Yield the fields of the documents in a block, also of those in a result."""
    if kind_of(block) == "document":
        yield inner_fields(block)
    elif kind_of(block) == "toolResult":
        for inner in items_of(inner_fields(block).get("content")):
            yield from documents(inner)


BLOCKS = ConverseBlocks()
