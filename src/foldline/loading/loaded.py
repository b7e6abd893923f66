"""What loading gives: entries in path order, and what is known of where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.core.log.entries import Entry


class Loaded(msgspec.Struct):
    """Entries in path order, and where each message came from; `given` is the list that they were read from.

    `index` maps an entry id to its place in the input (0-based among the messages); `orphans` are results
    left out because nothing called for them: (index, call id). `repaired` says that the order changed.
    Of our own form, `log` has every branch in the order of appending, and `session` is the id it had.
    `about` is what a transcript says of itself, by kind.
    """

    entries: list[Entry]
    index: dict[str, int]
    dialect: str
    orphans: list[tuple[int, str]] = []
    repaired: bool = False
    system: Any = None
    tools: Any = None
    model: str | None = None
    title: str | None = None
    format: str = ""
    warnings: list[str] = []
    log: list[Entry] = []
    session: str | None = None
    about: dict[str, dict[str, Any]] = {}
    given: Sequence[Any] | None = None

    def number_by(self, places: Sequence[int]) -> None:
        """Name messages by their places in the input, where a message is several of its items."""
        self.index = {entry: places[index] for entry, index in self.index.items()}
        self.orphans = [(places[index], call) for index, call in self.orphans]
