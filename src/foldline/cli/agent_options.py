"""What `chat`, `run` and `rpc` share: their options, and the host that these describe."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from foldline.agent.options import HostOptions
from foldline.cli.options import STORE, option


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the agent."""

    model: str | None = option("The model to talk to  [default: the settings']", metavar="PROVIDER:NAME")
    window: int | None = option("Its context in tokens  [default: as known]")
    policy: str | None = option(
        "How the session is folded  [default: the settings', else foldline]", metavar="NAME"
    )
    store: str | None = STORE
    session: str | None = option("Go on with a session, by its id or a part of it.", "--resume", metavar="ID")
    newest: bool = option("Go on with the newest session of this folder.", "--continue")
    autocompact: bool = option("Never fold unasked.", "--no-autocompact", flag_value=False, default=True)
    allow: tuple[str, ...] = option("Allow without asking: write, 'bash:git *', '*'.", metavar="RULE")
    deny: tuple[str, ...] = option("Never allow; goes before --allow.", metavar="RULE")
    folders: tuple[str, ...] = option("Let tools work there, too.", "--allow-folder", metavar="DIR")
    use_tools: bool = option("Offer the model no tools.", "--no-tools", flag_value=False, default=True)
    folder: Path = option(
        "The folder to work in  [default: the current one]",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        show_default=False,
        default=Path(),
    )

    demo: bool = option("Talk to a scripted model in a folder of its own.")

    def host(self) -> HostOptions:
        """Return how the host works; who shows a screen first makes the demonstration later."""
        if self.session and self.newest:
            raise click.UsageError("--resume names a session, --continue takes the newest: give one of them")
        given = msgspec.structs.asdict(self)
        del given["demo"]
        return HostOptions(**given)

    def demonstrated(self) -> HostOptions:
        """Return how the host works, in the demonstration where that is asked for."""
        if not self.demo:
            return self.host()
        from foldline.agent.demo import demonstration  # noqa: PLC0415  it loads the models for tests

        return demonstration(self.host())
