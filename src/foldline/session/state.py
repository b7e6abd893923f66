"""Live state: what the program knows and the conversation does not, such as todos or open files.

Callbacks render it when a boundary is made; the checkpoint holds it frozen until the next one, so that a view
never changes between two boundaries. What no callback renders any more (after a restart) is carried over.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from foldline.core.compact.fold_request import continuation_of
from foldline.core.decide.ask import FoldRequest
from foldline.core.log.entries import Live, Noted
from foldline.core.view import ViewState
from foldline.errors import InputError
from foldline.session.hooks import calls_back

Render = Callable[[], str | Awaitable[str | None] | None]

NOTE: Final = "live_state"  # the kind of note that sets live state without a callback: {name: text}
PATIENCE: Final = 10.0  # seconds that an asynchronous callback may take
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]{0,63}\Z")

log = logging.getLogger("foldline")


class LiveState:
    """The callbacks of one session that render live state."""

    def __init__(self) -> None:
        self._renders: dict[str, Render] = {}

    def attach(self, name: str, render: Render) -> Callable[[], None]:
        """Have live state, such as `todos`, rendered into every checkpoint to come; returns what ends that.

        `render` returns a text (None or "": there is none now), or is a coroutine function. The checkpoint
        holds it frozen until the next boundary. Raises InputError for a name that is not short.
        """
        if not _NAME.match(name):
            raise InputError(f"{name!r} cannot name live state: use a short name such as 'todos'")
        self._renders[name] = render

        def off() -> None:
            if self._renders.get(name) is render:
                del self._renders[name]

        return off

    async def onto(self, ask: FoldRequest, state: ViewState) -> FoldRequest:
        """Return what is asked of a compaction, with live state as it is now and where the session stands."""
        return msgspec.structs.replace(ask, live=await self.now(state), continuation=continuation_of(state))

    async def now(self, state: ViewState) -> tuple[Live, ...]:
        """Return the live state as it is now: rendered, or as it was known before where nothing renders it.

        A callback that raises or takes too long is logged, and what it said before stays.
        """
        known = known_live(state)
        for name, render in list(self._renders.items()):
            try:
                with calls_back(self):
                    made = render()
                    text = await asyncio.wait_for(made, PATIENCE) if inspect.isawaitable(made) else made
            except Exception as error:  # a callback of the host's must not stop a compaction
                log.warning("live state %r could not be rendered: %r; it stays as it was", name, error)
                continue
            known[name] = text or ""
        return tuple(Live(name, text) for name, text in known.items() if text.strip())


def known_live(state: ViewState) -> dict[str, str]:
    """Return the live state that the log knows: the checkpoint's, and what was noted since; by name."""
    boundary = state.boundary
    known = {one.name: one.text for one in boundary.checkpoint.live} if boundary is not None else {}
    since = boundary is None
    for entry in state.entries():
        if since and isinstance(entry, Noted) and entry.kind == NOTE:
            known.update({name: text for name, text in entry.data.items() if isinstance(text, str)})
        since = since or entry is boundary or (boundary is not None and entry.id == boundary.id)
    return known
