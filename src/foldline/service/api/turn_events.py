"""What a turn tells while it goes on: events of the agent and its session, as the stream names them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from foldline.agent.events import (
    CallEnded,
    CallStarted,
    OverflowRetried,
    ReplyDelayed,
    ReplyEnded,
    ReplyRestarted,
    TextStreamed,
    ThinkingStreamed,
    TurnEnded,
)
from foldline.session.events import (
    CompactionDone,
    CompactionStarted,
    DraftFailed,
    DraftReady,
    DraftStarted,
    Event,
    NothingDone,
    OverflowSeen,
    PruneDone,
    Struck,
    WarningGiven,
)

TurnLine = tuple[str, dict[str, Any]]
DONE: Final = "done"
DELTAS: Final = frozenset({"message.delta", "thinking.delta"})
NAMES: Final[dict[type[Event], tuple[str, dict[str, Any]]]] = {
    TextStreamed: ("message.delta", {}),
    ThinkingStreamed: ("thinking.delta", {}),
    ReplyRestarted: ("message.restart", {}),
    ReplyDelayed: ("retrying", {}),
    ReplyEnded: ("message", {}),
    CallStarted: ("tool.call", {}),
    CallEnded: ("tool.result", {}),
    OverflowSeen: ("overflow", {}),
    OverflowRetried: ("overflow.retried", {}),
    CompactionStarted: ("compaction.started", {"background": False}),
    DraftStarted: ("compaction.started", {"background": True}),
    DraftReady: ("compaction.drafted", {}),
    CompactionDone: ("compaction.committed", {"made": "compaction"}),
    PruneDone: ("compaction.committed", {"made": "prune"}),
    NothingDone: ("compaction.skipped", {}),
    DraftFailed: ("compaction.failed", {"background": True}),
    Struck: ("compaction.failed", {"background": False}),
    WarningGiven: ("warning", {}),
    TurnEnded: (DONE, {}),
}
"""The names in the stream, and what stands in the data beside the event's own fields."""


def told(event: Event) -> list[TurnLine]:
    """Return an event as the stream tells it; nothing for what is no business of a client's."""
    known = NAMES.get(type(event))
    if known is None:
        return []
    name, more = known
    data: dict[str, Any] = {**msgspec.to_builtins(event), **more}
    if isinstance(event, DraftFailed):  # what went wrong may be the store's, and say where that is
        del data["detail"]
    if isinstance(event, WarningGiven) and event.kind == "failed":
        data["text"] = "a compaction failed, and the session is as it was: the service's log says more"
    if isinstance(event, ReplyEnded) and event.usage is not None:
        usage = {"entry": event.entry, "usage": data.pop("usage"), "usd": data.pop("usd")}
        return [(name, data), ("usage", usage)]
    return [(name, data)]
