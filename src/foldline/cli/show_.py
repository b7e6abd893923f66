"""`foldline show ID`: one stored session."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console

from foldline.cli.common import escape, json_option, out, print_json, store_option
from foldline.cli.report import gist, print_receipt, print_view
from foldline.cli.stored import known, with_store
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pinned, Pruned, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import Fold, Made
from foldline.stores import Store

EPILOG = """
\b
Examples:
  foldline show login-bug               the history, one line a message
  foldline show login-bug --view        what the model is sent
  foldline show login-bug --receipts    what each boundary did
"""


@click.command(epilog=EPILOG)
@click.argument("session", metavar="ID")
@click.option("--view", is_flag=True, help="Show what the model is sent, not all that was said.")
@click.option("--receipts", is_flag=True, help="Show what each boundary did.")
@click.option("--entry", metavar="ENTRY", help="Show one entry whole.")
@store_option
@json_option
def command(
    session: str, view: bool, receipts: bool, entry: str | None, store_url: str | None, as_json: bool
) -> None:
    """Show the stored session ID: its history with its boundaries, its view, or one entry."""
    entries = with_store(store_url, lambda store: _path(store, session))
    if entry is not None:
        entries = [one for one in entries if one.id.startswith(entry)]
    if as_json:
        items = Fold(entries, counter=OFFLINE).view() if view else entries
        print_json(
            msgspec.to_builtins(items, builtin_types=(bytes,), str_keys=True) if not view else _items(items)
        )
        return
    console = out()
    if entry is not None:
        for one in entries:
            console.print(msgspec.json.format(msgspec.json.encode(one), indent=2).decode(), markup=False)
        if not entries:
            console.print("no such entry on this session's path")
    elif view:
        items = Fold(entries, counter=OFFLINE).view()
        print_view(items, console, most=len(items))
    else:
        _print_path(entries, console, receipts=receipts)


def _items(items: object) -> object:
    return msgspec.to_builtins(
        [
            {"kind": item.kind, "message": item.message, "tokens": item.tokens}
            if isinstance(item, Made)
            else {"kind": "kept", "entry": item.entry.id, "message": item.entry.message, "edits": item.edits}
            for item in items  # pyright: ignore[reportUnknownVariableType, reportGeneralTypeIssues, reportAttributeAccessIssue]
        ]
    )


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
                    line = f"{short} [cyan]{message.role:9}[/] [dim]{entry.tokens:>7,}[/]  {escape(gist(message, 90))}"
                    console.print(line, no_wrap=True, overflow="ellipsis")
            case Compacted() | Pruned():
                kind = "compacted" if isinstance(entry, Compacted) else "pruned"
                console.print(f"{short} [bold magenta]── {kind}: {entry.receipt.reason} ──[/]")
                if receipts:
                    print_receipt(entry.receipt, console)
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
