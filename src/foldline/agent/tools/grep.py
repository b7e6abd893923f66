"""grep: lines that match a regular expression, in the files of the working folder."""

from __future__ import annotations

import asyncio
import contextlib
import shutil

from foldline.agent.tools.tool import AgentTool, Arguments, flag, text
from foldline.agent.workspace import SKIPPED, Workspace
from foldline.errors import InputError
from foldline.session.tools import Tool

LINES = 200  # matches that are shown
LONGEST = 300  # characters of a line
SECONDS = 30.0
BYTES = 4_000_000  # of what the search finds


def make(workspace: Workspace) -> AgentTool:
    """Return the tool; the search is by the machine's own grep, in a process that can be stopped."""

    async def run(given: Arguments) -> str:
        path = workspace.resolve(given.get("path") or ".")
        if not (path.is_dir() or path.is_file()):
            raise InputError(f"{path}: no such file or folder")
        words = ["-rnIE", *(["-i"] if given.get("ignore_case") else []), *_skipped()]
        if glob := given.get("glob"):
            words.append(f"--include={glob}")
        place = "." if path == workspace.root else workspace.shown(path)
        found = await _found([*words, "-e", given["pattern"], "--", place], workspace)
        return _told([line.removeprefix("./") for line in found])

    about = Tool(
        "grep",
        f"Search the files of a folder for lines that match an extended regular expression; {LINES} at most.",
        {
            "pattern": text("The expression, such as `def (open|close)_`."),
            "path": text("The file or folder to look into, the working folder by default."),
            "glob": text("Only files with such a name, `*.py` for example."),
            "ignore_case": flag("Take capital and small letters for the same."),
        },
        ("pattern",),
    )
    return AgentTool(about, run, reads=True)


def _skipped() -> list[str]:
    return [f"--exclude-dir={name}" for name in sorted(SKIPPED)]


async def _found(words: list[str], workspace: Workspace) -> list[str]:
    program = shutil.which("grep")
    if program is None:
        raise InputError("there is no grep on this machine: use bash with another program")
    process = await asyncio.create_subprocess_exec(
        program,
        *words,
        cwd=workspace.root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, error = await asyncio.wait_for(_read(process), SECONDS)
    except TimeoutError:
        raise InputError(f"no end after {SECONDS:.0f} s: look into a smaller folder") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if not output and error:
        raise InputError(error.decode("utf-8", "replace").strip()[:LONGEST])
    return output.decode("utf-8", "replace").splitlines()


async def _read(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    if process.stdout is None or process.stderr is None:
        raise InputError("grep has no output")
    found = bytearray()
    while len(found) < BYTES and (piece := await process.stdout.read(65_536)):
        found += piece
    if len(found) >= BYTES:
        return bytes(found), b""
    return bytes(found), await process.stderr.read(LONGEST * 4)


def _told(lines: list[str]) -> str:
    if not lines:
        return "No line matches."
    shown = [line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines[:LINES]]
    more = [f"[{len(lines) - LINES:,} more: narrow the search]"] if len(lines) > LINES else []
    return "\n".join([*shown, *more])
