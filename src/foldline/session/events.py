"""The events of a session, one struct each, and their callbacks."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final, Literal, cast

import msgspec

from foldline.core.decide.ask import Why
from foldline.core.decide.breaker import Failure
from foldline.core.log.entries import Reason, Receipt
from foldline.errors import InputError

log = logging.getLogger("foldline")

EVERY: Final = "*"  # matches all names
Remedy = Literal["max_tokens", "compaction", "newer_view", "none"]  # how an overflow is handled
WarningKind = Literal[
    "repeated_compactions", "unknown_window", "failed", "summary_failed", "summary_model", "usage", "mended",
    "roles",
]  # fmt: skip


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in a session; subscribe to it by its `name`."""

    name: ClassVar[str] = ""


class MessageAdded(Event, frozen=True):
    """Messages were appended: their entry ids and roles, in order."""

    name: ClassVar[str] = "message"
    entries: tuple[str, ...]
    roles: tuple[str, ...]


class DraftStarted(Event, frozen=True):
    """A summary is being made in the background: `size` tokens exceed the soft trigger, `threshold`."""

    name: ClassVar[str] = "draft_started"
    size: int
    threshold: int


class DraftReady(Event, frozen=True):
    """A draft is ready to be committed; its receipt is for the path at the time of drafting."""

    name: ClassVar[str] = "draft_ready"
    receipt: Receipt


class DraftFailed(Event, frozen=True):
    """Making a draft failed."""

    name: ClassVar[str] = "draft_failed"
    why: Failure
    detail: str = ""


class CompactionStarted(Event, frozen=True):
    """A caller starts to wait for a compaction or a draft; `size` is the view's size in tokens."""

    name: ClassVar[str] = "compaction_started"
    reason: Reason
    size: int


class SummaryStreamed(Event, frozen=True):
    """A piece of summary text as the model writes it; with `anew`, discard what came before.

    The text is not checked yet: the final checkpoint may differ.
    """

    name: ClassVar[str] = "summary"
    text: str
    anew: bool = False


class CompactionDone(Event, frozen=True):
    """A checkpoint was committed; `drafted` says that it was made in the background."""

    name: ClassVar[str] = "compacted"
    entry: str
    receipt: Receipt
    drafted: bool = False


class PruneDone(Event, frozen=True):
    """A prune without a checkpoint was committed."""

    name: ClassVar[str] = "pruned"
    entry: str
    receipt: Receipt
    drafted: bool = False


class ProviderCompacted(Event, frozen=True):
    """A reply contains a compaction by the provider's server; `size` is the new view's size in tokens."""

    name: ClassVar[str] = "provider_compacted"
    entry: str
    size: int


class NothingDone(Event, frozen=True):
    """A compaction ended without a boundary; see `Nothing`."""

    name: ClassVar[str] = "nothing"
    reason: Reason
    why: Why
    detail: str = ""


class Struck(Event, frozen=True):
    """A compaction failed: the `strikes`-th in a row; three pause automatic compactions for a while."""

    name: ClassVar[str] = "strike"
    reason: Reason
    why: Failure
    strikes: int


class CoolingDown(Event, frozen=True):
    """Automatic compactions are paused until `until`, Unix time."""

    name: ClassVar[str] = "cooldown"
    until: float
    why: Failure


class OverflowSeen(Event, frozen=True):
    """A request did not fit; sizes in the provider's tokens, `remedy` is how it is handled.

    `newer_view`: the request used a view that has been folded since, and the newer one is returned.
    """

    name: ClassVar[str] = "overflow"
    limit: int | None = None
    asked: int | None = None
    remedy: Remedy = "compaction"
    max_tokens: int | None = None


class WindowLearnt(Event, frozen=True):
    """An overflow taught that the model's context is `context` tokens, not `before`."""

    name: ClassVar[str] = "window_learnt"
    model: str
    context: int
    before: int


class ModelChanged(Event, frozen=True):
    """The session uses another model, whose context is `context` tokens."""

    name: ClassVar[str] = "model"
    model: str | None
    context: int


class PolicyChanged(Event, frozen=True):
    """The session uses another policy."""

    name: ClassVar[str] = "policy"
    policy: str


class Undone(Event, frozen=True):
    """A boundary was undone."""

    name: ClassVar[str] = "undone"
    entry: str


class Redone(Event, frozen=True):
    """An undone boundary was restored."""

    name: ClassVar[str] = "redone"
    entry: str


class PinChanged(Event, frozen=True):
    """An entry was pinned (`on`) or unpinned."""

    name: ClassVar[str] = "pinned"
    entry: str
    on: bool = True


class Branched(Event, frozen=True):
    """The leaf moved to another entry, by a branch or a rewind."""

    name: ClassVar[str] = "branched"
    leaf: str | None


class HandedOff(Event, frozen=True):
    """A new session was started from this one by a hand-off."""

    name: ClassVar[str] = "handed_off"
    session: str


class WarningGiven(Event, frozen=True):
    """A warning for the user."""

    name: ClassVar[str] = "warning"
    kind: WarningKind
    text: str
    count: int = 0


KINDS: Final[dict[str, type[Event]]] = {kind.name: kind for kind in Event.__subclasses__()}
"""Every event above by its name."""

Callback = Callable[[Any], Any]


class Events:
    """The callbacks of one session, by event name."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._callbacks: dict[str, list[Callback]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()
        self._draining: set[asyncio.Future[Any] | None] = set()  # tasks that wait for the others

    def on(self, name: str, callback: Callback) -> Callable[[], None]:
        """Register a callback for an event: `compacted`, `draft_ready`, `warning` ..., or `*` for all.

        The callback gets the struct from `foldline.session.events`; a coroutine function runs in a task.
        Errors in callbacks are logged. Returns a function that unregisters it; raises InputError for an
        unknown name.
        """
        if name != EVERY and name not in KINDS:
            raise InputError(f"no event {name!r}; there are {', '.join(KINDS)}, and {EVERY} for all")
        callbacks = self._callbacks.setdefault(name, [])
        callbacks.append(callback)

        def off() -> None:
            if callback in callbacks:
                callbacks.remove(callback)

        return off

    def has_listeners(self, name: str) -> bool:
        """Whether any callback is registered for an event."""
        return bool(self._callbacks.get(name) or self._callbacks.get(EVERY))

    def emit(self, event: Event) -> None:
        """Call the callbacks of an event; log those that raise."""
        for callback in (*self._callbacks.get(event.name, ()), *self._callbacks.get(EVERY, ())):
            try:
                answer = callback(event)
                if inspect.isawaitable(answer):
                    self._run(answer, event.name)
            except Exception as error:
                self._failed(event.name, error)

    def _run(self, answer: Awaitable[Any], name: str) -> None:
        task = asyncio.ensure_future(answer)
        self._tasks.add(task)

        def on_done(future: asyncio.Future[Any]) -> None:
            self._tasks.discard(future)
            if not future.cancelled() and (error := future.exception()) is not None:
                self._failed(name, cast("Exception", error))

        task.add_done_callback(on_done)

    def _failed(self, name: str, error: Exception) -> None:
        log.error("session %s: a callback for %r raised", self._session, name, exc_info=error)

    async def drain(self) -> None:
        """Wait for running callback tasks other than those that wait here."""
        current = asyncio.current_task()
        self._draining.add(current)
        try:
            while others := self._tasks - self._draining:
                await asyncio.wait(others)
        finally:
            self._draining.discard(current)
