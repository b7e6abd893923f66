"""What a session tells those who watch it: one struct for each thing that happens, and the callbacks."""

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

EVERY: Final = "*"  # stands for all names
Remedy = Literal["max_tokens", "compaction", "newer_view", "none"]  # what is done about an overflow
WarningKind = Literal[
    "repeated_compactions", "unknown_window", "failed", "summary_failed", "summary_model", "usage", "mended",
    "roles",
]  # fmt: skip


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in a session; `name` is what it is asked for by."""

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
    """A draft waits for the hard trigger; its receipt is of the path that it was made for."""

    name: ClassVar[str] = "draft_ready"
    receipt: Receipt


class DraftFailed(Event, frozen=True):
    """A draft could not be made."""

    name: ClassVar[str] = "draft_failed"
    why: Failure
    detail: str = ""


class CompactionStarted(Event, frozen=True):
    """A compaction that somebody waits for begins, or the waiting does; `size` is the view's in tokens."""

    name: ClassVar[str] = "compaction_started"
    reason: Reason
    size: int


class SummaryStreamed(Event, frozen=True):
    """A piece of the summary that somebody waits for, as the model writes it; `anew`: what came is void.

    It is what the model says, not checked yet: the checkpoint may be another text.
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
    """A prune alone was committed."""

    name: ClassVar[str] = "pruned"
    entry: str
    receipt: Receipt
    drafted: bool = False


class ProviderCompacted(Event, frozen=True):
    """A reply came in which the provider's server compacted; `size` is the view's in tokens behind it."""

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
    """A compaction failed: the `strikes`-th in a row; after three none starts by itself for a while."""

    name: ClassVar[str] = "strike"
    reason: Reason
    why: Failure
    strikes: int


class CoolingDown(Event, frozen=True):
    """No compaction starts by itself before `until`, Unix time."""

    name: ClassVar[str] = "cooldown"
    until: float
    why: Failure


class OverflowSeen(Event, frozen=True):
    """A request did not fit; sizes in the provider's tokens, `remedy` what is done about it.

    `newer_view`: it was made with a view that has been folded since, and the newer one is handed out.
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
    """The session goes on with another model, whose context is `context` tokens."""

    name: ClassVar[str] = "model"
    model: str | None
    context: int


class PolicyChanged(Event, frozen=True):
    """The session goes on by another policy."""

    name: ClassVar[str] = "policy"
    policy: str


class Undone(Event, frozen=True):
    """A boundary was undone."""

    name: ClassVar[str] = "undone"
    entry: str


class Redone(Event, frozen=True):
    """An undone boundary counts again."""

    name: ClassVar[str] = "redone"
    entry: str


class PinChanged(Event, frozen=True):
    """An entry was pinned (`on`) or unpinned."""

    name: ClassVar[str] = "pinned"
    entry: str
    on: bool = True


class Branched(Event, frozen=True):
    """The leaf moved to another place of the tree, by a branch or a rewind."""

    name: ClassVar[str] = "branched"
    leaf: str | None


class HandedOff(Event, frozen=True):
    """Another session was begun from this one."""

    name: ClassVar[str] = "handed_off"
    session: str


class WarningGiven(Event, frozen=True):
    """Something that a user should hear."""

    name: ClassVar[str] = "warning"
    kind: WarningKind
    text: str
    count: int = 0


KINDS: Final[dict[str, type[Event]]] = {kind.name: kind for kind in Event.__subclasses__()}
"""Every event of this file by its name: a struct above is all that a new one needs."""

Callback = Callable[[Any], Any]


class Events:
    """Who is to be called, by the name of the event."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._callbacks: dict[str, list[Callback]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()

    def on(self, name: str, callback: Callback) -> Callable[[], None]:
        """Call back whenever something happens: `compacted`, `draft_ready`, `warning` ..., or `*` for all.

        The callback gets one struct of `foldline.session.events`; a coroutine function runs beside the
        session. One that raises is logged. Returns a function that ends it; raises InputError for an unknown
        name.
        """
        if name != EVERY and name not in KINDS:
            raise InputError(f"no event {name!r}; there are {', '.join(KINDS)}, and {EVERY} for all")
        called = self._callbacks.setdefault(name, [])
        called.append(callback)

        def off() -> None:
            if callback in called:
                called.remove(callback)

        return off

    def heard(self, name: str) -> bool:
        """Whether anybody would be called with an event of that name."""
        return bool(self._callbacks.get(name) or self._callbacks.get(EVERY))

    def emit(self, event: Event) -> None:
        """Call everybody who asked for this event; one that raises is logged, and the session goes on."""
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

        def ended(done: asyncio.Future[Any]) -> None:
            self._tasks.discard(done)
            if not done.cancelled() and (error := done.exception()) is not None:
                self._failed(name, cast("Exception", error))

        task.add_done_callback(ended)

    def _failed(self, name: str, error: Exception) -> None:
        log.error("session %s: a callback for %r raised", self._session, name, exc_info=error)

    async def drain(self) -> None:
        """Wait for the coroutines that are running, but for the one that calls this."""
        while others := self._tasks - {asyncio.current_task()}:
            await asyncio.wait(others)
