"""Exact token counts with OpenAI's vocabularies, when the extra `tokens` is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from foldline.core.measure.tokens import Counter
from foldline.errors import InputError


class _Exact:
    """Count with a vocabulary. Lone surrogates, which tokenizers refuse, count as replacement characters."""

    def __init__(self, name: str, batch_count: Callable[..., list[int]]) -> None:
        self.name = name
        self._batch_count = batch_count

    def count(self, text: str) -> int:
        """Return the tokens in `text`; text that looks like a special token counts as text."""
        if not text:
            return 0
        try:
            return self._batch_count([text], self.name, 1)[0]
        except UnicodeEncodeError:
            valid = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
            return self._batch_count([valid], self.name, 1)[0]


def exact(encoding: str = "o200k_base") -> Counter:
    """Return a counter with a real vocabulary: o200k_base (GPT-4o and later) or cl100k_base (GPT-4).

    Needs the extra `tokens`; nothing is downloaded. Raises InputError if it is not installed or does not have
    the vocabulary.
    """
    try:
        toktok = cast("Any", import_module("toktok"))
    except ImportError as error:
        raise InputError("exact token counts need an extra: pip install 'foldline[tokens]'") from error
    counter = _Exact(encoding, toktok.batch_count)
    try:
        counter.count("a")
    except KeyError as error:
        raise InputError(f"no such vocabulary: {error.args[0]}") from error
    return counter
