"""`foldline serve`: sessions over HTTP, and a gateway for any agent."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Literal, NoReturn

import click
import msgspec

from foldline import files
from foldline.cli.options import STORE, OneOf, command, option
from foldline.cli.tracing import traced
from foldline.config import settings
from foldline.errors import InputError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
VARIABLE = "FOLDLINE_TOKEN"
LONGEST = 10_000  # bytes of a file with a token


class ServeOptions(msgspec.Struct, frozen=True):
    """What goes before the settings."""

    host: str | None = option("Where to listen  [default: 127.0.0.1]", metavar="ADDRESS")
    port: int | None = option("0 takes a free one  [default: 8400]", type=click.IntRange(0, 65_535))
    store: str | None = STORE
    policy: str | None = option(
        "How sessions are folded  [default: the settings', else foldline]", metavar="NAME"
    )
    window: int | None = option("The models' context in tokens  [default: as known]")
    model: str | None = option("Who answers the turns of sessions under /api", metavar="NAME")
    openai_upstream: str | None = option("Where OpenAI's APIs are  [default: api.openai.com]", metavar="URL")
    anthropic_upstream: str | None = option(
        "Where Anthropic's is  [default: api.anthropic.com]", metavar="URL"
    )
    google_upstream: str | None = option(
        "Where Gemini's is  [default: generativelanguage.googleapis.com]", metavar="URL"
    )
    summaries: str | None = option(
        "Who writes summaries: upstream (the model that is asked), offline (code alone), PROVIDER:MODEL "
        " [default: upstream]",
        metavar="WHO",
    )
    log: Literal["plain", "json"] | None = option(
        "On standard error: what goes wrong, or each request too, as JSON lines  [default: plain]",
        type=OneOf(("plain", "json")),
    )
    workers: int | None = option("Processes that serve together  [default: 1]", type=click.IntRange(1, 256))


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
    given: ServeOptions,
    token_file: Path | None = option(
        f"Answer those alone who send the token in it; {VARIABLE} in the environment may hold one, too.",
        metavar="FILE",
    ),
    token: str | None = option(
        "The token itself: every user of the machine sees it in `ps`.", metavar="TOKEN"
    ),
    opened: bool = option("Open the page in the browser.", "--open"),
    demo: bool = option("Show the example session, with a scripted model; keep nothing."),
) -> None:
    """Serve sessions over HTTP, and a gateway that folds what agents send to their models.

    Point an agent at http://HOST:PORT/v1 in place of its provider; its sessions never overflow from then on.
    Only this machine may ask, unless a token is set. All of it can be set under [serve] in
    ~/.foldline/settings.toml. It prints its address when it is ready, and ends at Ctrl-C or SIGTERM when
    what is under way has ended.
    """
    changes = {name: value for name, value in msgspec.structs.asdict(given).items() if value is not None}
    if (secret := _token(token, token_file)) is not None:
        changes["tokens"] = {secret: "default"}
    wanted = msgspec.structs.replace(settings().serve, **changes)
    if wanted.host not in LOOPBACK and not wanted.tokens:
        raise InputError(
            f"anybody could ask at {wanted.host}: give --token-file, {VARIABLE} in the environment, or "
            "[serve] tokens in the settings"
        )
    try:
        from foldline.service.demo import demonstration  # noqa: PLC0415  an optional extra
        from foldline.service.server import HttpServer  # noqa: PLC0415
        from foldline.service.workers import Workers  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foldline"):
            raise
        raise InputError(f"the service needs {error.name}: pip install 'foldline[serve]'") from error
    signal.signal(signal.SIGTERM, _leave)  # once the server has drained, what was opened here is closed too
    ready = partial(_ready, opened=opened)
    with traced(), demonstration(wanted) if demo else nullcontext(wanted) as settled:
        if settled.workers > 1:
            Workers(settled, ready, traced).run()
        HttpServer(settled, ready).run()


def _token(given: str | None, file: Path | None) -> str | None:
    """Return the token of the command line, else that of the environment; None where there is none."""
    if file is None:
        return os.environ.get(VARIABLE) or None if given is None else given
    if given is not None:
        raise InputError("--token and --token-file: give one of them")
    try:
        return files.content(file.expanduser(), LONGEST).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file {file}: cannot be read: {error}") from error


def _leave(number: int, frame: object) -> NoReturn:
    del frame
    sys.exit(128 + number)


def _ready(url: str, *, opened: bool) -> None:
    click.echo(url)
    sys.stdout.flush()
    if opened:
        webbrowser.open(url)
