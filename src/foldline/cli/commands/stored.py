"""`foldline sessions`, `show` and `search`: look at what is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import msgspec
from rich.console import Console

from foldline.cli.options import TOKENS, json_option, store_option
from foldline.cli.output import escape, out, print_json, row, table
from foldline.cli.reports.fold import gist, print_figures, print_text, print_view
from foldline.cli.store import entries_of, known, with_store
from foldline.core.log.codec import pretty
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pinned, Pruned, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.secrets.redact import redact
from foldline.core.view import AddedItem, Item, ViewState
from foldline.errors import InputError, StoreError
from foldline.stores import Hit, SessionInfo, Store
from foldline.stores.search import words

TITLE = 60  # characters of a first request that stand for a title
FIRST = 50  # entries among which it is looked for
SHOW = """
\b
Examples:
  foldline show login-bug               the history, one line per message
  foldline show login-bug --view        what the model is sent
  foldline show login-bug --receipts    what each boundary did
  foldline show login-bug --entry 1f09  one entry, whole
"""
SEARCH = """
\b
Examples:
  foldline search "rate limiter"
  foldline search migrations/ --session login-bug --limit 5 --json
"""


@click.command(
    epilog="\b\nExamples:\n  foldline sessions\n  foldline sessions --store sqlite:///team.db --json"
)
@store_option
@json_option
def sessions(store_url: str | None, as_json: bool) -> None:
    """List the stored sessions, the last updated first."""
    found = with_store(store_url, _sessions)
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


async def _sessions(store: Store) -> list[SessionInfo]:
    """Return every session; one without a title has the beginning of its first request as one."""
    infos = await store.sessions()
    return [
        msgspec.structs.replace(info, title=redact(info.title).strip() or await _first_request(store, info))
        for info in infos
    ]


async def _first_request(store: Store, info: SessionInfo) -> str:
    looked = 0
    try:
        async for entry in store.path(info.id):
            if isinstance(entry, Said) and entry.message.is_prompt and entry.message.text.strip():
                text = " ".join(redact(entry.message.text).split())
                return text if len(text) <= TITLE else text[: TITLE - 1].rstrip() + "…"
            looked += 1
            if looked > FIRST:
                break
    except StoreError:
        pass  # `verify` says what is damaged; the list must still be shown
    return ""


@click.command(epilog=SHOW)
@click.argument("session", metavar="ID")
@click.option("--view", is_flag=True, help="Show what the model is sent instead of the whole history.")
@click.option("--receipts", is_flag=True, help="Show what each boundary did.")
@click.option("--entry", metavar="ENTRY", help="Show the entry whose id begins with this.")
@store_option
@json_option
def show(
    session: str, view: bool, receipts: bool, entry: str | None, store_url: str | None, as_json: bool
) -> None:
    """Show the stored session ID: its history with its boundaries, its view, or one entry."""
    entries = entries_of(store_url, session)
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


@click.command(epilog=SEARCH)
@click.argument("query")
@click.option("--session", metavar="ID", help="Only in this session.")
@click.option("--limit", type=TOKENS, default=20, show_default=True, help="Matches at most.")
@store_option
@json_option
def search(query: str, session: str | None, limit: int, store_url: str | None, as_json: bool) -> None:
    """Search everything that was said in the stored sessions, the best matches first."""
    if not words(query):
        raise InputError("nothing to search for: give a word, such as foldline search migrations")
    hits = with_store(store_url, lambda store: _search(store, query, session, limit))
    if as_json:
        print_json(msgspec.to_builtins(hits))
        return
    console = out()
    for hit in hits:
        console.print(
            f"[green]{escape(hit.session)}[/] [dim]{hit.entry[:8]} {hit.role}[/]  "
            f"{escape(' '.join(hit.snippet.split()))}",
            soft_wrap=not console.is_terminal,
        )
    if not hits:
        console.print("nothing found")


async def _search(store: Store, query: str, session: str | None, limit: int) -> list[Hit]:
    name = await known(store, session) if session else None
    return await store.search(query, name, limit)
