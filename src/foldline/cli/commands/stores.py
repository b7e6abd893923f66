"""`foldline verify`, `backup`, `migrate` and `purge`: maintain a store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from foldline.cli.options import STORE, Shown, argument, command, option
from foldline.cli.output import err, escape, out, progress
from foldline.cli.store import is_missing, opened, with_store
from foldline.config import basic_settings
from foldline.errors import InputError
from foldline.stores import SqliteStore, Store, open_store
from foldline.stores.ids import find_session
from foldline.stores.transfer import Transferred, back_up, differences, transfer
from foldline.terminal import clean


@command("foldline verify", "foldline verify --session login-bug --store sqlite:///team.db")
def verify(
    session: str | None = option("Only this session.", metavar="ID"), store_url: str | None = STORE
) -> Shown:
    """Check every stored entry against its hash; exit code 1 if an entry was changed."""

    async def work(store: Store) -> list[str]:
        return await store.verify(await find_session(store, session) if session else None)

    url = store_url or basic_settings().store
    store = open_store(url)
    missing = is_missing(store)
    if (
        missing and isinstance(store, SqliteStore) and store.file.is_file()
    ):  # Foldline never writes such a file
        problems = [f"{store.file} has 0 bytes: its content is lost. Restore a backup, or delete the file."]
    elif missing and url:
        raise InputError(f"there is no store at {url}")
    else:
        with progress("verifying"):
            problems = with_store(store_url, work)
    return _shown(problems, "[green]intact:[/] no entry was changed", {})


@command(
    "foldline backup sessions-2026-11-22.db", "foldline backup --store sqlite:///team.db /backups/team.db"
)
def backup(target: Path = argument("TARGET"), store_url: str | None = STORE) -> Shown:
    """Copy the store to the new file TARGET; other programs may write to the store meanwhile.

    An interrupted copy leaves no file. To use a backup, name it as the store (`--store sqlite:///TARGET`), or
    replace the old file with it while no program has the old file open.
    """
    with progress("copying the store"):
        back_up(open_store(store_url or basic_settings().store), target)
    size = target.stat().st_size
    text = f"[green]backed up:[/] {escape(str(target))}, {size:,} bytes"
    return Shown(lambda: {"target": str(target), "bytes": size}, lambda: out().print(text, soft_wrap=True))


@command(
    "foldline migrate sqlite:///team.db postgresql://foldline@db.example.com/team",
    "foldline migrate postgresql://foldline@db.example.com/team sqlite:///copy.db",
)
def migrate(
    source: str = argument("FROM"),
    target: str = argument("TO"),
    no_verify: bool = option("Do not verify and compare the stores at the end."),
) -> Shown:
    """Copy every session from the store FROM to the store TO: all branches, leaves, titles and times.

    Run it again after an interruption, or to copy new entries. Other sessions in TO stay. Exit code 1: TO has
    a different session with the same id, or the copy differs.
    """
    copied, problems = asyncio.run(_migrate(source, target, verify=not no_verify))
    sessions, entries = len(copied), sum(session.entries for session in copied)
    checked = "" if no_verify else "; both stores are intact, and the copy is the same"
    text = f"[green]copied:[/] {sessions:,} sessions, {entries:,} new entries{checked}"
    return _shown(problems, text, {"sessions": sessions, "entries": entries})


def _shown(problems: list[str], success: str, document: dict[str, Any]) -> Shown:
    """Return the result of a command: a text about the success, or problems and exit code 1."""

    def show() -> None:
        for problem in problems:
            err().print(f"[red]problem:[/] {escape(problem)}", soft_wrap=True)
        if not problems:
            out().print(success, soft_wrap=True)

    return Shown(lambda: {**document, "ok": not problems, "problems": problems}, show, 1 if problems else 0)


async def _migrate(source: str, target: str, *, verify: bool) -> tuple[list[Transferred], list[str]]:
    if is_missing(open_store(source)):
        raise InputError(f"there is no store at {source}")
    async with opened(source) as old, opened(target, make=True) as new:
        copied: list[Transferred] = []
        with progress("copying sessions", await old.count()) as tick:
            async for session in transfer(old, new):
                copied.append(session)
                tick(len(copied))
        problems = [f"session {session.session}: {session.problem}" for session in copied if session.problem]
        return copied, problems + (await _compare(old, new) if verify and not problems else [])


async def _compare(source: Store, target: Store) -> list[str]:
    with progress("verifying both stores"):
        problems = [*await source.verify(), *await target.verify()]
    with progress("comparing"):
        return problems + [line async for line in differences(source, target)]


@command("foldline purge login-bug", "foldline purge login-bug --yes --json")
def purge(
    session: str = argument("ID"),
    yes: bool = option("Delete without asking."),
    store_url: str | None = STORE,
) -> Shown:
    """Delete the stored session ID with all its entries permanently."""
    name = with_store(store_url, lambda store: find_session(store, session))
    if not yes:
        shown = clean(name)
        question = f"Delete {shown} permanently? `foldline export {shown}` makes a copy."
        try:
            click.confirm(question, abort=True, err=True)
        except click.Abort as abort:
            if isinstance(abort.__cause__, EOFError) or isinstance(abort.__context__, EOFError):
                click.echo(err=True)
                raise InputError("no answer, nothing was deleted: --yes deletes without asking") from None
            raise
    with_store(store_url, lambda store: store.purge(name))
    return Shown(lambda: {"purged": name}, lambda: out().print(f"[green]purged[/] {escape(name)}"))
