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
            "write", workspace.shown(path), diff(known(path, workspace), given["content"], path.name)
        )

    async def run(given: Arguments) -> str:
        path = workspace.resolve(given["path"], writing=True)
        before = path.exists()
        await asyncio.to_thread(workspace.put, path, given["content"])
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


def known(path: Path, workspace: Workspace) -> str:
    """Return what a file holds; nothing where it is not there, no text or too large to be shown."""
    try:
        return workspace.content(path).decode("utf-8")
    except (InputError, OSError, UnicodeDecodeError):
        return ""


def diff(before: str, after: str, name: str) -> str:
    """Return what would change, as a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    return "\n".join(lines)
