"""`foldline backup`: copy the store in use to a file."""

from __future__ import annotations

from pathlib import Path

import click

from foldline.cli.options import json_option, store_option
from foldline.cli.output import escape, out, print_json, progress
from foldline.config import settings
from foldline.stores import open_store
from foldline.stores.backup import back_up

EPILOG = """
\b
Examples:
  foldline backup sessions-2026-11-22.db
  foldline backup --store sqlite:///team.db /backups/team.db
"""


@click.command(epilog=EPILOG)
@click.argument("target", type=click.Path(path_type=Path))
@store_option
@json_option
def command(target: Path, store_url: str | None, as_json: bool) -> None:
    """Copy the store to the new file TARGET, whole or not at all; others may go on writing.

    To restore it, name it as the store (`--store sqlite:///TARGET`), or put it in the place of the old file
    while no program has that open.
    """
    with progress("copying the store"):
        back_up(open_store(store_url or settings().store), target)
    size = target.stat().st_size
    if as_json:
        print_json({"target": str(target), "bytes": size})
        return
    out().print(f"[green]backed up:[/] {escape(str(target))}, {size:,} bytes", soft_wrap=True)
