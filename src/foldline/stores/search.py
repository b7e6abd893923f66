"""The searched text of an entry, and how a query is read. No character of a query has a special meaning."""

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

# Scripts written without spaces: each character is a word of its own in the index.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{1024,}")
_AROUND = 80  # characters of context on either side of a match
_PLACES = 50  # matches of one word that are looked at for a snippet
WORDS = 40  # different words of a query, any of which may be looked for


def searched_as(entry: Entry) -> str:
    """Return the role under which a search finds an entry: a message's own, `summary` for another agent's.

    "" for what is not searched; our own summaries are not, since the messages that they tell of are.
    """
    if isinstance(entry, Said):
        return entry.message.role
    return "summary" if isinstance(entry, Compacted) and entry.receipt.reason == "imported" else ""


def searchable(entry: Entry) -> str:
    """Return the text of an entry that a search covers: texts, thinking, calls and results, no media.

    "" for what is not searched: recall's own messages, say, which would be found before what they quote.
    Runs of 1,024 and more base64 characters are left out. Changing what this returns needs a migration that
    empties the index: a purge removes from the index what this returned when the entry was indexed.
    """
    if isinstance(entry, Said):
        text = "" if is_recall(entry.message) else "\n".join(_texts(entry.message))
    else:
        text = entry.checkpoint.summary if isinstance(entry, Compacted) and searched_as(entry) else ""
    return _BASE64.sub(" ", text)


def readable(payload: bytes) -> Entry | None:
    """Return a stored entry; None where it is damaged, which is no reason to find nothing else."""
    try:
        return unpack(payload)
    except StoreCorrupt:
        return None


def stored_text(payload: bytes) -> str:
    """Return the searched text of a stored entry; "" for one that cannot be read."""
    entry = readable(payload)
    return searchable(entry) if entry is not None else ""


def indexed(text: str) -> str:
    """Return a text as the index stores it: valid Unicode, unspaced scripts split into characters."""
    clean = text.encode("utf-8", "replace").decode().replace("\0", " ")
    return clean if clean.isascii() else _UNSPACED.sub(r" \1 ", clean)


def words(query: str) -> list[str]:
    """Return the words of a query, split at whitespace."""
    return query.split()


def expression(query: str, *, whole: bool) -> str | None:
    """Return the FTS5 expression for a query: every word a phrase, its last term a prefix unless `whole`.

    None if a word has no letter or digit, which an index of words cannot answer. Source of the quoting
    rule: https://www.sqlite.org/fts5.html#full_text_query_syntax.
    """
    asked = [indexed(word) for word in words(query)]
    if not asked or not all(any(ch.isalnum() for ch in word) for word in asked):
        return None
    return " AND ".join(_phrase(word) + ("" if whole else "*") for word in asked)


def some_expression(query: str) -> str | None:
    """Return the FTS5 expression for messages with any word of a query; None for a query of one word."""
    asked = different_words(query)
    return " OR ".join(_phrase(indexed(word)) for word in asked) if len(asked) > 1 else None


def different_words(query: str) -> list[str]:
    """Return the words of a query that an index can look for, each once, `WORDS` of them at most."""
    found = {tuple(parts): word for word in words(query) if (parts := terms(word))}
    return list(found.values())[:WORDS]


def _phrase(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def holds(text: str, query: str) -> bool:
    """Return whether the text contains every word of the query, ignoring case."""
    folded = text.casefold()
    return all(word.casefold() in folded for word in words(query))


def rough_patterns(query: str) -> list[re.Pattern[bytes]]:
    """Return patterns that the bytes of a payload must all match, if its text holds the query's words."""
    asked = [word for word in words(query) if word.isascii()]
    return [re.compile(re.escape(word.encode()), re.IGNORECASE) for word in asked]


def begins(text: str, query: str, *, whole: bool = False) -> bool:
    """Return whether every word of the query begins a word of the text, or with `whole` is one.

    Words are those of the index.
    """
    line, end = f" {' '.join(terms(text))} ", " " if whole else ""
    asked = [terms(word) for word in words(query)]
    return all(asked) and all(f" {' '.join(word)}{end}" in line for word in asked)


def ranked(texts: Sequence[str], query: str) -> list[int]:
    """Return the places of the texts that hold any word of the query, the best first.

    Source of the score: BM25 (Robertson and Zaragoza, 2009), with the constants of SQLite's FTS5.
    """
    asked = [f" {' '.join(terms(word))} " for word in different_words(query)]
    lines = [f" {' '.join(terms(text))} " for text in texts]
    counts = [[line.count(word) for word in asked] for line in lines]
    held = [sum(1 for row in counts if row[at]) for at in range(len(asked))]
    rare = [max(math.log((len(lines) - n + 0.5) / (n + 0.5)), 1e-6) for n in held]
    mean = sum(map(len, lines)) / len(lines) if lines else 1.0

    def score(place: int) -> float:
        dampened = 1.2 * (0.25 + 0.75 * len(lines[place]) / mean)
        return sum(weight * n * 2.2 / (n + dampened) for weight, n in zip(rare, counts[place], strict=True))

    return sorted((place for place, row in enumerate(counts) if any(row)), key=lambda place: -score(place))


def snippet(text: str, query: str) -> str:
    """Return the text around the match that has the most words of the query beside it, on one line."""
    at = _densest(text, query)
    start, end = max(0, at - _AROUND), min(len(text), at + _AROUND)
    middle = " ".join(text[start:end].split())
    return ("… " if start else "") + middle + (" …" if end < len(text) else "")


def _densest(text: str, query: str) -> int:
    """Return the middle of where the most words of the query stand together; 0 where none is found."""
    folded = text.casefold() if len(text.casefold()) == len(text) else text
    asked = [word.casefold() for word in words(query)]
    asked += [term for word in asked for term in terms(word)]
    places = sorted(
        (found.start(), number)
        for number, word in enumerate(dict.fromkeys(asked))
        for found in itertools.islice(re.finditer(re.escape(word), folded), _PLACES)
        if not (word[0].isalnum() and found.start() and folded[found.start() - 1].isalnum())
    )
    if not places:
        return min((at for word in asked if (at := folded.find(word)) >= 0), default=0)

    def near(index: int) -> list[tuple[int, int]]:
        ahead = places[index : index + _PLACES]
        return [place for place in ahead if place[0] - places[index][0] < _AROUND]

    best = max(range(len(places)), key=lambda index: len({number for _, number in near(index)}))
    return (places[best][0] + near(best)[-1][0]) // 2


def hit(session: str, seq: int, entry: Entry, query: str, *, partial: bool = False) -> Hit:
    """Return the hit for an entry that matches the query, or has some of its words (`partial`)."""
    around = snippet(searchable(entry), query)
    return Hit(session, entry.id, seq, searched_as(entry), around, entry.at, partial)


def terms(text: str) -> list[str]:
    """Return the words of a text as an index holds them: without case, punctuation and most accents."""
    return re.findall(r"[^\W_]+", _plain(indexed(text)))


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))


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
