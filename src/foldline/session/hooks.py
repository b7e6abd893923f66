"""What a host says before a compaction: nothing, what to look at first, or that none is to be made."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.log.entries import Reason


class PlannedCompaction(msgspec.Struct, frozen=True):
    """A compaction that is about to be made: why, of how many tokens and messages, into at most `usable`."""

    session: str
    reason: Reason
    size: int
    usable: int
    messages: int
    instructions: str | None = None


class Blocked(msgspec.Struct, frozen=True):
    """What a hook returns that does not want a compaction made: why, for people."""

    why: str = ""


Verdict = Blocked | str | None
Hook = Callable[[PlannedCompaction], Verdict | Awaitable[Verdict]]

# The hooks and live states of sessions that call their host back at the moment, in the context of the call.
calling: ContextVar[frozenset[object] | set[object]] = ContextVar("foldline_calling", default=frozenset())


@contextmanager
def calls_back(who: object) -> Generator[None]:
    """Have `calling` hold this while the host is called back; a task that outlives the call is free again."""
    found = {*calling.get(), who}
    token = calling.set(found)
    try:
        yield
    finally:
        calling.reset(token)
        found.discard(who)


class Hooks:
    """The hooks of one session, called one after the other."""

    def __init__(self) -> None:
        self._before: list[Hook] = []

    def before(self, hook: Hook) -> Callable[[], None]:
        """Call a hook before every compaction is made, a draft or a preview too; returns what ends that.

        It gets a `PlannedCompaction` and returns None, a text for the summary to look at first, or `Blocked`:
        then none is made. It may be a coroutine function. What it raises fails the compaction.
        """
        self._before.append(hook)

        def off() -> None:
            if hook in self._before:
                self._before.remove(hook)

        return off

    async def onto(self, ask: FoldRequest, planned: PlannedCompaction) -> FoldRequest | Nothing:
        """Return what is asked, with the focus that hooks add; Nothing where one blocks the compaction."""
        focus = [planned.instructions] if planned.instructions else []
        for hook in tuple(self._before):
            with calls_back(self):
                made = hook(planned)
                verdict = await made if inspect.isawaitable(made) else made
            if isinstance(verdict, Blocked):
                return Nothing(
                    "disabled", f"blocked by a hook: {verdict.why}" if verdict.why else "blocked by a hook"
                )
            focus += [verdict] if verdict else []
        return msgspec.structs.replace(ask, instructions="\n".join(focus)) if focus else ask
