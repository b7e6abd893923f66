"""The options of a host; importing this loads nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from foldline.agent.tools.toolbox import AgentTool
    from foldline.core.decide.policy import Policy
    from foldline.core.measure.window import Window
    from foldline.providers import Provider
    from foldline.stores import Store


class HostOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a host; the settings provide the defaults.

    `session` is an id or a part of one (None: a new session); `newest` resumes the newest one of the folder.
    `provider` is a model in this process, used instead of `model`. `tools` are added to the agent's own;
    without `use_tools` there are none. `home` is the directory of the user's settings.
    """

    folder: Path = Path()
    store: str | Store | None = None
    session: str | None = None
    newest: bool = False
    model: str | None = None
    policy: str | Policy | None = None
    window: int | Window | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    autocompact: bool = True
    system: str = ""
    provider: Provider | None = None
    tools: tuple[AgentTool, ...] = ()
    use_tools: bool = True
    home: Path | None = None
