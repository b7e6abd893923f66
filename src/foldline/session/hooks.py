"""What a host says before a compaction, by callbacks: hooks and live state.

A hook adds a focus for the summary, or blocks the compaction. Live state is what the host knows and the
conversation does not, such as todos or open files: callbacks render it for each boundary, and the checkpoint
keeps it unchanged until the next one. State without a callback, as after a restart, is carried over.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import msgspec

from foldline.core.compact.fold_request import continuation_of
from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.log.entries import Live, Noted, Reason
from foldline.core.view import ViewState
from foldline.errors import InputError

log = logging.getLogger("foldline")


class PlannedCompaction(msgspec.Struct, frozen=True):
    """A compaction that is about to start: its reason, and the view's tokens, messages and `usable` limit."""

    session: str
    reason: Reason
    size: int
    usable: int
    messages: int
    instructions: str | None = None


class Blocked(msgspec.Struct, frozen=True):
    """Returned by a hook to block a compaction; `why` is shown to the user."""

    why: str = ""


Verdict = Blocked | str | None
Hook = Callable[[PlannedCompaction], Verdict | Awaitable[Verdict]]

# The Hooks and LiveState objects whose callbacks are running in the current context.
calling: ContextVar[frozenset[object] | set[object]] = ContextVar("foldline_calling", default=frozenset())


@contextmanager
def calls_back(caller: object) -> Generator[None]:
    """Add `caller` to `calling` while its callback runs, also for tasks that the callback starts."""
    callers = {*calling.get(), caller}
    token = calling.set(callers)
    try:
        yield
    finally:
        calling.reset(token)
        callers.discard(caller)


class Hooks:
    """The hooks of one session, called in order."""

    def __init__(self) -> None:
        self._before: list[Hook] = []

    def before(self, hook: Hook) -> Callable[[], None]:
        """Run a hook before every compaction, draft and preview; returns a function that removes it.

        It gets a `PlannedCompaction` and returns None, a focus for the summary, or `Blocked`. It may be a
        coroutine function. If it raises, the compaction fails.
        """
        self._before.append(hook)

        def off() -> None:
            if hook in self._before:
                self._before.remove(hook)

        return off

    async def complete(self, ask: FoldRequest, planned: PlannedCompaction) -> FoldRequest | Nothing:
        """Return the request with the focus that hooks add, or Nothing if a hook blocks the compaction."""
        focus = [planned.instructions] if planned.instructions else []
        for hook in tuple(self._before):
            with calls_back(self):
                answer = hook(planned)
                verdict = await answer if inspect.isawaitable(answer) else answer
            if isinstance(verdict, Blocked):
                return Nothing(
                    "disabled", f"blocked by a hook: {verdict.why}" if verdict.why else "blocked by a hook"
                )
            focus += [verdict] if verdict else []
        return msgspec.structs.replace(ask, instructions="\n".join(focus)) if focus else ask


# ---- live state

Render = Callable[[], str | Awaitable[str | None] | None]

NOTE: Final = "live_state"  # kind of the note that sets live state without a callback: {name: text}
PATIENCE: Final = 10.0  # seconds that an asynchronous callback may take
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]{0,63}\Z")


class LiveState:
    """The callbacks of one session that render live state."""

    def __init__(self) -> None:
        self._renders: dict[str, Render] = {}

    def attach(self, name: str, render: Render) -> Callable[[], None]:
        """Render live state, such as `todos`, into every later checkpoint; returns a function that stops it.

        `render` returns a text, or None or "" for no state; it may be a coroutine function. The checkpoint
        keeps the text until the next boundary. Raises InputError for an invalid name.
        """
        if not _NAME.match(name):
            raise InputError(f"{name!r} cannot name live state: use a short name such as 'todos'")
        self._renders[name] = render

        def off() -> None:
            if self._renders.get(name) is render:
                del self._renders[name]

        return off

    async def complete(self, ask: FoldRequest, state: ViewState) -> FoldRequest:
        """Return a fold request with the current live state and continuation."""
        return msgspec.structs.replace(ask, live=await self.now(state), continuation=continuation_of(state))

    async def now(self, state: ViewState) -> tuple[Live, ...]:
        """Return the current live state: rendered, or carried over without a callback.

        A callback that raises, times out or returns no text is logged, and its previous text is kept.
        """
        known = known_live(state)
        for name, render in list(self._renders.items()):
            try:
                with calls_back(self):
                    answer = render()
                    text = await asyncio.wait_for(answer, PATIENCE) if inspect.isawaitable(answer) else answer
                known[name] = _as_text(text)
            except Exception as error:  # a callback must not stop a compaction
                log.warning("live state %r could not be rendered: %r; its previous text is kept", name, error)
        return tuple(Live(name, text) for name, text in known.items() if text.strip())


def _as_text(rendered: object) -> str:
    if isinstance(rendered, str | None):
        return rendered or ""
    raise TypeError(f"it returned a {type(rendered).__name__}, not a text")


def known_live(state: ViewState) -> dict[str, str]:
    """Return the stored live state by name: the checkpoint's, and notes since."""
    boundary = state.boundary
    known = {live.name: live.text for live in boundary.checkpoint.live} if boundary is not None else {}
    since = boundary is None
    for entry in state.entries():
        if since and isinstance(entry, Noted) and entry.kind == NOTE:
            known.update({name: text for name, text in entry.data.items() if isinstance(text, str)})
        since = since or (boundary is not None and entry.id == boundary.id)
    return known
