"""Options that several commands take; importing this loads nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from foldline.errors import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])

TOKENS = click.IntRange(min=1)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
store_option = click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Where sessions live: sqlite:///FILE, postgresql://...  "
    "[default: the settings', else ~/.foldline/foldline.db]",
)
file_argument = click.argument("file", type=click.Path(path_type=str))
policies_option = click.option(
    "--policies",
    "policy_file",
    type=click.Path(path_type=Path),
    help="A TOML file with policies of your own.",
)
policy_option = click.option(
    "--policy",
    "policy_name",
    metavar="NAME",
    help="A preset, or one of your own  [default: the settings', else foldline]",
)


def policy_options(command: F) -> F:
    """Add --policy and --policies."""
    return policy_option(policies_option(command))


def plot_options(what: str) -> Callable[[F], F]:
    """Return what adds --plot, which draws `what`, and --plot-linked."""

    def add(command: F) -> F:
        command = click.option(
            "--plot-linked",
            is_flag=True,
            help="HTML loads plotly's script from the network: under 1 MB, not 5.",
        )(command)
        return click.option(
            "--plot",
            "plots",
            multiple=True,
            type=click.Path(path_type=Path),
            metavar="OUT",
            help=f"Draw {what}: OUT.html, OUT.png or OUT.svg.",
        )(command)

    return add


class OneOf(click.Choice[str]):
    """A choice of names that says which known one is close to a wrong one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice; raises BadParameter, with the closest one, for any other value."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.rstrip('.')}{did_you_mean(str(value), self.choices)}.", param, ctx)
