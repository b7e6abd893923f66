"""The tokens of images, documents, sounds and videos, and the labels that replace them."""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from foldline.core.log.messages import Media, Message, ToolResult

PDF: Final = "application/pdf"

# Anthropic: an image takes width x height / 750 tokens and is scaled down to about 1,600. OpenAI's high
# detail takes 765 to 1,105, Gemini 258 a tile: the largest is counted, since too low a count overflows.
IMAGE_TOKENS: Final = 1_600
# Anthropic: a PDF page takes 1,500 to 3,000 tokens, a request holds 600 pages at most. Where pages cannot be
# counted, one is assumed for every 60 KB, up to 100. Source:
# platform.claude.com/docs/en/build-with-claude/pdf-support
PAGE_TOKENS: Final = 2_250
PAGES_MOST: Final = 600
PAGE_BYTES: Final = 60_000
PAGES_BY_SIZE_MOST: Final = 100
# Pages of a document whose size is not known (a URL, a file id).
PAGES_UNKNOWN: Final = 4
# Gemini: sound takes 32 tokens a second, video about 300; at 16 KB and 250 KB a second. Two hours, one hour
# at most.
SOUND_BYTES_A_TOKEN: Final = 500
SOUND_TOKENS_MOST: Final = 230_000
VIDEO_BYTES_A_TOKEN: Final = 830
VIDEO_TOKENS_MOST: Final = 1_080_000

_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z0-9])")
_COUNT: Final = re.compile(rb"/Count\s+(\d{1,9})(?!\d)")
_TREE: Final = re.compile(rb"/Type\s*/Pages(?![A-Za-z0-9])")
_OBJECTS: Final = re.compile(rb"/Type\s*/ObjStm\b.{0,300}?stream\r?\n", re.DOTALL)
PAGE_LEAST: Final = 50  # bytes of the shortest page object: a larger count is not credible
_STREAMS: Final = 400  # object streams that are read
_STREAM_BYTES: Final = 1_000_000  # the most that is unpacked of one stream
_NAME: Final = 80  # characters of a name or URL in a label


def media_tokens(media: Media) -> int:
    """Estimate the tokens of an image, a document, a sound or a video from its kind, pages and size."""
    size = len(media.data) * 3 // 4 if media.data else None
    kind = media.mime.partition("/")[0] if media.mime else media.kind
    if "image" in (kind, media.kind):
        return IMAGE_TOKENS
    if "audio" in (kind, media.kind):
        return min((size or 0) // SOUND_BYTES_A_TOKEN, SOUND_TOKENS_MOST) or IMAGE_TOKENS
    if "video" in (kind, media.kind):
        return min((size or 0) // VIDEO_BYTES_A_TOKEN, VIDEO_TOKENS_MOST) or IMAGE_TOKENS
    if kind == "text" and size is not None:
        return size // 4 + 1
    by_size = PAGES_UNKNOWN if size is None else min(PAGES_BY_SIZE_MOST, size // PAGE_BYTES + 1)
    return (pages(media) or by_size) * PAGE_TOKENS


def pages(media: Media) -> int:
    """Return the number of pages of a PDF, `PAGES_MOST` at most; 0 if unknown."""
    return _pages(media.data) if media.data and media.data.startswith("JVBER") else 0  # "%PDF" in base64


def media_label(media: Media) -> str:
    """Return the label that replaces media: `[image]`, `[PDF, 100 pages: plan.pdf]`."""
    kind = media.kind
    if media.mime == PDF or pages(media):
        count = pages(media)
        kind = f"PDF, {count} page{'' if count == 1 else 's'}" if count else "PDF"
    elif media.kind == "document" and media.mime:
        kind = f"document, {media.mime}"
    url = media.url or ""
    name = media.name or ("" if url.startswith("data:") else url)
    name = " ".join(name.split())
    name = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
    return f"[{kind}: {name}]" if name else f"[{kind}]"


def media_of(message: Message) -> Iterator[Media]:
    """Yield the media of a message in order, including those in its results."""
    for part in message.parts:
        if isinstance(part, Media):
            yield part
        elif isinstance(part, ToolResult):
            yield from (inner for inner in part.content if isinstance(inner, Media))


@lru_cache(maxsize=16)
def _pages(data: str) -> int:
    """Count the pages of a PDF in base64: the page objects, or the count in its page tree.

    A count that is too large for the file is ignored.
    """
    try:
        raw = binascii.a2b_base64(data.encode("ascii"))
    except ValueError:
        return 0
    objects = [raw, *_unpacked(raw)]
    counted = sum(len(_PAGE.findall(text)) for text in objects)
    stated = max((count for text in objects for count in _counts(text)), default=0)
    stated = stated if stated <= sum(map(len, objects)) // PAGE_LEAST else 0
    return min(max(counted, stated), PAGES_MOST)


def _unpacked(raw: bytes) -> Iterator[bytes]:
    """Yield the object streams of a PDF, unpacked up to a limit each."""
    for found, _ in zip(_OBJECTS.finditer(raw), range(_STREAMS), strict=False):
        try:
            yield zlib.decompressobj().decompress(raw[found.end() :], _STREAM_BYTES)
        except zlib.error:
            continue


def _counts(text: bytes) -> Iterator[int]:
    """Yield the counts of page trees in a text; other counts are further from the tree mark."""
    for tree in _TREE.finditer(text):
        start = max(text.rfind(b"obj", 0, tree.start()), tree.start() - 20_000, 0)
        end = text.find(b"endobj", tree.end(), tree.end() + 20_000)
        count = _COUNT.search(text, start, end if end >= 0 else tree.end() + 400)
        if count:
            yield int(count[1])
