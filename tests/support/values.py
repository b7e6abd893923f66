"""The small values of a store in memory, for tests of what is built on them."""

from __future__ import annotations

from foldline.stores import MemoryStore
from foldline.stores.key_values import KeyValues


class MemoryKeyValues(KeyValues):
    """Values that live as long as the test."""

    def __init__(self) -> None:
        super().__init__(MemoryStore().ask)
