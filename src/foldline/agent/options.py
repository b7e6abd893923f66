"""How a host works, as its faces say it; importing this loads nothing else."""

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
    """How a host works; what is not given is the settings'.

    `session` is an id or the beginning of one (None: a new session); `newest` takes the newest of the folder.
    `provider` is a model in this process, in the place of the one that `model` names. `tools` come beside the
    agent's own, none are offered without `use_tools`; `home` is the directory of the user's settings.
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
