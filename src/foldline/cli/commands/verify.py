"""`foldline verify`: check that everything stored is intact."""

from __future__ import annotations

import click

from foldline.cli.options import json_option, store_option
from foldline.cli.output import err, escape, out, print_json, progress
from foldline.cli.store import is_missing, known, with_store
from foldline.config import settings
from foldline.stores import SqliteStore, Store, open_store

EPILOG = """
\b
Examples:
  foldline verify
  foldline verify --session login-bug --store sqlite:///team.db
"""


@click.command(epilog=EPILOG)
@click.option("--session", metavar="ID", help="Only this session.")
@store_option
@json_option
def command(session: str | None, store_url: str | None, as_json: bool) -> None:
    """Hash every stored entry again and compare; exit 1 if anything changed."""
    problems = _emptied(store_url)
    if not problems:
        with progress("verifying"):
            problems = with_store(store_url, lambda store: _verify(store, session))
    if as_json:
        print_json({"ok": not problems, "problems": problems})
    for problem in problems if not as_json else ():
        err().print(f"[red]problem:[/] {escape(problem)}", soft_wrap=True)
    if problems:
        raise SystemExit(1)
    if not as_json:
        out().print("[green]intact:[/] every entry is as it was appended")


def _emptied(url: str | None) -> list[str]:
    """Return what is wrong with a file that is there, but holds nothing: a store never is so small."""
    store = open_store(url or settings().store)
    if not (isinstance(store, SqliteStore) and store.file.is_file() and is_missing(store)):
        return []
    return [f"{store.file} has 0 bytes: whatever it held is gone. Restore a backup, or delete the file."]


async def _verify(store: Store, session: str | None) -> list[str]:
    return await store.verify(await known(store, session) if session else None)
