"""`foldline sessions`: list the stored sessions."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import msgspec

from foldline.cli.common import json_option, store_option
from foldline.cli.output import out, print_json, row, table
from foldline.cli.store import with_store


@click.command(
    epilog="\b\nExamples:\n  foldline sessions\n  foldline sessions --store sqlite:///team.db --json"
)
@store_option
@json_option
def command(store_url: str | None, as_json: bool) -> None:
    """List the stored sessions, the last updated first."""
    found = with_store(store_url, lambda store: store.sessions())
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    if not found:
        out().print("No session is stored yet: `foldline import FILE` adds one.")
        return
    rows = table("=id", "title", "#messages", "#tokens", "#compactions", "=updated")
    for info in found:
        when = datetime.fromtimestamp(info.updated, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
        figures = (f"{info.messages:,}", f"{info.tokens:,}", f"{info.compactions:,}")
        row(rows, info.id, info.title, *figures, when)
    out().print(rows)
