"""What `chat`, `run` and `rpc` share: their options, and the host that these describe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from foldline.agent.options import HostOptions
from foldline.cli.options import store_option

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option("--model", metavar="PROVIDER:NAME", help="The model to talk to  [default: the settings']"),
    click.option("--window", type=click.IntRange(min=1), help="Its context in tokens  [default: as known]"),
    click.option(
        "--policy", metavar="NAME", help="How the session is folded  [default: the settings', else foldline]"
    ),
    store_option,
    click.option(
        "--resume", "session", metavar="ID", help="Go on with a session, by its id or a part of it."
    ),
    click.option("--continue", "newest", is_flag=True, help="Go on with the newest session of this folder."),
    click.option(
        "--no-autocompact", "autocompact", flag_value=False, default=True, help="Never fold unasked."
    ),
    click.option(
        "--allow", multiple=True, metavar="RULE", help="Allow without asking: write, 'bash:git *', '*'."
    ),
    click.option("--deny", multiple=True, metavar="RULE", help="Never allow; goes before --allow."),
    click.option(
        "--allow-folder", "folders", multiple=True, metavar="DIR", help="Let tools work there, too."
    ),
    click.option("--no-tools", "use_tools", flag_value=False, default=True, help="Offer the model no tools."),
    click.option(
        "--folder",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=Path(),
        help="The folder to work in  [default: the current one]",
    ),
)


def agent_options(command: F) -> F:
    """Add the options of the agent."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def options_of(given: dict[str, Any]) -> HostOptions:
    """Return how the host works, from the values of `agent_options`."""
    if given["session"] and given["newest"]:
        raise click.UsageError("--resume names a session, --continue takes the newest: give one of them")
    return HostOptions(store=given.pop("store_url"), **given)
