"""`foldline tokens`: make a token for `foldline serve`, and print the setting with its hash."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import click

from foldline.cli.options import OneOf, Shown, argument, command, option
from foldline.config import EVERYTHING, Scope
from foldline.service.tokens import check_tenant, hashed, new_token


@command(
    "foldline tokens alice",
    "foldline tokens alice --name ci --scope read --scope write --days 90",
    "foldline tokens default --name prometheus --scope metrics",
)
def tokens(
    tenant: str = argument("TENANT"),
    name: str | None = option("The name of its holder, for the logs."),
    scope: tuple[str, ...] = option(
        "What it allows: read, write, admin (to delete), metrics; repeatable  [default: all but metrics]",
        type=OneOf(get_args(Scope)),
    ),
    days: int | None = option("Days until it expires  [default: never]", type=click.IntRange(1, 36_500)),
) -> Shown:
    """Make a token for `foldline serve`. It is shown only now: the settings hold only its hash.

    The token opens the sessions of TENANT. Each tenant has a separate store; `default` has the main one.
    """
    check_tenant(tenant)
    token = new_token()
    grant: dict[str, Any] = {"tenant": tenant, "scopes": list(scope or EVERYTHING)}
    if name:
        grant["name"] = name
    if days:
        grant["expires"] = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")
    line = ", ".join(f"{key} = {_toml(key, value)}" for key, value in grant.items())

    def show() -> None:
        click.echo(token)
        click.echo(
            "The token is shown only now. Add this to ~/.foldline/settings.toml (the first token needs a "
            "restart of the service):\n\n"
            f'[serve.tokens]\n"{hashed(token)}" = {{ {line} }}',
            err=True,
        )

    return Shown(lambda: {"token": token, "hash": hashed(token), **grant}, show)


def _toml(key: str, value: object) -> str:
    return str(value) if key == "expires" else json.dumps(value)
