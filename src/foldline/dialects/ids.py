"""Call ids and tool names that another dialect accepts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def shorten(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters; the end is replaced by a hash, so that results differ."""
    return text if len(text) <= limit else _with_hash(text, limit, text)


def _with_hash(text: str, limit: int, hashed: str) -> str:
    digest = hashlib.blake2s(hashed.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{text[: limit - 9]}_{digest}"


def safe_name(text: str, limit: int, empty: str) -> str:
    """Return a name of letters, digits, `_` and `-`, at most `limit` long; `empty` for an empty one."""
    return shorten(_FOREIGN.sub("_", text), limit) or empty


def safe_id(text: str, limit: int) -> str:
    """Return an id of these characters; a changed one ends in a hash, so that ids stay distinct."""
    safe = _FOREIGN.sub("_", text)
    return text if safe == text and len(text) <= limit else _with_hash(safe, limit, text)


def made_id(salt: str) -> str:
    """Return an id for a call without one, derived from `salt`."""
    return f"call_{hashlib.blake2s(salt.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


class Ids:
    """Rename call ids while messages are encoded in order; a new id depends only on earlier messages.

    `limit`: maximum length. `everywhere`: ids are unique in the list (Anthropic), not only in a batch of
    calls (OpenAI). `any_text`: any characters are allowed. `taken`: ids of messages written as received.
    """

    def __init__(self, *, limit: int, everywhere: bool, any_text: bool, taken: Iterable[str] = ()) -> None:
        self._limit = limit
        self._everywhere = everywhere
        self._any_text = any_text
        self._taken: set[str] = set(taken)
        self._suffixes: dict[str, int] = {}
        self._new_ids: dict[str, list[str]] = {}
        self._batch: set[str] = set()
        self.renamed = 0

    def batch(self) -> None:
        """Start a new batch of calls: one assistant message."""
        self._batch = set()
        if not self._everywhere:
            self._taken.clear()
            self._suffixes = {}

    def keep(self, old: str) -> None:
        """Record a call that keeps its id."""
        self._new_ids[old] = [old]
        self._taken.add(old)

    def call(self, old: str) -> str:
        """Return the id of a call in the new dialect."""
        new = self._unused(self._safe(old))
        self._taken.add(new)
        self.renamed += new != old
        if old in self._batch:
            self._new_ids[old].append(new)
        else:
            self._new_ids[old] = [new]
            self._batch.add(old)
        return new

    def result(self, old: str) -> str:
        """Return the new id for a result; calls that share an old id are answered in order."""
        names = self._new_ids.get(old)
        if names is None:
            return self._safe(old)
        return names.pop(0) if len(names) > 1 else names[0]

    def _safe(self, old: str) -> str:
        if self._any_text:
            return shorten(old, self._limit) or "call"
        return safe_name(old, self._limit, "call")

    def _unused(self, base: str) -> str:
        new, number = base, self._suffixes.get(base, 2)
        while new in self._taken:
            suffix = f"_{number}"
            new = base[: self._limit - len(suffix)] + suffix
            number += 1
        self._suffixes[base] = number
        return new
