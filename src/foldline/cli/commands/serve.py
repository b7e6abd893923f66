"""`foldline serve`: sessions over HTTP, and a gateway for any agent."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from foldline import files
from foldline.cli.options import TOKENS, store_option
from foldline.cli.tracing import traced
from foldline.config import ServeSettings, settings
from foldline.errors import InputError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
VARIABLE = "FOLDLINE_TOKEN"
LONGEST = 10_000  # bytes of a file with a token
EPILOG = """
\b
Examples:
  foldline serve
  foldline serve --demo --open
  foldline serve --port 0 --openai-upstream http://127.0.0.1:8080/v1 --window 32000
  foldline serve --model anthropic:claude-sonnet-4-5
  foldline serve --workers 4
  (umask 077; openssl rand -hex 24 > token)
  foldline serve --host 0.0.0.0 --token-file token
"""


@click.command(epilog=EPILOG)
@click.option("--host", metavar="ADDRESS", help="Where to listen  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="0 takes a free one  [default: 8400]")
@store_option
@click.option(
    "--policy", metavar="NAME", help="How sessions are folded  [default: the settings', else foldline]"
)
@click.option("--window", type=TOKENS, help="The models' context in tokens  [default: as known]")
@click.option("--model", metavar="NAME", help="Who answers the turns of sessions under /api")
@click.option("--openai-upstream", metavar="URL", help="Where OpenAI's APIs are  [default: api.openai.com]")
@click.option(
    "--anthropic-upstream", metavar="URL", help="Where Anthropic's is  [default: api.anthropic.com]"
)
@click.option(
    "--summaries",
    metavar="WHO",
    help="Who writes summaries: upstream (the model that is asked), offline (code alone), PROVIDER:MODEL "
    " [default: upstream]",
)
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that serve together  [default: 1]")
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"Answer those alone who send the token in it; {VARIABLE} in the environment may hold one, too.",
)
@click.option("--token", metavar="TOKEN", help="The token itself: every user of the machine sees it in `ps`.")
@click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
@click.option("--demo", is_flag=True, help="Show the example session, with a scripted model; keep nothing.")
def command(
    store_url: str | None,
    token_file: Path | None,
    token: str | None,
    opened: bool,
    demo: bool,
    **given: Any,
) -> None:
    """Serve sessions over HTTP, and a gateway that folds what agents send to their models.

    Point an agent at http://HOST:PORT/v1 in place of its provider; its sessions never overflow from then on.
    Only this machine may ask, unless a token is set. All of it can be set under [serve] in
    ~/.foldline/settings.toml. It prints its address when it is ready, and ends at Ctrl-C or SIGTERM when
    what is under way has ended.
    """
    known = settings().serve
    changes = {name: value for name, value in {**given, "store": store_url}.items() if value is not None}
    serve: ServeSettings = msgspec.structs.replace(known, **changes)
    token = _token(token, token_file)
    if token is not None:
        serve = msgspec.structs.replace(serve, tokens={token: "default"})
    if serve.host not in LOOPBACK and not serve.tokens:
        raise InputError(
            f"anybody could ask at {serve.host}: give --token-file, {VARIABLE} in the environment, or "
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
    with traced(), demonstration(serve) if demo else nullcontext(serve) as settled:
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
