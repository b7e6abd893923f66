"""write and edit: write a whole file, or replace text in one."""

from __future__ import annotations

import asyncio
import difflib
from pathlib import Path

from foldline.agent.permissions import PermissionRequest
from foldline.agent.tools.toolbox import AgentTool, Arguments, flag, text
from foldline.agent.workspace import Workspace
from foldline.errors import InputError
from foldline.session.definitions import Tool

LINES = 1_000  # of a diff that the user is asked about
LONGEST = 500  # characters of one of its lines


def write(workspace: Workspace) -> AgentTool:
    """Return the tool that writes a whole file."""

    def asks(arguments: Arguments) -> PermissionRequest:
        path = workspace.resolve(arguments["path"], writing=True)
        diff = _diff(_current_text(path, workspace), arguments["content"], path.name)
        return PermissionRequest("write", workspace.shown(path), _bounded(diff))

    async def run(arguments: Arguments) -> str:
        path = workspace.resolve(arguments["path"], writing=True)
        before = path.exists()
        await asyncio.to_thread(workspace.put, path, arguments["content"])
        workspace.touch("modified" if before else "created", path)
        lines = len(arguments["content"].splitlines())
        return f"{'Replaced' if before else 'Created'} {workspace.shown(path)}, {lines} lines."

    about = Tool(
        "write",
        "Write a file: create it, or replace its whole content. Use edit to change a part.",
        {
            "path": text("The file, relative to the working folder."),
            "content": text("The whole content.", empty=True),
        },
        ("path", "content"),
    )
    return AgentTool(about, run, asks=asks)


def edit(workspace: Workspace) -> AgentTool:
    """Return the tool that replaces text in a file."""

    def asks(arguments: Arguments) -> PermissionRequest:
        path = workspace.resolve(arguments["path"], writing=True)
        before, after = _changed(path, arguments, workspace)
        return PermissionRequest("edit", workspace.shown(path), _bounded(_diff(before, after, path.name)))

    async def run(arguments: Arguments) -> str:
        path = workspace.resolve(arguments["path"], writing=True)
        before, after = await asyncio.to_thread(_changed, path, arguments, workspace)
        await asyncio.to_thread(workspace.put, path, after)
        workspace.touch("modified", path)
        return f"Changed {workspace.shown(path)}:\n{_diff(before, after, path.name)}"

    about = Tool(
        "edit",
        "Replace text in a file. The old text must match exactly, including whitespace, and only once unless "
        "`all` is set.",
        {
            "path": text("The file, relative to the working folder."),
            "old": text("The text to replace."),
            "new": text("The new text.", empty=True),
            "all": flag("Replace every occurrence."),
        },
        ("path", "old", "new"),
    )
    return AgentTool(about, run, asks=asks)


def _changed(path: Path, arguments: Arguments, workspace: Workspace) -> tuple[str, str]:
    """Return a file's text before and after; raises InputError unless the old text is there once."""
    try:
        before = workspace.content(path).decode("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    old, new = arguments["old"], arguments["new"]
    count = before.count(old)
    if old == new:
        raise InputError("old and new are the same text")
    if not count and "\r\n" in before and (crlf := old.replace("\n", "\r\n")) in before:
        old, new = crlf, new.replace("\n", "\r\n")
        count = before.count(old)
    if not count:
        raise InputError("the old text is not in the file: read it again")
    if count > 1 and not arguments.get("all"):
        raise InputError(f"the old text occurs {count} times: include more of the text around it, or set all")
    return before, before.replace(old, new)


def _current_text(path: Path, workspace: Workspace) -> str:
    """Return the text of a file; "" if it is missing, binary or too large."""
    try:
        return workspace.content(path).decode("utf-8")
    except (InputError, OSError, UnicodeDecodeError):
        return ""


def _diff(before: str, after: str, name: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    return "\n".join(lines)


def _bounded(diff: str) -> str:
    """Return the first LINES lines of a diff, each cut at LONGEST characters, and how much is left out."""
    lines = diff.splitlines()
    shown = [
        line if len(line) <= LONGEST else f"{line[:LONGEST]}… [{len(line) - LONGEST:,} more characters]"
        for line in lines[:LINES]
    ]
    if len(lines) > LINES:
        shown.append(f"[… {len(lines) - LINES:,} more lines of the change are not shown]")
    return "\n".join(shown)
