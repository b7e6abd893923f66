"""grep and find: lines that match a regular expression, and files by name, in the working folder."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from foldline.agent.processes import Beginning, ran
from foldline.agent.tools.toolbox import AgentTool, Arguments, flag, text
from foldline.agent.workspace import SKIPPED, Workspace
from foldline.errors import InputError
from foldline.session.tools import Tool

LINES = 200  # matches that are shown
LONGEST = 300  # characters of a line
SECONDS = 30.0
BYTES = 4_000_000  # of what the search finds
SHOWN = 500  # files that are named
VISITED = 200_000  # files that are looked at


def grep(workspace: Workspace) -> AgentTool:
    """Return the tool that searches files, by the machine's own grep in a process that can be stopped."""

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
    return AgentTool(about, run, reads=True, uses=workspace.named)


def _skipped() -> list[str]:
    return [f"--exclude-dir={name}" for name in sorted(SKIPPED)]


async def _found(words: list[str], workspace: Workspace) -> list[str]:
    program = shutil.which("grep")
    if program is None:
        raise InputError("there is no grep on this machine: use bash with another program")
    output, error = Beginning(BYTES, BYTES), Beginning(LONGEST * 4)
    code = await ran([program, *words], workspace.root, SECONDS, output=output.take, error=error.take)
    if code is None and not output.full:
        raise InputError(f"no end after {SECONDS:.0f} s: look into a smaller folder")
    if error.data and not output.data:
        raise InputError(error.data.decode("utf-8", "replace").strip()[:LONGEST])
    return output.data.decode("utf-8", "replace").splitlines()


def _told(lines: list[str]) -> str:
    if not lines:
        return "No line matches."
    shown = [line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines[:LINES]]
    more = [f"[{len(lines) - LINES:,} more: narrow the search]"] if len(lines) > LINES else []
    return "\n".join([*shown, *more])


def find(workspace: Workspace) -> AgentTool:
    """Return the tool that lists files."""

    async def run(given: Arguments) -> str:
        path = workspace.resolve(given.get("path") or ".")
        if not path.is_dir():
            raise InputError(f"{path}: no such folder")
        return await asyncio.to_thread(_listed, path, given.get("pattern") or "*", workspace)

    about = Tool(
        "find",
        f"List the files below a folder, {SHOWN} at most; `pattern` is matched with name and path.",
        {
            "pattern": text("A pattern such as `*.py` or `src/*/test_*`; every file by default."),
            "path": text("The folder, the working folder by default."),
        },
    )
    return AgentTool(about, run, reads=True, uses=workspace.named)


def _listed(folder: Path, pattern: str, workspace: Workspace) -> str:
    """Return the paths that match, one a line."""
    found: list[str] = []
    visited = more = 0
    for path in files(folder):
        visited += 1
        if visited > VISITED:
            found.append(f"[only {VISITED:,} files were looked at]")
            break
        if not (fnmatch(path.name, pattern) or fnmatch(str(path.relative_to(folder)), pattern)):
            continue
        if len(found) < SHOWN:
            found.append(workspace.shown(path))
        else:
            more += 1
    return (
        "\n".join([*found, *([f"[{more:,} more: narrow the pattern]"] if more else [])]) or "No file matches."
    )


def files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder in order, without the folders that nobody looks into."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            yield Path(place) / name
