"""Events of the agent, besides those of its session, and all of them as JSON objects.

`run --json` prints these objects and `rpc` sends them, one a line, each with a `type`: see `docs/chat.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import msgspec

from foldline.catalogue import cost
from foldline.core.cut.edits import summary_of
from foldline.core.cut.notes import LATE_REPLY
from foldline.core.decide.price import Price
from foldline.core.log.entries import Compacted, Pruned
from foldline.core.log.messages import Message, Text, Usage
from foldline.providers import Delta, Reply
from foldline.session.events import CompactionDone, Event, ProviderCompacted, PruneDone

if TYPE_CHECKING:
    from foldline.session.session import Session

VERSION: Final = 1  # of the objects; a new field does not change it
Ending = Literal["done", "waiting", "interrupted", "failed", "steps", "refused", "empty", "length"]


class TextStreamed(Event, frozen=True):
    """A piece of the reply's text, as it comes."""

    name: ClassVar[str] = "text"
    text: str


class ThinkingStreamed(Event, frozen=True):
    """A piece of the reply's thinking, as it comes."""

    name: ClassVar[str] = "thinking"
    text: str


class ReplyRestarted(Event, frozen=True):
    """The streamed part of this reply is void; the reply is streamed again."""

    name: ClassVar[str] = "restart"


class ReplyDelayed(Event, frozen=True):
    """The model did not answer, or its reply was empty; it is asked again after about `wait` seconds.

    `attempt` counts the failed attempts; `why` is the provider's reason.
    """

    name: ClassVar[str] = "retrying"
    attempt: int
    wait: float
    why: str


class ReplyEnded(Event, frozen=True):
    """A reply is stored: its entry id, text, why it ended, usage, and price in dollars (None: not known)."""

    name: ClassVar[str] = "reply"
    entry: str
    text: str
    stop: str
    model: str
    usage: Usage | None = None
    usd: float | None = None


class CallStarted(Event, frozen=True):
    """A tool is called."""

    name: ClassVar[str] = "call"
    id: str
    tool: str
    arguments: Mapping[str, Any]


class CallEnded(Event, frozen=True):
    """A tool has returned; if it `failed`, the text is an error."""

    name: ClassVar[str] = "result"
    id: str
    tool: str
    text: str
    failed: bool = False


class OverflowRetried(Event, frozen=True):
    """A request did not fit and is repeated with the folded view; `why` is the provider's reason."""

    name: ClassVar[str] = "retry"
    why: str


class PromptTaken(Event, frozen=True):
    """A prompt was stored: typed now, or queued while the agent was busy."""

    name: ClassVar[str] = "prompt"
    entry: str
    text: str
    queued: bool = False


class TurnEnded(Event, frozen=True):
    """The turn has ended: done, waiting for an answer, interrupted, or without an answer (see `detail`).

    Without an answer: failed, out of steps, refused by the model, or an empty or cut-off reply.
    """

    name: ClassVar[str] = "turn"
    how: Ending
    text: str = ""
    detail: str = ""

    @property
    def fell_short(self) -> bool:
        """Whether the turn ended without an answer."""
        return self.how not in ("done", "waiting", "interrupted")


def delay_text(event: ReplyDelayed) -> str:
    """Return the message for a model that does not answer."""
    delay = f" in {event.wait:,.0f} s" if event.wait else ""
    return f"The model does not answer ({event.why}): retrying{delay}, a few times at most."


def delta_event(piece: Delta) -> Event | None:
    """Return the event for a streamed piece; None for a piece of a call, which is announced when complete."""
    match piece.kind:
        case "text":
            return TextStreamed(text=piece.text)
        case "thinking":
            return ThinkingStreamed(text=piece.text)
        case "restart":
            return ReplyRestarted()
        case "wait":
            return ReplyDelayed(attempt=piece.index, wait=piece.seconds, why=piece.text)
        case _:
            return None


def reply_event(reply: Reply, entry: str, price: Price | None) -> ReplyEnded:
    """Return the event for a stored reply, with its price."""
    usage = reply.usage
    usd = cost(usage, price) if usage is not None and price is not None else None
    fields = {"entry": entry, "text": reply.text, "stop": reply.stop, "model": reply.model}
    return ReplyEnded(**fields, usage=usage, usd=usd)


def late_reply(reply: Reply) -> Message:
    """Return a reply as a note, for when others wrote to the session meanwhile; its calls are not run."""
    return Message("user", (Text(f"{LATE_REPLY}\n{reply.text}"),), injected=True)


def provider_compaction_text(event: ProviderCompacted) -> str:
    """Return the message for a compaction by the provider."""
    return f"The provider compacted the conversation on its server: {event.size:,} tokens now."


async def event_json(event: Event, session: Session) -> dict[str, Any]:
    """Return an event as a JSON object."""
    if isinstance(event, CompactionDone | PruneDone):
        return await _boundary_json(event, session)
    return {"type": event.name, **msgspec.to_builtins(event)}


async def _boundary_json(event: CompactionDone | PruneDone, session: Session) -> dict[str, Any]:
    entry = await session.store.entry(session.id, event.entry)
    receipt = event.receipt
    return {
        "type": "compaction",
        "kind": "summary" if isinstance(event, CompactionDone) else "prune",
        "entry": event.entry,
        "reason": receipt.reason,
        "timestamp": _iso_time(entry.at if isinstance(entry, Compacted | Pruned) else None),
        "tokensBefore": receipt.tokens_before,
        "tokensAfter": receipt.tokens_after,
        "summary": summary_of(entry) if isinstance(entry, Compacted | Pruned) else "",
        "firstKeptEntryId": entry.first_kept if isinstance(entry, Compacted) else None,
        "drafted": event.drafted,
        "receipt": msgspec.to_builtins(receipt),
    }


def _iso_time(at: float | None) -> str:
    moment = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def error_json(text: str) -> dict[str, str]:
    """Return an error as a JSON object with exactly these two keys."""
    return {"type": "error", "error": text}
