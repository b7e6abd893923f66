"""`foldline sessions`, `show` and `search`: look at what is stored."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console

from foldline.cli.options import STORE, Shown, argument, command, option
from foldline.cli.output import escape, local_time, out, row, table
from foldline.cli.reports.fold import gist, print_figures, print_text, print_view
from foldline.cli.store import with_store
from foldline.core.cut.edits import folds
from foldline.core.log.codec import pretty
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pinned, Pruned, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem, Item
from foldline.errors import InputError
from foldline.loading import agents_of
from foldline.session.tree import first_words
from foldline.stores import Hit, SessionInfo, Store
from foldline.stores.ids import ShortIds, find_session, short_ids
from foldline.stores.search import words

TITLE = 60  # characters of a title that is made from the first request


@command("foldline sessions", "foldline sessions --store sqlite:///team.db --json")
def sessions(store_url: str | None = STORE) -> Shown:
    """List the stored sessions, the last updated first."""
    found, agents = with_store(store_url, _sessions)
    short = ShortIds(info.id for info in found)

    def show() -> None:
        if not found:
            out().print(
                "No session is stored yet: `foldline import FILE` adds one; --store URL names another store."
            )
            return
        agent_column = ["agent"] if agents else []
        rows = table("=id", "title", *agent_column, "#messages", "#tokens", "#compactions", "=updated")
        for info in found:
            agent = [agents.get(info.id, "")] if agents else []
            figures = (f"{info.messages:,}", f"{info.tokens:,}", f"{info.compactions:,}")
            row(rows, short(info.id), info.title, *agent, *figures, local_time(info.updated))
        out().print(rows)

    return Shown(
        lambda: [{**msgspec.to_builtins(info), "agent": agents.get(info.id, "")} for info in found], show
    )


async def _sessions(store: Store) -> tuple[list[SessionInfo], dict[str, str]]:
    """Return every session, titled by its first request if it has no title, and the agents by session id."""
    infos: list[SessionInfo] = []
    for info in await store.sessions():
        if not (title := redact(info.title).strip()):
            title = " ".join(redact(await first_words(store, info.id)).split())
            title = title if len(title) <= TITLE else title[: TITLE - 1].rstrip() + "…"
        infos.append(msgspec.structs.replace(info, title=title))
    return infos, await agents_of(store)


@command(
    "foldline show login-bug               the history, one line per message",
    "foldline show login-bug --view        the view, as the model receives it",
    "foldline show login-bug --receipts    what each boundary did",
    "foldline show login-bug --entry 1f09  one entry in full",
)
def show(
    session: str = argument("ID"),
    view: bool = option("Show the view, as the model receives it, instead of the whole history."),
    receipts: bool = option("Show only the boundaries, and what each did."),
    entry: str | None = option("Show the entry whose id begins with this.", metavar="ENTRY"),
    store_url: str | None = STORE,
) -> Shown:
    """Show the stored session ID: its history with its boundaries, its view, or one entry."""

    async def path(store: Store) -> list[Entry]:
        name = await find_session(store, session)
        return [entry async for entry in store.path(name)]

    entries = with_store(store_url, path)
    if entry is not None:
        found = _find_entry(entry, session, entries)
        return Shown(lambda: found, lambda: print_text(pretty(found).decode(), out()))
    if view:
        items = ViewState(entries, counter=OFFLINE).view()
        return Shown(lambda: list(map(_item, items)), lambda: print_view(items, out(), most=len(items)))
    shown = [item for item in entries if not receipts or isinstance(item, Compacted | Pruned)]
    return Shown(lambda: shown, lambda: _print_path(entries, out(), receipts=receipts))


def _find_entry(start: str, session: str, entries: list[Entry]) -> Entry:
    """Return the one entry whose id begins with `start`; raises InputError if none or several do."""
    found = [entry for entry in entries if entry.id.startswith(start)]
    if not found:
        raise InputError(
            f"no entry of this session begins with {start!r}: `foldline show {session}` lists them"
        )
    if len(found) > 1:
        ids = ", ".join(entry.id[:16] for entry in found[:5])
        raise InputError(f"{start!r} is ambiguous, it matches {len(found)} entries: {ids}")
    return found[0]


def _item(item: Item) -> dict[str, Any]:
    if isinstance(item, AddedItem):
        return {"kind": item.kind, "message": item.message, "tokens": item.tokens}
    return {"kind": "kept", "entry": item.entry.id, "message": item.entry.message, "edits": item.edits}


def _print_path(entries: list[Entry], console: Console, *, receipts: bool) -> None:
    """Print a line for each entry; with `receipts` only the boundaries, with their receipts."""
    for entry in entries:
        line = ""
        match entry:
            case Said(message=message) if not receipts:
                role = f"[cyan]{message.role:9}[/] [dim]{entry.tokens:>7,}[/]"
                line = f"{role}  {escape(gist(message, 90))}"
            case Compacted() | Pruned():
                kind = "compacted" if folds(entry) else "pruned"
                kind = "excluded" if isinstance(entry, Pruned) and entry.excludes else kind
                line = f"[bold magenta]── {kind}: {entry.receipt.reason} ──[/]"
            case Lifted():
                line = f"[magenta]{'undone' if entry.lifted else 'redone'}:[/] {entry.target[:8]}"
            case Pinned():
                line = f"[magenta]{'pinned' if entry.on else 'unpinned'}:[/] {entry.target[:8]}"
            case Noted() if not receipts:
                line = f"[dim]noted {entry.kind}: {escape(str(entry.data)[:80])}[/]"
            case _:
                continue
        console.print(f"[dim]{entry.id[:8]}[/] {line}", no_wrap=True, overflow="ellipsis")
        if receipts and isinstance(entry, Compacted | Pruned):
            print_figures(entry.receipt, console)


@command('foldline search "rate limiter"', "foldline search migrations/ --session login-bug --limit 5 --json")
def search(
    query: str = argument("QUERY"),
    session: str | None = option("Only in this session.", metavar="ID"),
    store_url: str | None = STORE,
    limit: int = option("The most matches to show.", default=20),
) -> Shown:
    """Search all messages of the stored sessions, and list the best matches first."""
    if not words(query):
        raise InputError("nothing to search for: give a word, as in `foldline search migrations`")

    async def work(store: Store) -> tuple[list[Hit], ShortIds]:
        name = await find_session(store, session) if session else None
        return await store.search(query, name, limit), await short_ids(store)

    hits, short = with_store(store_url, work)

    def show() -> None:
        console = out()
        for hit in hits:
            console.print(
                f"[green]{escape(short(hit.session))}[/] [dim]{hit.entry[:8]} {hit.role}[/]  "
                f"{escape(' '.join(hit.snippet.split()))}",
                soft_wrap=not console.is_terminal,
            )
        if not hits:
            console.print("nothing found")

    return Shown(lambda: hits, show)
