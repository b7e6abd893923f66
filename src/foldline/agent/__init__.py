"""A small coding agent on a session: a loop, its tools and their permissions.

    async with foldline.open("sqlite:///work.db", "today", system=SYSTEM) as session:
        agent = Agent(session, provider, toolbox, emit=print)
        await agent.run("Mend the failing test.")

The loop (`loop.py`, `replies.py`) needs the public API alone, as a loop of your own would. Its host, tools
and commands also use parts of Foldline that are not public.

Importing runs nothing: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldline.agent.host import Host
    from foldline.agent.loop import Agent
    from foldline.agent.options import HostOptions
    from foldline.agent.permissions import Permissions
    from foldline.agent.tools.toolbox import Toolbox
    from foldline.agent.workspace import Workspace

_HOMES = {
    "Agent": "loop",
    "Host": "host",
    "HostOptions": "options",
    "Permissions": "permissions",
    "Toolbox": "tools.toolbox",
    "Workspace": "workspace",
}

__all__ = ["Agent", "Host", "HostOptions", "Permissions", "Toolbox", "Workspace"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'foldline.agent' has no attribute {name!r}")
    return getattr(import_module(f"foldline.agent.{_HOMES[name]}"), name)
