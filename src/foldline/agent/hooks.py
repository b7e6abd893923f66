"""The user's own commands before and after a compaction; each gets JSON on its standard input.

Before a compaction, exit code 0 allows it and adds the output to its focus; 2 blocks it, and standard error
holds the reason. Any other exit code is a warning, and the compaction goes ahead.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec

from foldline.agent.processes import Beginning, run_process
from foldline.config import HookSettings
from foldline.core.log.codec import encode_utf8
from foldline.session.events import CompactionDone, PruneDone
from foldline.session.hooks import Blocked, PlannedCompaction, Verdict
from foldline.session.session import Session

log = logging.getLogger("foldline")

BLOCKS = 2  # the exit code that blocks
MAX_OUTPUT = 1_000_000  # bytes; a command that prints more is stopped
MAX_TEXT = 4_000  # characters of the output that are used


class CommandHooks:
    """The hook commands of the settings, run in a folder."""

    def __init__(self, settings: HookSettings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder

    def watch(self, session: Session) -> None:
        """Run the commands at every compaction of a session."""
        if self._settings.before_compaction:
            session.before_compaction(self._before)
        if self._settings.after_compaction:
            session.on(CompactionDone.name, self._after)
            session.on(PruneDone.name, self._after)

    async def _before(self, planned: PlannedCompaction) -> Verdict:
        focus: list[str] = []
        payload = {"event": "before_compaction", **msgspec.to_builtins(planned)}
        for command in self._settings.before_compaction:
            code, output, error = await self._run(command, payload)
            if code == BLOCKS:
                return Blocked(error or output or command)
            if code:
                log.warning("hook %r ended with %s: %s", command, code, error)
            elif output:
                focus.append(output)
        return "\n".join(focus) or None

    async def _after(self, event: CompactionDone | PruneDone) -> None:
        payload = {"event": "after_compaction", "kind": event.name, **msgspec.to_builtins(event)}
        for command in self._settings.after_compaction:
            code, _, error = await self._run(command, payload)
            if code:
                log.warning("hook %r ended with %s: %s", command, code, error)

    async def _run(self, command: str, payload: dict[str, Any]) -> tuple[int, str, str]:
        """Run a command; return its exit code (-1: it did not finish), output and standard error."""
        output, error = Beginning(4 * MAX_TEXT, MAX_OUTPUT), Beginning(4 * MAX_TEXT, MAX_OUTPUT)
        seconds = self._settings.timeout
        try:
            code = await run_process(
                ("/bin/sh", "-c", command),
                self._folder,
                seconds,
                output=output.take,
                error=error.take,
                stdin=encode_utf8(payload),
            )
        except OSError as failure:
            return -1, "", str(failure)
        if code is None:
            full = output.full or error.full
            reason = (
                f"more than {MAX_OUTPUT:,} bytes printed" if full else f"not finished after {seconds:g} s"
            )
            return -1, "", reason
        return code, _text(output), _text(error)


def _text(output: Beginning) -> str:
    return output.data.decode("utf-8", "replace").strip()[:MAX_TEXT]
