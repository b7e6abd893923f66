"""`foldline show ID`: show one stored session."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from foldline.cli.options import json_option, store_option
from foldline.cli.output import escape, out, print_json
from foldline.cli.reports.fold import gist, print_figures, print_text, print_view
from foldline.cli.store import known, with_store
from foldline.core.log.codec import pretty
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pinned, Pruned, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import AddedItem, Item, ViewState
from foldline.errors import InputError
from foldline.stores import Store

EPILOG = """
\b
Examples:
  foldline show login-bug               the history, one line per message
  foldline show login-bug --view        what the model is sent
  foldline show login-bug --receipts    what each boundary did
  foldline show login-bug --entry 1f09  one entry, whole
"""


@click.command(epilog=EPILOG)
@click.argument("session", metavar="ID")
@click.option("--view", is_flag=True, help="Show what the model is sent instead of the whole history.")
@click.option("--receipts", is_flag=True, help="Show what each boundary did.")
@click.option("--entry", metavar="ENTRY", help="Show the entry whose id begins with this.")
@store_option
@json_option
def command(
    session: str, view: bool, receipts: bool, entry: str | None, store_url: str | None, as_json: bool
) -> None:
    """Show the stored session ID: its history with its boundaries, its view, or one entry."""
    entries = with_store(store_url, lambda store: _path(store, session))
    if entry is not None:
        _show_entry([one for one in entries if one.id.startswith(entry)], entry, as_json=as_json)
    elif view:
        _show_view(ViewState(entries, counter=OFFLINE).view(), as_json=as_json)
    elif as_json:
        print_json([one for one in entries if not receipts or isinstance(one, Compacted | Pruned)])
    else:
        _print_path(entries, out(), receipts=receipts)


def _show_entry(found: list[Entry], start: str, *, as_json: bool) -> None:
    if not found:
        raise InputError(f"no entry {start!r} on this session's path")
    if len(found) > 1:
        ids = ", ".join(one.id[:16] for one in found[:5])
        raise InputError(f"{start!r} is ambiguous, it matches {len(found)} entries: {ids}")
    if as_json:
        print_json(found[0])
    else:
        print_text(pretty(found[0]).decode(), out())


def _show_view(items: list[Item], *, as_json: bool) -> None:
    if as_json:
        print_json([_item(item) for item in items])
    else:
        print_view(items, out(), most=len(items))


def _item(item: Item) -> dict[str, Any]:
    if isinstance(item, AddedItem):
        return {"kind": item.kind, "message": item.message, "tokens": item.tokens}
    return {"kind": "kept", "entry": item.entry.id, "message": item.entry.message, "edits": item.edits}


async def _path(store: Store, session: str) -> list[Entry]:
    name = await known(store, session)
    return [entry async for entry in store.path(name)]


def _print_path(entries: list[Entry], console: Console, *, receipts: bool) -> None:
    for entry in entries:
        short = f"[dim]{entry.id[:8]}[/]"
        match entry:
            case Said():
                if not receipts:
                    message = entry.message
                    text = escape(gist(message, 90))
                    line = f"{short} [cyan]{message.role:9}[/] [dim]{entry.tokens:>7,}[/]  {text}"
                    console.print(line, no_wrap=True, overflow="ellipsis")
            case Compacted() | Pruned():
                kind = "compacted" if isinstance(entry, Compacted) else "pruned"
                console.print(f"{short} [bold magenta]── {kind}: {entry.receipt.reason} ──[/]")
                if receipts:
                    print_figures(entry.receipt, console)
            case Lifted():
                console.print(
                    f"{short} [magenta]{'undone' if entry.lifted else 'redone'}:[/] {entry.target[:8]}"
                )
            case Pinned():
                console.print(
                    f"{short} [magenta]{'pinned' if entry.on else 'unpinned'}:[/] {entry.target[:8]}"
                )
            case Noted():
                if not receipts:
                    console.print(f"{short} [dim]noted {entry.kind}: {escape(str(entry.data)[:80])}[/]")
