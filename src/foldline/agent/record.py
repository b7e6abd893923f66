"""Events as JSON objects, one a line: what `run --json` prints and `rpc` sends; see `docs/chat.md`.

Each has a `type`. A compaction has its summary, the time, the tokens before and the first entry kept.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from foldline.core.log.entries import Compacted, Pruned
from foldline.session.events import CompactionDone, Event, PruneDone
from foldline.session.session import Session

VERSION: Final = 1  # of the objects; a new field does not change it


async def recorded(event: Event, session: Session) -> dict[str, Any]:
    """Return an event as a JSON object."""
    if isinstance(event, CompactionDone | PruneDone):
        return await _boundary(event, session)
    return {"type": event.name, **msgspec.to_builtins(event)}


async def _boundary(event: CompactionDone | PruneDone, session: Session) -> dict[str, Any]:
    entry = await session.store.entry(session.id, event.entry)
    receipt = event.receipt
    found: dict[str, Any] = {
        "type": "compaction",
        "kind": "summary" if isinstance(event, CompactionDone) else "prune",
        "entry": event.entry,
        "reason": receipt.reason,
        "timestamp": _time(entry.at if isinstance(entry, Compacted | Pruned) else None),
        "tokensBefore": receipt.tokens_before,
        "tokensAfter": receipt.tokens_after,
        "summary": entry.checkpoint.summary if isinstance(entry, Compacted) else "",
        "firstKeptEntryId": entry.first_kept if isinstance(entry, Compacted) else None,
        "drafted": event.drafted,
        "receipt": msgspec.to_builtins(receipt),
    }
    return found


def _time(at: float | None) -> str:
    moment = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def failed(text: str) -> dict[str, str]:
    """Return an error as an object: these two keys and no other."""
    return {"type": "error", "error": text}
