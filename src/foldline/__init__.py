"""Session compaction for LLM agents: an append-only log, a view folded from it, nothing lost.

    done = foldline.compact(messages, target=32_000)      # fit a list of messages; no model, no network
    done.messages                                         # ready to send

    async with foldline.open("sqlite:///sessions.db", "work", model="anthropic:claude-sonnet-4-5") as session:
        await session.append({"role": "user", "content": "..."})
        messages = await session.context()                # compacts first if it must
        await session.append(reply)

Importing runs nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldline import catalogue as catalogue
    from foldline import dialects as dialects
    from foldline import errors as errors
    from foldline import lab as lab
    from foldline import policies as policies
    from foldline import providers as providers
    from foldline import stores as stores
    from foldline import summarizers as summarizers
    from foldline import testing as testing
    from foldline import transcripts as transcripts
    from foldline.catalogue.info import ModelInfo
    from foldline.compaction import Converted, acompact, compact, convert
    from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
    from foldline.core.decide.ask import Nothing
    from foldline.core.decide.policy import Policy
    from foldline.core.decide.presets import preset
    from foldline.core.ledger.facts.kinds import Ledger
    from foldline.core.log.entries import Receipt, Said, StandingConstraints
    from foldline.core.log.messages import Media, Message, Text, ToolCall, ToolResult, Usage
    from foldline.core.measure.tokens import Counter
    from foldline.core.measure.window import Window
    from foldline.errors import (
        CallsOpen,
        CompactionFailed,
        DialectError,
        FloorExceeded,
        FoldlineError,
        FormatError,
        InputError,
        LeafMoved,
        OverflowRemains,
        PolicyError,
        ProviderError,
        SessionDiverged,
        SessionNotFound,
        StoreCorrupt,
        StoreError,
        StoreVersion,
    )
    from foldline.folding import Done
    from foldline.session.definitions import Tool
    from foldline.session.opening import open_session as open  # noqa: A004 - users write foldline.open
    from foldline.session.session import Session
    from foldline.session.sync import SyncSession, open_sync
    from foldline.session.view import ContextMessages
    from foldline.stores.base import Store
    from foldline.summarizers.base import Summarizer

__version__ = "0.2.0"

# where each public name is; it is loaded from there when it is first used
_NAMES: dict[str, tuple[str, ...]] = {
    "catalogue.info": ("ModelInfo",),
    "compaction": ("Converted", "acompact", "compact", "convert"),
    "core.checkpoint.request": ("SummaryReply", "SummaryRequest"),
    "core.decide.ask": ("Nothing",),
    "core.decide.policy": ("Policy",),
    "core.decide.presets": ("preset",),
    "core.ledger.facts.kinds": ("Ledger",),
    "core.log.entries": ("Receipt", "Said", "StandingConstraints"),
    "core.log.messages": ("Media", "Message", "Text", "ToolCall", "ToolResult", "Usage"),
    "core.measure.tokens": ("Counter",),
    "core.measure.window": ("Window",),
    "errors": (
        "CallsOpen",
        "CompactionFailed",
        "DialectError",
        "FloorExceeded",
        "FoldlineError",
        "FormatError",
        "InputError",
        "LeafMoved",
        "OverflowRemains",
        "PolicyError",
        "ProviderError",
        "SessionDiverged",
        "SessionNotFound",
        "StoreCorrupt",
        "StoreError",
        "StoreVersion",
    ),
    "folding": ("Done",),
    "session.opening": ("open",),
    "session.session": ("Session",),
    "session.sync": ("SyncSession", "open_sync"),
    "session.definitions": ("Tool",),
    "session.view": ("ContextMessages",),
    "stores.base": ("Store",),
    "summarizers.base": ("Summarizer",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = (
    *("catalogue", "dialects", "errors", "lab", "policies"),
    *("providers", "stores", "summarizers", "testing", "transcripts"),
)

__all__ = [
    "CallsOpen",
    "CompactionFailed",
    "ContextMessages",
    "Converted",
    "Counter",
    "DialectError",
    "Done",
    "FloorExceeded",
    "FoldlineError",
    "FormatError",
    "InputError",
    "LeafMoved",
    "Ledger",
    "Media",
    "Message",
    "ModelInfo",
    "Nothing",
    "OverflowRemains",
    "Policy",
    "PolicyError",
    "ProviderError",
    "Receipt",
    "Said",
    "Session",
    "SessionDiverged",
    "SessionNotFound",
    "StandingConstraints",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreVersion",
    "Summarizer",
    "SummaryReply",
    "SummaryRequest",
    "SyncSession",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "Window",
    "acompact",
    "compact",
    "convert",
    "open",
    "open_sync",
    "preset",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"foldline.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'foldline' has no attribute {name!r}")
    value = getattr(import_module(f"foldline.{home}"), "open_session" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
