"""find: files of the working folder by name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from foldline.agent.tools.tool import AgentTool, Arguments, text
from foldline.agent.workspace import SKIPPED, Workspace
from foldline.errors import InputError
from foldline.session.tools import Tool

SHOWN = 500  # files that are named
VISITED = 200_000  # files that are looked at


def make(workspace: Workspace) -> AgentTool:
    """Return the tool."""

    async def run(given: Arguments) -> str:
        path = workspace.resolve(given.get("path") or ".")
        if not path.is_dir():
            raise InputError(f"{path}: no such folder")
        return await asyncio.to_thread(told, path, given.get("pattern") or "*", workspace)

    about = Tool(
        "find",
        f"List the files below a folder, {SHOWN} at most; `pattern` is matched with name and path.",
        {
            "pattern": text("A pattern such as `*.py` or `src/*/test_*`; every file by default."),
            "path": text("The folder, the working folder by default."),
        },
    )
    return AgentTool(about, run, reads=True)


def told(folder: Path, pattern: str, workspace: Workspace) -> str:
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
