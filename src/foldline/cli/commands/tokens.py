"""`foldline tokens`: a token for `foldline serve`, and what to set so that it is known by its hash."""

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
    name: str | None = option("Who has it, for the logs."),
    scope: tuple[str, ...] = option(
        "What it allows: read, write, admin (to delete), metrics; repeatable  [default: all but metrics]",
        type=OneOf(get_args(Scope)),
    ),
    days: int | None = option("How long it is valid  [default: for ever]", type=click.IntRange(1, 36_500)),
) -> Shown:
    """Make a token for `foldline serve`. It is shown once: the settings hold only its hash.

    TENANT is whose sessions it opens. Each has a store of its own, `default` the service's main one.
    """
    check_tenant(tenant)
    token = new_token()
    grant: dict[str, Any] = {"tenant": tenant, "scopes": list(scope or EVERYTHING)}
    if name:
        grant["name"] = name
    if days:
        until = (datetime.now(UTC) + timedelta(days=days)).replace(microsecond=0)
        grant["expires"] = until.isoformat()
    line = ", ".join(f"{key} = {_toml(key, value)}" for key, value in grant.items())

    def show() -> None:
        click.echo(token)
        click.echo(
            "It is shown once. Put this into ~/.foldline/settings.toml (the first one needs a restart):\n\n"
            f'[serve.tokens]\n"{hashed(token)}" = {{ {line} }}',
            err=True,
        )

    return Shown(lambda: {"token": token, "hash": hashed(token), **grant}, show)


def _toml(key: str, value: object) -> str:
    return str(value) if key == "expires" else json.dumps(value)
