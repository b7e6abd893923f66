"""A client's history, folded: by its policy, by hand, and where it would not fit its model's window."""

from __future__ import annotations

from typing import Any

from foldline.core.decide.policy import usable_of
from foldline.core.decide.presets import preset
from foldline.errors import CompactionFailed, FloorExceeded
from foldline.service.stateless.fork import Asking, Fork, new_state
from foldline.session.events import WarningGiven
from foldline.session.session import Session


class Folding:
    """A history as a session in memory, what became of it, and what there is to warn of."""

    def __init__(self, fork: Fork, asking: Asking, session: Session) -> None:
        self.fork = fork
        self.asking = asking
        self.session = session
        self.state = fork.state
        self.changed = False
        self.warnings = list(fork.warnings)
        self._newest: list[str] = []  # entries of the newest message
        self._summaries = 0  # that `state` tells of
        session.on("warning", self._warned)

    def _warned(self, event: WarningGiven) -> None:
        self.warnings.append(event.text)

    async def begin(self) -> None:
        """Append the newest message, and fold where that is asked for."""
        self._summaries = (await self.session.stats()).summaries
        self._newest = await self.session.append(*self.fork.newest)
        if self.asking.compact:
            await self.session.compact(self.asking.instructions)

    async def fitted(self) -> list[Any]:
        """Return the messages to send, folded where the policy says so, and where they would not fit.

        A policy may count less than is sent: Moldable's counts text alone, and folds no history under ten
        messages. What exceeds the window by our own count is folded all the same, to what `foldline` leaves
        of a window; where that cannot be, it is warned of.
        """
        session, window = self.session, self.session.setup.window
        messages = await session.context()
        if (size := session.view_tokens) <= window.input_limit:
            return messages
        try:
            await session.compact(target=usable_of(preset("foldline"), window))
        except (CompactionFailed, FloorExceeded) as error:
            fits = f"{window.input_limit:,} tokens fit, and {size:,} are sent"
            self.warnings.append(f"it may not fit the model ({fits} by our count): {error}")
        return await session.context()

    async def folded(self) -> bool:
        """Whether it was folded since the last time that this was asked: then `state` is the new one."""
        summaries = (await self.session.stats()).summaries
        if summaries == self._summaries:
            return False
        self._summaries, self.changed = summaries, True
        self.state = await new_state(self.fork, self._newest)
        return True
