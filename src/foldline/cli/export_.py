"""`foldline export ID`: a stored session as a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from foldline.cli.common import json_option, store_option
from foldline.cli.output import err, escape, message_lines, print_json, progress, warn, write_whole
from foldline.cli.stored import known, with_store
from foldline.core.log.entries import Entry, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import Fold, native_items
from foldline.dialects import get, names
from foldline.dialects.base import Rendered
from foldline.stores import Store
from foldline.transcripts import dump

EPILOG = """
\b
Examples:
  foldline export login-bug -o login-bug.jsonl            everything, lossless, for another Foldline
  foldline export login-bug --format openai-chat --view   the folded messages, ready to send
  foldline export login-bug --format anthropic -o all.jsonl
"""


class _Stored(NamedTuple):
    session: str
    leaf: str | None
    path: list[Entry]
    log: list[Entry]  # every branch


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
@click.option(
    "--view", is_flag=True, help="What the model is sent, instead of all that was said (as openai-chat)."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write here instead of to standard output."
)
@store_option
@json_option
def command(
    session: str, form: str, view: bool, output: Path | None, store_url: str | None, as_json: bool
) -> None:
    """Write the stored session ID as JSON lines.

    The form jsonl holds every entry of every branch, boundaries included, and can be imported again. A
    dialect's name writes the messages of the path, one a line. With --json and no -o: one document.
    """
    with progress("reading"):
        stored = with_store(store_url, lambda store: _read(store, session))
    target = output or Path("-")
    if form == "jsonl" and not view:
        header = {"session": stored.session, "leaf": stored.leaf}
        count = len(stored.log)
        if as_json and output is None:
            print_json({**header, "entries": stored.log})
        else:
            write_whole(target, lambda stream: dump(stored.log, stream, **header))
    else:
        form = "openai-chat" if form == "jsonl" else form
        rendered = _rendered(stored.path, form, view=view)
        count = len(rendered.messages)
        if as_json and output is None:
            print_json({"dialect": form, "system": rendered.system, "messages": rendered.messages})
        else:
            lines = message_lines(rendered.messages, system=rendered.system)
            write_whole(target, lambda stream: stream.writelines(lines))
    if output is not None:
        _tell(stored.session, output, form, count, view=view, as_json=as_json)


async def _read(store: Store, session: str) -> _Stored:
    name = await known(store, session)
    path = [entry async for entry in store.path(name)]
    return _Stored(name, await store.leaf(name), path, [entry async for entry in store.all(name)])


def _rendered(entries: Iterable[Entry], dialect: str, *, view: bool) -> Rendered:
    if view:
        items = native_items(Fold(entries, counter=OFFLINE).view())
    else:
        items = [(entry.message, ()) for entry in entries if isinstance(entry, Said)]
    rendered = get(dialect).render(items)
    warn(rendered.warnings)
    return rendered


def _tell(session: str, output: Path, form: str, count: int, *, view: bool, as_json: bool) -> None:
    summary: dict[str, Any] = {"session": session, "file": str(output), "format": form, "view": view}
    if as_json and str(output) != "-":
        print_json(msgspec.to_builtins({**summary, "count": count}))
    else:
        what = "entries" if form == "jsonl" and not view else "messages"
        err().print(f"[green]wrote[/] {count:,} {what} to {escape(str(output))}")
