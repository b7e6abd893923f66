"""grep and find: lines that match a regular expression, and files by name, in the working folder."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from foldline.agent.processes import Beginning, run_process
from foldline.agent.tools.toolbox import AgentTool, Arguments, flag, text
from foldline.agent.workspace import SKIPPED, Workspace
from foldline.errors import InputError
from foldline.session.definitions import Tool

MATCH = re.compile(r"([^\0]+)\0(.*)\n?")  # a name may hold colons and line breaks
LINES = 200  # matches shown by grep
LONGEST = 300  # characters of a line
SECONDS = 30.0
BYTES = 4_000_000  # of the output of grep
FILES = 500  # files listed by find
VISITED = 200_000  # files that find examines


def grep(workspace: Workspace, may_read: Callable[[str], bool] = lambda _: True) -> AgentTool:
    """Return the tool that searches files with the system's grep, without files that `may_read` refuses."""

    async def run(arguments: Arguments) -> str:
        path = workspace.resolve(arguments.get("path") or ".")
        if not (path.is_dir() or path.is_file()):
            raise InputError(f"{path}: no such file or folder")
        options = ["-rnIEH", "--null", *(f"--exclude-dir={name}" for name in sorted(SKIPPED))]
        if arguments.get("ignore_case"):
            options.append("-i")
        if glob := arguments.get("glob"):
            options.append(f"--include={glob}")
        place = "." if path == workspace.root else workspace.shown(path)
        output = await _grep([*options, "-e", arguments["pattern"], "--", place], workspace)
        matches = [(name.removeprefix("./"), line) for name, line in MATCH.findall(output)]
        denied = {name for name in dict(matches) if not may_read(name)}
        prefix = "{}:" if path.is_dir() else ""
        lines = [prefix.format(name) + line for name, line in matches if name not in denied]
        return _matches_text(lines, len(denied))

    about = Tool(
        "grep",
        f"Search the files of a folder for lines that match an extended regular expression; {LINES} at most.",
        {
            "pattern": text("The expression, such as `def (open|close)_`."),
            "path": text("The file or folder to search, by default the working folder."),
            "glob": text("Only files whose name matches, such as `*.py`."),
            "ignore_case": flag("Ignore case."),
        },
        ("pattern",),
    )
    return AgentTool(about, run, reads=True, uses=workspace.path_argument)


async def _grep(arguments: list[str], workspace: Workspace) -> str:
    program = shutil.which("grep")
    if program is None:
        raise InputError("grep is not installed: use bash with another program")
    output, error = Beginning(BYTES, BYTES), Beginning(LONGEST * 4)
    code = await run_process(
        [program, *arguments], workspace.root, SECONDS, output=output.take, error=error.take
    )
    if code is None and not output.full:
        raise InputError(f"not finished after {SECONDS:.0f} s: search a smaller folder")
    if error.data and not output.data:
        raise InputError(error.data.decode("utf-8", "replace").strip()[:LONGEST])
    return output.data.decode("utf-8", "replace")


def _matches_text(lines: list[str], denied: int) -> str:
    shown = [line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines[:LINES]]
    if len(lines) > LINES:
        shown.append(f"[{len(lines) - LINES:,} more: narrow the search]")
    if denied:
        files, verb = ("1 file", "is") if denied == 1 else (f"{denied} files", "are")
        shown.append(f"[{files} that the user's settings deny {verb} left out]")
    return "\n".join(shown if lines else ["No line matches.", *shown])


def find(workspace: Workspace) -> AgentTool:
    """Return the tool that lists files."""

    async def run(arguments: Arguments) -> str:
        path = workspace.resolve(arguments.get("path") or ".")
        if not path.is_dir():
            raise InputError(f"{path}: no such folder")
        return await asyncio.to_thread(_find, path, arguments.get("pattern") or "*", workspace)

    about = Tool(
        "find",
        f"List the files below a folder, {FILES} at most; `pattern` is matched with name and path.",
        {
            "pattern": text("A pattern such as `*.py` or `src/*/test_*`; every file by default."),
            "path": text("The folder, by default the working folder."),
        },
    )
    return AgentTool(about, run, reads=True, uses=workspace.path_argument)


def _find(folder: Path, pattern: str, workspace: Workspace) -> str:
    found: list[str] = []
    more = 0
    for visited, path in enumerate(files(folder)):
        if visited == VISITED:
            found.append(f"[only {VISITED:,} files were examined]")
            break
        if not (fnmatch(path.name, pattern) or fnmatch(str(path.relative_to(folder)), pattern)):
            continue
        if len(found) < FILES:
            found.append(workspace.shown(path))
        else:
            more += 1
    return (
        "\n".join([*found, *([f"[{more:,} more: narrow the pattern]"] if more else [])]) or "No file matches."
    )


def files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder in order, except in folders that searches skip."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            yield Path(place) / name
