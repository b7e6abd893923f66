"""The options that `chat`, `run` and `rpc` share."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from foldline.agent.options import HostOptions
from foldline.cli.options import STORE, option


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the agent."""

    model: str | None = option("The model to use  [default: the settings']", metavar="PROVIDER:NAME")
    window: int | None = option("The context window in tokens  [default: the model's]")
    policy: str | None = option(
        "The policy that folds the session  [default: the settings', else foldline]", metavar="NAME"
    )
    store: str | None = STORE
    session: str | None = option("Continue a session, by its id or a part of it.", "--resume", metavar="ID")
    newest: bool = option("Continue the newest session of this folder.", "--continue")
    autocompact: bool = option(
        "Never fold automatically.", "--no-autocompact", flag_value=False, default=True
    )
    allow: tuple[str, ...] = option("Allow without asking: write, 'bash:git *', '*'.", metavar="RULE")
    deny: tuple[str, ...] = option("Never allow; wins over --allow.", metavar="RULE")
    folders: tuple[str, ...] = option("Also let tools work in this folder.", "--allow-folder", metavar="DIR")
    use_tools: bool = option("Offer the model no tools.", "--no-tools", flag_value=False, default=True)
    folder: Path = option(
        "The folder to work in  [default: the current one]",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        show_default=False,
        default=Path(),
    )

    demo: bool = option("Use a scripted model in a temporary folder.")

    def host(self) -> HostOptions:
        """Return the options of the host; ignores --demo, which `chat` prepares later."""
        if self.session and self.newest:
            raise click.UsageError(
                "--resume names a session, --continue takes the newest: give only one of them"
            )
        options = msgspec.structs.asdict(self)
        del options["demo"]
        return HostOptions(**options)

    def host_or_demo(self) -> HostOptions:
        """Return the options of the host, or of the demonstration."""
        if not self.demo:
            return self.host()
        from foldline.agent.demo import demonstration  # noqa: PLC0415  loads the test models

        return demonstration(self.host())
