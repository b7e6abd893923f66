"""The searched text of a message, and how a query is read. No character of a query has a special meaning."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.opaque import opened
from foldline.core.log.opaque import words as words_in
from foldline.stores.base import Hit

# Scripts written without spaces: each character is a word of its own in the index.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{1024,}")
_AROUND = 80  # characters of context on either side of a match


def searchable(message: Message) -> str:
    """Return the text of a message that a search covers: texts, thinking, calls and results, no media.

    Runs of 1,024 and more base64 characters are left out. Changing what this returns needs a migration that
    empties the index: a purge removes from the index what this returned when the message was indexed.
    """
    return _BASE64.sub(" ", "\n".join(_texts(message)))


def indexed(text: str) -> str:
    """Return a text as the index stores it: valid Unicode, unspaced scripts split into characters."""
    clean = text.encode("utf-8", "replace").decode().replace("\0", " ")
    return clean if clean.isascii() else _UNSPACED.sub(r" \1 ", clean)


def words(query: str) -> list[str]:
    """Return the words of a query, split at whitespace."""
    return query.split()


def expression(query: str) -> str | None:
    """Return the FTS5 expression for a query: every word a phrase whose last term is a prefix.

    None if a word has no letter or digit, which an index of words cannot answer. Source of the quoting
    rule: https://www.sqlite.org/fts5.html#full_text_query_syntax.
    """
    asked = [indexed(word) for word in words(query)]
    if not asked or not all(any(ch.isalnum() for ch in word) for word in asked):
        return None
    return " AND ".join('"' + word.replace('"', '""') + '"*' for word in asked)


def holds(text: str, query: str) -> bool:
    """Return whether the text contains every word of the query, ignoring case."""
    folded = text.casefold()
    return all(word.casefold() in folded for word in words(query))


def rough_patterns(query: str) -> list[re.Pattern[bytes]]:
    """Return patterns that the bytes of a payload must all match, if its text holds the query's words."""
    asked = [word for word in words(query) if word.isascii()]
    return [re.compile(re.escape(word.encode()), re.IGNORECASE) for word in asked]


def begins(text: str, query: str) -> bool:
    """Return whether every word of the query begins a word of the text, as the index sees words."""
    line = " " + " ".join(terms(text))
    asked = [terms(word) for word in words(query)]
    return all(asked) and all(" " + " ".join(word) in line for word in asked)


def snippet(text: str, query: str) -> str:
    """Return the text around the first match, on one line."""
    folded = text.casefold() if len(text.casefold()) == len(text) else text
    found = [at for word in words(query) if (at := folded.find(word.casefold())) >= 0]
    if not found:
        parts = [term for word in words(query) for term in terms(word)]
        found = [at for term in parts if (at := folded.find(term)) >= 0]
    at = min(found, default=0)
    start, end = max(0, at - _AROUND), min(len(text), at + _AROUND)
    middle = " ".join(text[start:end].split())
    return ("… " if start else "") + middle + (" …" if end < len(text) else "")


def hit(session: str, seq: int, entry: Said, query: str) -> Hit:
    """Return the hit for a message that matches the query."""
    around = snippet(searchable(entry.message), query)
    return Hit(session, entry.id, seq, entry.message.role, around, entry.at)


def said_text(entry: Any) -> str:
    """Return the searched text of an entry: "" for all but messages."""
    return searchable(entry.message) if isinstance(entry, Said) else ""


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
