"""The searchable text of an entry, and the meaning of a query, in which no character is special."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from foldline.core.cut.notes import is_recall
from foldline.core.log.entries import Compacted, Entry, Said
from foldline.core.log.messages import Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.opaque import opened
from foldline.core.log.opaque import words as words_in
from foldline.errors import StoreCorrupt
from foldline.stores.base import Hit
from foldline.stores.rows import unpack

# Scripts written without spaces: the index takes each character as a word.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{1024,}")
_CONTEXT = 80  # characters on either side of a match
_MATCHES = 50  # matches of one word that are considered for a snippet
WORDS = 40  # different words of a query that partial hits may have


def searched_as(entry: Entry) -> str:
    """Return the role of an entry in hits: that of the message, or `summary` for a summary of another agent.

    "" for an entry that is not searched, such as our own summaries: the messages they summarise are searched.
    """
    if isinstance(entry, Said):
        return entry.message.role
    return "summary" if isinstance(entry, Compacted) and entry.receipt.reason == "imported" else ""


def searchable(entry: Entry) -> str:
    """Return the text of an entry that a search covers: texts, thinking, calls and results, no media.

    "" for an entry that is not searched, such as recall's own messages: they would be found before the ones
    that they quote. Runs of 1,024 and more base64 characters are left out. A change of this function needs a
    migration that empties the index, since a purge removes from it what this function returns.
    """
    if isinstance(entry, Said):
        text = "" if is_recall(entry.message) else "\n".join(_texts(entry.message))
    else:
        text = entry.checkpoint.summary if isinstance(entry, Compacted) and searched_as(entry) else ""
    return _BASE64.sub(" ", text)


def readable(payload: bytes) -> Entry | None:
    """Return a stored entry; None if it is damaged, so that a search goes on to the others."""
    try:
        return unpack(payload)
    except StoreCorrupt:
        return None


def stored_text(payload: bytes) -> str:
    """Return the searchable text of a stored entry; "" if it is damaged."""
    entry = readable(payload)
    return searchable(entry) if entry is not None else ""


def indexed(text: str) -> str:
    """Return a text as the index stores it: valid Unicode, unspaced scripts split into characters."""
    clean = text.encode("utf-8", "replace").decode().replace("\0", " ")
    return clean if clean.isascii() else _UNSPACED.sub(r" \1 ", clean)


def words(query: str) -> list[str]:
    """Return the words of a query, split at whitespace."""
    return query.split()


def unique_words(query: str) -> list[str]:
    """Return the words of a query that an index can find, each once, at most `WORDS` of them."""
    found = {tuple(parts): word for word in words(query) if (parts := terms(word))}
    return list(found.values())[:WORDS]


def contains(text: str, query: str) -> bool:
    """Return whether the text contains every word of the query, ignoring case."""
    folded = text.casefold()
    return all(word.casefold() in folded for word in words(query))


def byte_patterns(query: str) -> list[re.Pattern[bytes]]:
    """Return patterns that all match the bytes of a payload if its text contains the query's words.

    They may match others too: words that are not ASCII have no pattern.
    """
    ascii_words = [word for word in words(query) if word.isascii()]
    return [re.compile(re.escape(word.encode()), re.IGNORECASE) for word in ascii_words]


def has_words(text: str, query: str, *, whole: bool = False) -> bool:
    """Return whether every word of the query is the beginning of a word in the text, or a `whole` word.

    Words are those of the index.
    """
    line, end = f" {' '.join(terms(text))} ", " " if whole else ""
    phrases = [" ".join(terms(word)) for word in words(query)]
    return all(phrases) and all(f" {phrase}{end}" in line for phrase in phrases)


def ranked(texts: Sequence[str], query: str) -> list[int]:
    """Return the indices of the texts that contain any word of the query, the best first.

    Source of the score: BM25 (Robertson and Zaragoza, 2009), with the constants of SQLite's FTS5.
    """
    phrases = [f" {' '.join(terms(word))} " for word in unique_words(query)]
    lines = [f" {' '.join(terms(text))} " for text in texts]
    counts = [[line.count(phrase) for phrase in phrases] for line in lines]
    found_in = [sum(map(bool, column)) for column in zip(*counts, strict=True)]
    weights = [max(math.log((len(lines) - n + 0.5) / (n + 0.5)), 1e-6) for n in found_in]
    mean = sum(map(len, lines)) / len(lines) if lines else 1.0

    def score(index: int) -> float:
        dampened = 1.2 * (0.25 + 0.75 * len(lines[index]) / mean)
        return sum(
            weight * n * 2.2 / (n + dampened) for weight, n in zip(weights, counts[index], strict=True)
        )

    return sorted((index for index, row in enumerate(counts) if any(row)), key=lambda index: -score(index))


def snippet(text: str, query: str) -> str:
    """Return the text around the match with the most other words of the query near it, on one line."""
    center = _center(text, query)
    start, end = max(0, center - _CONTEXT), min(len(text), center + _CONTEXT)
    middle = " ".join(text[start:end].split())
    return ("… " if start else "") + middle + (" …" if end < len(text) else "")


def _center(text: str, query: str) -> int:
    """Return the middle of the range with the most words of the query; 0 if none is found."""
    folded = text.casefold() if len(text.casefold()) == len(text) else text
    parts = [word.casefold() for word in words(query)]
    parts += [term for word in parts for term in terms(word)]
    matches = sorted(
        (found.start(), number)
        for number, part in enumerate(dict.fromkeys(parts))
        for found in itertools.islice(re.finditer(re.escape(part), folded), _MATCHES)
        if not (part[0].isalnum() and found.start() and folded[found.start() - 1].isalnum())
    )
    if not matches:
        return min((start for part in parts if (start := folded.find(part)) >= 0), default=0)

    def near(index: int) -> list[tuple[int, int]]:
        following = matches[index : index + _MATCHES]
        return [match for match in following if match[0] - matches[index][0] < _CONTEXT]

    best = max(range(len(matches)), key=lambda index: len({number for _, number in near(index)}))
    return (matches[best][0] + near(best)[-1][0]) // 2


def hit(session: str, seq: int, entry: Entry, query: str, *, partial: bool = False) -> Hit:
    """Return the hit for an entry that has the words of the query, or some of them (`partial`)."""
    text = snippet(searchable(entry), query)
    return Hit(session, entry.id, seq, searched_as(entry), text, entry.at, partial)


def terms(text: str) -> list[str]:
    """Return the words of a text as an index stores them: without case, punctuation and most accents."""
    return re.findall(r"[^\W_]+", _without_accents(indexed(text)))


def _without_accents(text: str) -> str:
    """Return a text in lower case and without most accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def _texts(message: Message) -> Iterator[str]:
    for part in opened(message).parts:
        if isinstance(part, Text | Thinking | ToolResult):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.name
            yield from _leaves(part.arguments)
        elif isinstance(part, Opaque):
            yield words_in(part)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
