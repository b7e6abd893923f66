"""Call ids for another dialect: made valid and unique there, the same for a call and its result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def shortened(text: str, limit: int) -> str:
    """A text of at most `limit` characters; a longer one ends in a hash, so that two do not become one."""
    if len(text) <= limit:
        return text
    digest = hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{text[: limit - 9]}_{digest}"


def safe(text: str, limit: int, empty: str) -> str:
    """A text of letters, digits, `_` and `-` alone, at most `limit` long; `empty` where nothing is left."""
    return shortened(_FOREIGN.sub("_", text), limit) or empty


class Ids:
    """Renames call ids as messages are encoded in order; what was renamed depends on earlier messages only.

    `taken` are ids that no new name may use (those of the messages which are kept as received).
    `everywhere` True: unique in the whole list (Anthropic); False: in each batch (OpenAI).
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
        """Note a call that stays as it is; results of either dialect may answer it."""
        self._names[old] = [old]
        self._taken.add(old)

    def call(self, old: str) -> str:
        """The id of a call in the new dialect."""
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
        """The id of the call that a result answers; results of calls that share an id answer them in order."""
        names = self._names.get(old)
        if names is None:
            return self._clean(old)
        return names.pop(0) if len(names) > 1 else names[0]

    def _clean(self, old: str) -> str:
        if self._any_text:
            return shortened(old, self._limit) or "call"
        return safe(old, self._limit, "call")

    def _free(self, base: str) -> str:
        new, number = base, self._next.get(base, 2)
        while new in self._taken:
            end = f"_{number}"
            new = base[: self._limit - len(end)] + end
            number += 1
        self._next[base] = number
        return new
