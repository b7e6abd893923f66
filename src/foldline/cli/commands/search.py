"""`foldline search QUERY`: search everything that was said, folded messages included."""

from __future__ import annotations

import click
import msgspec

from foldline.cli.options import json_option, store_option
from foldline.cli.output import escape, out, print_json
from foldline.cli.store import known, with_store
from foldline.errors import InputError
from foldline.stores import Hit, Store
from foldline.stores.search import words

EPILOG = """
\b
Examples:
  foldline search "rate limiter"
  foldline search migrations/ --session login-bug --limit 5 --json
"""


@click.command(epilog=EPILOG)
@click.argument("query")
@click.option("--session", metavar="ID", help="Only in this session.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Matches at most.")
@store_option
@json_option
def command(query: str, session: str | None, limit: int, store_url: str | None, as_json: bool) -> None:
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
            f"{escape(_one_line(hit.snippet))}",
            soft_wrap=not console.is_terminal,
        )
    if not hits:
        console.print("nothing found")


def _one_line(snippet: str) -> str:
    return " ".join(snippet.split())


async def _search(store: Store, query: str, session: str | None, limit: int) -> list[Hit]:
    name = await known(store, session) if session else None
    return await store.search(query, name, limit)
