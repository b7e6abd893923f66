"""`foldline migrate`: copy every session from one store to another."""

from __future__ import annotations

import asyncio

import click

from foldline.cli.options import json_option
from foldline.cli.output import err, escape, out, print_json, progress
from foldline.cli.store import is_missing, opened
from foldline.errors import InputError
from foldline.stores import Store, open_store
from foldline.stores.transfer import Transferred, differences, transfer

EPILOG = """
\b
Examples:
  foldline migrate sqlite:///team.db postgresql://foldline@db.example.com/team
  foldline migrate postgresql://foldline@db.example.com/team sqlite:///copy.db
"""


@click.command(epilog=EPILOG)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--no-verify", is_flag=True, help="Do not verify both stores and compare them at the end.")
@json_option
def command(source: str, target: str, no_verify: bool, as_json: bool) -> None:
    """Copy every session from the store FROM to the store TO: all branches, leaves, titles and times.

    Run again after an interruption, or after more was said, it goes on. What TO holds beside that stays.
    Exit 1 if a session of TO is another one, or if what was copied differs.
    """
    copied, problems = asyncio.run(_migrate(source, target, verify=not no_verify))
    sessions, entries = len(copied), sum(one.entries for one in copied)
    if as_json:
        print_json({"sessions": sessions, "entries": entries, "ok": not problems, "problems": problems})
    for problem in problems if not as_json else ():
        err().print(f"[red]problem:[/] {escape(problem)}", soft_wrap=True)
    if problems:
        raise SystemExit(1)
    if not as_json:
        checked = "" if no_verify else "; both stores are intact, and the copy is the same"
        out().print(
            f"[green]copied:[/] {sessions:,} sessions, {entries:,} new entries{checked}", soft_wrap=True
        )


async def _migrate(source: str, target: str, *, verify: bool) -> tuple[list[Transferred], list[str]]:
    if is_missing(open_store(source)):
        raise InputError(f"there is no store at {source}")
    async with opened(source) as one, opened(target, make=True) as two:
        copied: list[Transferred] = []
        with progress("copying sessions", await one.count()) as tick:
            async for session in transfer(one, two):
                copied.append(session)
                tick(len(copied))
        problems = [f"session {session.session}: {session.problem}" for session in copied if session.problem]
        return copied, problems + (await _compared(one, two) if verify and not problems else [])


async def _compared(source: Store, target: Store) -> list[str]:
    with progress("verifying both stores"):
        problems = [*await source.verify(), *await target.verify()]
    with progress("comparing"):
        return problems + [line async for line in differences(source, target)]
