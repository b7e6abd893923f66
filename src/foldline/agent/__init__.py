"""A small coding agent on a session: a loop, its tools and their permissions, by the public API alone.

async with foldline.open("sqlite:///work.db", "today", system=SYSTEM) as session:
    agent = Agent(session, provider, toolbox, emit=print)
    await agent.run("Mend the failing test.")
"""

from foldline.agent.host import Host, HostOptions
from foldline.agent.loop import Agent
from foldline.agent.permissions import Permissions
from foldline.agent.tools.toolbox import Toolbox
from foldline.agent.workspace import Workspace

__all__ = ["Agent", "Host", "HostOptions", "Permissions", "Toolbox", "Workspace"]
