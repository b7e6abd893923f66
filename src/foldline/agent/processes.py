"""Run a command to its end, read its output as it comes, and leave no process behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

Take = Callable[[bytes], bool]
"""Takes a piece of a command's output; returns whether it wants more."""

SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
PIECE: Final = 65_536  # bytes, the capacity of a pipe
PATIENCE: Final = 10.0  # seconds to wait for a killed process


async def run_process(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    *,
    output: Take,
    error: Take | None = None,
    stdin: bytes = b"",
    variables: Mapping[str, str] | None = None,
) -> int | None:
    """Run a command in a folder; return its exit code, None after a time-out or too much output.

    `error` takes its standard error (None: `output` does). The command and all that it started are killed
    when it ends, when this is cancelled, and when this process dies. Raises OSError if it cannot be started,
    and whatever `output` and `error` raise.
    """
    pipes = [_Pipe(take) for take in (output, error) if take is not None]
    read, lifeline = os.pipe()
    try:
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(SUPERVISOR), str(read), *command),
                cwd=folder,
                stdin=file,
                stdout=pipes[0].end,
                stderr=pipes[-1].end,
                pass_fds=(read,),
                start_new_session=True,
                env={**os.environ, **(variables or {})},
            )
    except BaseException:
        os.close(lifeline)
        for pipe in pipes:
            pipe.close()
        raise
    finally:
        os.close(read)
        for pipe in pipes:
            os.close(pipe.end)
    ended = asyncio.ensure_future(process.wait())
    try:
        await asyncio.wait(
            (ended, *(pipe.listen() for pipe in pipes)), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        code = process.returncode
    finally:
        os.close(lifeline)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended, PATIENCE)
        finally:
            for pipe in pipes:
                pipe.close()
    for pipe in pipes:
        pipe.check()
    return code


class Beginning:
    """The first `keep` bytes of a command's output; the command is stopped at `stop` bytes (None: never)."""

    def __init__(self, keep: int, stop: int | None = None) -> None:
        self.data = b""
        self.full = False
        self._keep, self._stop, self._size = keep, stop, 0

    def take(self, piece: bytes) -> bool:
        """Take a piece; return whether the command may continue."""
        self._size += len(piece)
        self.data += piece[: self._keep - len(self.data)]
        self.full = self._stop is not None and self._size >= self._stop
        return not self.full


class _Pipe:
    """A pipe with an `end` for a command to write to; `full` is done when no more output is wanted."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self.full: asyncio.Future[None] = self._loop.create_future()
        self._open, self.end = os.pipe()
        os.set_blocking(self._open, False)

    def listen(self) -> asyncio.Future[None]:
        self._loop.add_reader(self._open, self._read)
        return self.full

    def _read(self) -> bool:
        """Take a piece; return whether more may be available now."""
        try:
            piece = os.read(self._open, PIECE)
            if piece and self._take(piece):
                return True
            if piece and not self.full.done():
                self.full.set_result(None)
        except BlockingIOError:
            return False
        except Exception as error:  # such as a full disk
            self.full.set_exception(error)
        self._loop.remove_reader(self._open)
        return False

    def close(self) -> None:
        """Take the rest, without waiting for a process that escaped."""
        while not self.full.done() and self._read():
            pass
        self._loop.remove_reader(self._open)
        os.close(self._open)

    def check(self) -> None:
        """Raise what `take` raised."""
        if self.full.done():
            self.full.result()
