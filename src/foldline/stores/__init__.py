"""Stores for sessions: the protocol, a store in memory, and a store in an SQLite file."""

from __future__ import annotations

from foldline.stores.base import Hit, SessionInfo, Store
from foldline.stores.sqlite import MemoryStore, SqliteStore
from foldline.stores.urls import find_store, open_store, register

__all__ = [
    "Hit",
    "MemoryStore",
    "SessionInfo",
    "SqliteStore",
    "Store",
    "find_store",
    "open_store",
    "register",
]
