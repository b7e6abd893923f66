"""`foldline export ID`: a stored session as a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from foldline.cli.common import err, json_option, print_json, store_option, warn
from foldline.cli.stored import known, with_store
from foldline.core.log.codec import encode
from foldline.core.log.entries import Entry, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import Fold, native_items
from foldline.dialects import get, names
from foldline.stores import Store
from foldline.transcripts import dump

EPILOG = """
\b
Examples:
  foldline export login-bug -o login-bug.jsonl            everything, lossless, for another Foldline
  foldline export login-bug --format openai-chat --view   the folded messages, ready to send
  foldline export login-bug --format anthropic -o all.jsonl
"""


@click.command(epilog=EPILOG)
@click.argument("session", metavar="ID")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", *names()]),
    default="jsonl",
    show_default=True,
    help="jsonl is our own, lossless.",
)
@click.option("--view", is_flag=True, help="What the model is sent, instead of all that was said.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write here instead of to standard output."
)
@store_option
@json_option
def command(
    session: str, form: str, view: bool, output: Path | None, store_url: str | None, as_json: bool
) -> None:
    """Write the stored session ID as JSON lines.

    The form jsonl holds every entry, boundaries included, and can be imported again. A dialect's name
    writes its messages, one a line.
    """
    entries = with_store(store_url, lambda store: _entries(store, session))
    if form == "jsonl" and not view:
        _write(output, lambda stream: dump(entries, stream))
        count = len(entries)
    else:
        messages = _messages(entries, "openai-chat" if form == "jsonl" else form, view=view)
        if as_json and output is None:
            print_json(messages)
            return
        _write(output, lambda stream: _lines(messages, stream))
        count = len(messages)
    if output is not None:
        summary = {"session": session, "file": str(output), "format": form, "view": view, "count": count}
        print_json(summary) if as_json else err().print(f"[green]wrote[/] {count:,} to {output}")


async def _entries(store: Store, session: str) -> list[Entry]:
    name = await known(store, session)
    return [entry async for entry in store.path(name)]


def _messages(entries: Iterable[Entry], dialect: str, *, view: bool) -> list[Any]:
    if view:
        items = native_items(Fold(entries, counter=OFFLINE).view())
    else:
        items = [(entry.message, ()) for entry in entries if isinstance(entry, Said)]
    rendered = get(dialect).render(items)
    warn(rendered.warnings)
    return rendered.messages


def _lines(messages: Iterable[Any], stream: Any) -> None:
    for message in messages:
        stream.write(encode(message) + b"\n")


def _write(output: Path | None, write: Any) -> None:
    """Write to standard output, or to a file that appears whole or not at all."""
    if output is None:
        with nullcontext(sys.stdout.buffer) as stream:
            write(stream)
        return
    part = output.with_name(output.name + ".part")
    try:
        with part.open("wb") as stream:
            write(stream)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
