"""`foldline serve`: sessions over HTTP, and a gateway for any agent; `foldline tokens`: who may use it."""

from __future__ import annotations

import json
import os
import signal
import sys
import webbrowser
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import click
import msgspec

from foldline import files
from foldline.cli.options import STORE, Shown, argument, command, option
from foldline.cli.tracing import traced
from foldline.config import EVERYTHING, Scope, settings
from foldline.errors import InputError
from foldline.service.tokens import check_tenant, hashed, new_token

LOOPBACK = ("127.0.0.1", "::1", "localhost")
VARIABLE = "FOLDLINE_TOKEN"
LONGEST = 10_000  # bytes of a file with a token


class ServeOptions(msgspec.Struct, frozen=True):
    """Options that override the settings."""

    host: str | None = option("The address to listen on  [default: 127.0.0.1]", metavar="ADDRESS")
    port: int | None = option(
        "The port to listen on; 0 picks a free one  [default: 8400]", type=click.IntRange(0, 65_535)
    )
    store: str | None = STORE
    policy: str | None = option(
        "The policy that folds sessions  [default: the settings', else foldline]", metavar="NAME"
    )
    window: int | None = option("The context window of all models, in tokens  [default: each model's]")
    model: str | None = option("The model that answers in sessions under /api.", metavar="NAME")
    openai_upstream: str | None = option(
        "The address of OpenAI's APIs  [default: api.openai.com]", metavar="URL"
    )
    anthropic_upstream: str | None = option(
        "The address of Anthropic's API  [default: api.anthropic.com]", metavar="URL"
    )
    google_upstream: str | None = option(
        "The address of Gemini's API  [default: generativelanguage.googleapis.com]", metavar="URL"
    )
    summaries: str | None = option(
        "What writes summaries: upstream (the requested model), offline (no model), or PROVIDER:MODEL  "
        "[default: upstream]",
        metavar="WHO",
    )
    log: Literal["plain", "json"] | None = option(
        "What to write to standard error: errors (plain), or also each request (json)  [default: plain]"
    )
    workers: int | None = option("Processes that share the work  [default: 1]", type=click.IntRange(1, 256))


@command(
    "foldline serve",
    "foldline serve --demo --open",
    "foldline serve --port 0 --openai-upstream http://127.0.0.1:8080/v1 --window 32000",
    "foldline serve --model anthropic:claude-sonnet-4-5",
    "foldline serve --workers 4",
    "(umask 077; openssl rand -hex 24 > token)",
    "foldline serve --host 0.0.0.0 --token-file token",
    json=False,
)
def serve(
    options: ServeOptions,
    token_file: Path | None = option(
        f"Require the token in this file from clients; {VARIABLE} in the environment may hold it, too.",
        metavar="FILE",
    ),
    token: str | None = option(
        "The token itself; every user of this machine can see it in `ps`.", metavar="TOKEN"
    ),
    opened: bool = option("Open the page in the browser.", "--open"),
    demo: bool = option("Serve the example session with a scripted model; store nothing."),
) -> None:
    """Serve sessions over HTTP, and a gateway that folds what agents send to their models.

    Set an agent's provider URL to http://HOST:PORT/v1; its sessions then never overflow. Without a token,
    only this machine is served. The options can also be set under [serve] in ~/.foldline/settings.toml. The
    service prints its address when it is ready. Ctrl-C or SIGTERM stops it after the requests in progress.
    """
    changes = {name: value for name, value in msgspec.structs.asdict(options).items() if value is not None}
    if (secret := _token(token, token_file)) is not None:
        changes["tokens"] = {secret: "default"}
    serve_settings = msgspec.structs.replace(settings().serve, **changes)
    if serve_settings.host not in LOOPBACK and not serve_settings.tokens:
        raise InputError(
            f"other machines can reach {serve_settings.host}: set a token with --token-file, with {VARIABLE} "
            "in the environment, or with [serve] tokens in the settings"
        )
    try:
        from foldline.service.demo import demonstration  # noqa: PLC0415  an optional extra
        from foldline.service.server import HttpServer  # noqa: PLC0415
        from foldline.service.workers import Workers  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foldline"):
            raise
        raise InputError(f"the service needs {error.name}: pip install 'foldline[serve]'") from error
    signal.signal(signal.SIGTERM, _exit)  # lets the `with` below close what it opened
    ready = partial(_ready, opened=opened)
    with traced(), demonstration(serve_settings) if demo else nullcontext(serve_settings) as final:
        if final.workers > 1:
            Workers(final, ready, traced).run()
        HttpServer(final, ready).run()


def _token(token: str | None, file: Path | None) -> str | None:
    """Return the token of the command line, else that of the environment; None if neither has one."""
    if file is None:
        return os.environ.get(VARIABLE) or None if token is None else token
    if token is not None:
        raise InputError("--token and --token-file: give only one of them")
    try:
        return files.content(file.expanduser(), LONGEST).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror or error if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"--token-file {file}: cannot be read: {problem}") from error


def _exit(number: int, frame: object) -> NoReturn:
    del frame
    sys.exit(128 + number)


def _ready(url: str, *, opened: bool) -> None:
    click.echo(url)
    if opened:
        webbrowser.open(url)


@command(
    "foldline tokens alice",
    "foldline tokens alice --name ci --scope read --scope write --days 90",
    "foldline tokens default --name prometheus --scope metrics",
)
def tokens(
    tenant: str = argument("TENANT"),
    name: str | None = option("The name of its holder, for the logs."),
    scope: tuple[Scope, ...] = option(
        "What it allows: read, write, admin (to delete), metrics; repeatable  [default: all but metrics]"
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
    quoted = {key: value if key == "expires" else json.dumps(value) for key, value in grant.items()}
    line = ", ".join(f"{key} = {value}" for key, value in quoted.items())

    def show() -> None:
        click.echo(token)
        click.echo(
            "The token is shown only now. Add this to ~/.foldline/settings.toml (the first token needs a "
            "restart of the service):\n\n"
            f'[serve.tokens]\n"{hashed(token)}" = {{ {line} }}',
            err=True,
        )

    return Shown(lambda: {"token": token, "hash": hashed(token), **grant}, show)
