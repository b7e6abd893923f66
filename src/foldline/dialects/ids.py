"""Call ids for another dialect: valid and unique there, and the same for a call and its result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def shorten(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters; a shortened one ends in a hash, so that two never collide."""
    return text if len(text) <= limit else _hashed(text, limit, text)


def _hashed(text: str, limit: int, of: str) -> str:
    digest = hashlib.blake2s(of.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{text[: limit - 9]}_{digest}"


def safe_name(text: str, limit: int, empty: str) -> str:
    """Make a name of letters, digits, `_` and `-`, at most `limit` long; `empty` if nothing is left."""
    return shorten(_FOREIGN.sub("_", text), limit) or empty


def safe_id(text: str, limit: int) -> str:
    """Make an id of these characters; one that changes ends in a hash, so that two never become one."""
    safe = _FOREIGN.sub("_", text)
    return text if safe == text and len(text) <= limit else _hashed(safe, limit, text)


def made_id(salt: str) -> str:
    """Return an id for a call that has none; the same for the same salt."""
    return f"call_{hashlib.blake2s(salt.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


class Ids:
    """Rename call ids as messages are encoded in order; a new id depends on earlier messages only.

    No new id may be one of `taken` (the ids of messages kept as received).
    `everywhere` True: ids are unique in the whole list (Anthropic); False: in each batch (OpenAI).
    """

    def __init__(self, *, limit: int, everywhere: bool, any_text: bool, taken: Iterable[str] = ()) -> None:
        self._limit = limit
        self._everywhere = everywhere
        self._any_text = any_text
        self._taken: set[str] = set(taken)
        self._next: dict[str, int] = {}
        self._names: dict[str, list[str]] = {}
        self._batch: set[str] = set()
        self.renamed = 0

    def batch(self) -> None:
        """Start a new batch of calls."""
        self._batch = set()
        if not self._everywhere:
            self._taken.clear()
            self._next = {}

    def keep(self, old: str) -> None:
        """Note a call that keeps its id; results of either dialect may answer it."""
        self._names[old] = [old]
        self._taken.add(old)

    def call(self, old: str) -> str:
        """Return the id of a call in the new dialect."""
        new = self._free(self._clean(old))
        self._taken.add(new)
        self.renamed += new != old
        if old in self._batch:
            self._names[old].append(new)
        else:
            self._names[old] = [new]
            self._batch.add(old)
        return new

    def result(self, old: str) -> str:
        """Return the id of the call that a result answers; calls that share an id are answered in order."""
        names = self._names.get(old)
        if names is None:
            return self._clean(old)
        return names.pop(0) if len(names) > 1 else names[0]

    def _clean(self, old: str) -> str:
        if self._any_text:
            return shorten(old, self._limit) or "call"
        return safe_name(old, self._limit, "call")

    def _free(self, base: str) -> str:
        new, number = base, self._next.get(base, 2)
        while new in self._taken:
            end = f"_{number}"
            new = base[: self._limit - len(end)] + end
            number += 1
        self._next[base] = number
        return new
