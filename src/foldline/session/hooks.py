"""Hooks that run before a compaction: they may add a focus for the summary, or block it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.log.entries import Reason


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
