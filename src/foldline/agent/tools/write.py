"""write: a whole file."""

from __future__ import annotations

import asyncio
import difflib
from pathlib import Path

from foldline.agent.permissions import PermissionRequest
from foldline.agent.tools.tool import AgentTool, Arguments, text
from foldline.agent.workspace import Workspace
from foldline.errors import InputError
from foldline.session.tools import Tool


def make(workspace: Workspace) -> AgentTool:
    """Return the tool."""

    def asks(given: Arguments) -> PermissionRequest:
        path = workspace.resolve(given["path"], writing=True)
        return PermissionRequest(
            "write", workspace.shown(path), diff(known(path), given["content"], path.name)
        )

    async def run(given: Arguments) -> str:
        path = workspace.resolve(given["path"], writing=True)
        before = path.exists()
        await asyncio.to_thread(put, path, given["content"])
        workspace.touch("modified" if before else "created", path)
        lines = len(given["content"].splitlines())
        return f"{'Replaced' if before else 'Created'} {workspace.shown(path)}, {lines} lines."

    about = Tool(
        "write",
        "Write a file: make it, or replace all that it holds. Use edit for a change of a part.",
        {
            "path": text("The file, relative to the working folder."),
            "content": text("All that it shall hold.", empty=True),
        },
        ("path", "content"),
    )
    return AgentTool(about, run, asks=asks)


def put(path: Path, content: str) -> None:
    """Write a file and the folders above it, all of it or nothing; raises InputError where that fails."""
    half = path.with_name(f".{path.name}.writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(content, encoding="utf-8", newline="")
        if path.exists():
            half.chmod(path.stat().st_mode)
        half.replace(path)
    except (OSError, UnicodeEncodeError) as error:
        half.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error}") from error


def known(path: Path) -> str:
    """Return what a file holds; nothing where it is not there or no text."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def diff(before: str, after: str, name: str) -> str:
    """Return what would change, as a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    return "\n".join(lines)
