"""What an agent tells those who watch it, beside what its session tells; and all of it as JSON objects.

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
    """What was streamed of this reply is void: it comes again."""

    name: ClassVar[str] = "restart"


class ReplyDelayed(Event, frozen=True):
    """The model did not answer, or said nothing, and is asked again in `wait` seconds or a little later.

    `attempt` counts those that failed; `why` is the provider's word.
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
    """A tool has answered; `failed` says that its text is an error."""

    name: ClassVar[str] = "result"
    id: str
    tool: str
    text: str
    failed: bool = False


class OverflowRetried(Event, frozen=True):
    """A request did not fit; it is made again with the folded view. `why` is the provider's word."""

    name: ClassVar[str] = "retry"
    why: str


class PromptTaken(Event, frozen=True):
    """A prompt was stored: typed now, or queued while the agent was at work."""

    name: ClassVar[str] = "prompt"
    entry: str
    text: str
    queued: bool = False


class TurnEnded(Event, frozen=True):
    """The agent stopped: done, waiting for an answer, interrupted, or without an answer, as `detail` says.

    Without one: failed, out of steps, refused by the model, an empty reply, or one cut off by its length.
    """

    name: ClassVar[str] = "turn"
    how: Ending
    text: str = ""
    detail: str = ""

    @property
    def fell_short(self) -> bool:
        """Whether the turn ended without what was asked for."""
        return self.how not in ("done", "waiting", "interrupted")


def delayed(event: ReplyDelayed) -> str:
    """Return what a person is told of a model that does not answer."""
    after = f" in {event.wait:,.0f} s" if event.wait else ""
    return f"The model does not answer ({event.why}): asked again{after}, and a few times more."


def streamed(piece: Delta) -> Event | None:
    """Return the event that tells of a piece of a reply; None for one of a call, which is told whole."""
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


def replied(reply: Reply, entry: str, price: Price | None) -> ReplyEnded:
    """Return the event that tells of a stored reply, with what it cost."""
    usage = reply.usage
    usd = cost(usage, price) if usage is not None and price is not None else None
    told = {"entry": entry, "text": reply.text, "stop": reply.stop, "model": reply.model}
    return ReplyEnded(**told, usage=usage, usd=usd)


def late_reply(reply: Reply) -> Message:
    """Return a reply as a note, for where it answers what is no longer the newest; its calls are not made."""
    return Message("user", (Text(f"{LATE_REPLY}\n{reply.text}"),), injected=True)


def compacted_by_provider(event: ProviderCompacted) -> str:
    """Return what a person is told of a compaction by the provider."""
    return f"The provider compacted the conversation on its server: {event.size:,} tokens now."


async def recorded(event: Event, session: Session) -> dict[str, Any]:
    """Return an event as a JSON object."""
    if isinstance(event, CompactionDone | PruneDone):
        return await _boundary(event, session)
    return {"type": event.name, **msgspec.to_builtins(event)}


async def _boundary(event: CompactionDone | PruneDone, session: Session) -> dict[str, Any]:
    """Return a compaction with its summary, the time, the tokens before and the first entry kept."""
    entry = await session.store.entry(session.id, event.entry)
    receipt = event.receipt
    return {
        "type": "compaction",
        "kind": "summary" if isinstance(event, CompactionDone) else "prune",
        "entry": event.entry,
        "reason": receipt.reason,
        "timestamp": _time(entry.at if isinstance(entry, Compacted | Pruned) else None),
        "tokensBefore": receipt.tokens_before,
        "tokensAfter": receipt.tokens_after,
        "summary": summary_of(entry) if isinstance(entry, Compacted | Pruned) else "",
        "firstKeptEntryId": entry.first_kept if isinstance(entry, Compacted) else None,
        "drafted": event.drafted,
        "receipt": msgspec.to_builtins(receipt),
    }


def _time(at: float | None) -> str:
    moment = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def failed(text: str) -> dict[str, str]:
    """Return an error as an object: these two keys and no other."""
    return {"type": "error", "error": text}
