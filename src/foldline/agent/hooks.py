"""The user's own commands before and after a compaction: each gets JSON on its standard input.

Before: exit code 0 lets it be made, and what the command prints is added to its focus; 2 blocks it, and what
it prints on standard error says why. Any other end is warned of, and the compaction is made.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec

from foldline.agent.processes import Beginning, ran
from foldline.config import HookSettings
from foldline.core.log.codec import encode_utf8
from foldline.session.events import CompactionDone, PruneDone
from foldline.session.hooks import Blocked, PlannedCompaction, Verdict
from foldline.session.session import Session

log = logging.getLogger("foldline")

BLOCKS = 2  # the exit code that blocks
PRINTED = 1_000_000  # bytes; a command that prints more is stopped
MOST = 4_000  # characters of what a command prints that are taken


class CommandHooks:
    """The commands of the settings, run in a folder."""

    def __init__(self, settings: HookSettings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder

    def watch(self, session: Session) -> None:
        """Run the commands for every compaction of a session."""
        if self._settings.before_compaction:
            session.before_compaction(self._before)
        if self._settings.after_compaction:
            session.on(CompactionDone.name, self._after)
            session.on(PruneDone.name, self._after)

    async def _before(self, planned: PlannedCompaction) -> Verdict:
        focus: list[str] = []
        for command in self._settings.before_compaction:
            code, output, error = await self._run(
                command, {"event": "before_compaction", **_builtins(planned)}
            )
            if code == BLOCKS:
                return Blocked(error or output or command)
            if code:
                log.warning("hook %r ended with %s: %s", command, code, error)
            elif output:
                focus.append(output)
        return "\n".join(focus) or None

    async def _after(self, event: CompactionDone | PruneDone) -> None:
        told = {"event": "after_compaction", "kind": event.name, **_builtins(event)}
        for command in self._settings.after_compaction:
            code, _, error = await self._run(command, told)
            if code:
                log.warning("hook %r ended with %s: %s", command, code, error)

    async def _run(self, command: str, told: dict[str, Any]) -> tuple[int, str, str]:
        """Run a command; return its exit code (-1: it could not be run to its end) and what it printed."""
        output, error = Beginning(4 * MOST, PRINTED), Beginning(4 * MOST, PRINTED)
        seconds = self._settings.timeout
        try:
            code = await ran(
                ("/bin/sh", "-c", command),
                self._folder,
                seconds,
                output=output.take,
                error=error.take,
                given=encode_utf8(told),
            )
        except OSError as failed:
            return -1, "", str(failed)
        if code is None:
            full = output.full or error.full
            return -1, "", f"it prints more than {PRINTED:,} bytes" if full else f"no end after {seconds:g} s"
        return code, _words(output), _words(error)


def _words(printed: Beginning) -> str:
    return printed.data.decode("utf-8", "replace").strip()[:MOST]


def _builtins(value: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(value)
    return found
