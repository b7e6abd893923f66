"""bash: run a command, with a time-out; a long output is shown in part and kept in full."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from tempfile import NamedTemporaryFile

from foldline.agent.permissions import PermissionRequest
from foldline.agent.tools.tool import AgentTool, Arguments, Output, number
from foldline.agent.tools.tool import text as string
from foldline.agent.workspace import Workspace
from foldline.session.tools import Tool

SECONDS = 120  # unless another time-out is asked for
MOST_SECONDS = 3_600
SHOWN = 30_000  # characters of an output; the beginning and the end
HEAD = 10_000  # of these at the beginning
KEPT = 50_000_000  # bytes of an output that are kept


def make(workspace: Workspace, shell: str = "/bin/bash") -> AgentTool:
    """Return the tool; commands run in the workspace's folder."""

    async def run(given: Arguments) -> Output:
        seconds = min(given.get("timeout", SECONDS), MOST_SECONDS)
        if workspace.outputs is not None:
            workspace.outputs.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(
            "wb", dir=workspace.outputs, prefix="bash-", suffix=".txt", delete=False
        ) as file:
            place = Path(file.name)
            code = await ran([_shell(shell), "-c", given["command"]], workspace.root, file.fileno(), seconds)
        output = await asyncio.to_thread(shown, place, keep=workspace.outputs is not None)
        end = (
            f"[no end after {seconds} s: stopped]" if code is None else f"[exit code {code}]" if code else ""
        )
        return Output(
            "\n".join(filter(None, (output, end))) or "(no output)", failed=bool(code) or code is None
        )

    about = Tool(
        "bash",
        f"Run a command with bash in the working folder. It is stopped after {SECONDS} s or `timeout`. "
        "There is no terminal and no input. What is started in the background ends with it.",
        {"command": string("The command."), "timeout": number(f"Seconds, {MOST_SECONDS} at most.")},
        ("command",),
    )
    return AgentTool(about, run, asks=lambda given: PermissionRequest("bash", given["command"]))


def _shell(wanted: str) -> str:
    return wanted if Path(wanted).exists() else "/bin/sh"


async def ran(words: list[str], folder: Path, output: int, seconds: float) -> int | None:
    """Run a command to its end, its output into a file; return its exit code, None where the time was up.

    It and what it started are killed at the time-out and when the task is cancelled.
    """
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        env={**os.environ, "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"},
    )
    until = time.monotonic() + seconds
    try:
        while True:
            left = until - time.monotonic()
            try:
                return await asyncio.wait_for(process.wait(), min(1.0, max(0.0, left)))
            except TimeoutError:
                if left <= 1.0 or os.fstat(output).st_size > KEPT:
                    return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def shown(place: Path, *, keep: bool, most: int = SHOWN) -> str:
    """Return an output, or its beginning and its end; the file stays only where it holds more, and `keep`."""
    text = place.read_bytes().decode("utf-8", "replace")
    if len(text) > most:
        tail = text[-(most - HEAD) :].rstrip("\n")
        more = f"\n[all of it: read {place}]" if keep else ""
        cut = f"{text[:HEAD]}\n[… {len(text) - most:,} characters left out …]\n{tail}{more}"
    else:
        cut, keep = text.rstrip("\n"), False
    if not keep:
        place.unlink(missing_ok=True)
    return cut
