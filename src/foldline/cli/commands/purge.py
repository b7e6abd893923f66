"""`foldline purge ID`: the one command that deletes."""

from __future__ import annotations

import click

from foldline.cli.options import json_option, store_option
from foldline.cli.output import escape, out, print_json
from foldline.cli.store import known, with_store
from foldline.errors import InputError
from foldline.stores import Store
from foldline.terminal import clean


@click.command(epilog="\b\nExamples:\n  foldline purge login-bug\n  foldline purge login-bug --yes --json")
@click.argument("session", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
@json_option
def command(session: str, yes: bool, store_url: str | None, as_json: bool) -> None:
    """Delete the stored session ID with all its entries permanently."""
    name = with_store(store_url, lambda store: known(store, session))
    if not yes:
        shown = clean(name)
        question = f"Delete {shown} permanently? `foldline export {shown}` keeps a copy."
        try:
            click.confirm(question, abort=True, err=True)
        except click.Abort as abort:
            if isinstance(abort.__cause__, EOFError) or isinstance(abort.__context__, EOFError):
                click.echo(err=True)
                raise InputError(
                    "nobody answered, nothing was deleted: --yes deletes without asking"
                ) from None
            raise

    async def purge(store: Store) -> None:
        await store.purge(name)

    with_store(store_url, purge)
    if as_json:
        print_json({"purged": name})
    else:
        out().print(f"[green]purged[/] {escape(name)}")
