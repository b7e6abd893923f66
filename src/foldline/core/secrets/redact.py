"""Secrets out of everything that a summariser reads and everything that a checkpoint stores.

Four kinds of rule, each linear in the text, read what stands there and what it says once it is decoded
(`decoded`):

1. shapes: tokens that say by their form what they are (a vendor's prefix, a JWT);
2. keys: blocks of several lines, whole or clipped;
3. places: the password of a URL, an Authorization header, a cookie, an argument of a command;
4. names: what stands after `password`, `secret`, `token`, `api_key` ..., if it is a value.

Bare hashes, UUIDs and base64 match none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from foldline.core.log.codec import text_in_utf8
from foldline.core.secrets.commands import commanded
from foldline.core.secrets.decoded import DecodedText, encoded
from foldline.core.secrets.named import named
from foldline.core.secrets.places import placed
from foldline.core.secrets.plain import MARK
from foldline.core.secrets.shapes import blocks, shaped
from foldline.core.secrets.span import SecretSpan, joined

_RULES: tuple[Callable[[str], Iterator[SecretSpan]], ...] = (shaped, blocks, placed, commanded, named)
_SEPARATOR = re.compile(r"[\s=:\"',>]")  # every rule but that of shapes needs one: a path holds none
_PASSES = 3  # times that a text is looked at again because something went: borders have moved
_READS = 3  # times that a text is decoded: what was spelled may spell something, as JSON in JSON does
SHORTEST = 6  # characters of a text below which it holds no secret
_PIECE = 4_000_000  # characters that are looked at in one go: a search of more would hold up other threads
_OVERLAP = 100_000  # of them, those that the piece before has as well: no secret is as long


def redact(text: str) -> str:
    """Replace every secret in `text` by `[redacted: kind]`, and each lone surrogate by U+FFFD.

    Linear in the text; redacting twice changes nothing. Text without a secret is returned as it is.
    """
    text = text_in_utf8(text)
    for _ in range(_PASSES):
        spans = find(text)
        if not spans:
            break
        text = without(text, spans)
    return text


def find(text: str) -> list[SecretSpan]:
    """Return the secrets of a text as spans, in order; none overlap."""
    if len(text) < SHORTEST:
        return []
    reads = [DecodedText(text)]
    while reads[-1].changed and len(reads) < _READS:
        reads.append(DecodedText(reads[-1].text))
    text = reads[-1].text
    spans: Iterable[SecretSpan] = [
        SecretSpan(span.start + start, span.end + start, span.kind, span.said)
        for start, end in _pieces(text)
        for span in (*_spans(text[start:end]), *_in_base64(text[start:end]))
    ]
    for read in reversed(reads):
        spans = map(read.original, spans)
    return joined(spans)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the pieces of a text, each from the beginning of a line where there is one."""
    start = 0
    while start + _PIECE < len(text):
        end = start + _PIECE
        yield start, end
        start = text.rfind("\n", end - 2 * _OVERLAP, end - _OVERLAP) + 1 or end - _OVERLAP
    yield start, len(text)


def _spans(text: str) -> Iterator[SecretSpan]:
    """Yield what the rules find in a text."""
    for rule in _RULES if _SEPARATOR.search(text) else (shaped,):
        yield from rule(text)


def _in_base64(text: str) -> Iterator[SecretSpan]:
    """Yield what is base64 of a text that holds a secret, whole; base64 in base64 is not looked into."""
    for start, end, meant in encoded(text):
        if spans := joined(_spans(meant)):
            said = tuple(meant[span.start : span.end] for span in spans)
            yield SecretSpan(start, end, spans[0].kind, said)


def without(text: str, spans: Sequence[SecretSpan]) -> str:
    """Return a text with marks in the place of spans, which are in order and do not overlap."""
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += [text[done : span.start], f"{MARK}{span.kind}]"]
        done = span.end
    return "".join([*pieces, text[done:]])
