"""`foldline constraints FILE`: show the rules that the user stated, and what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from foldline.cli.common import read_session
from foldline.cli.options import json_option, store_option
from foldline.cli.output import escape, out, print_json
from foldline.cli.store import entries_of
from foldline.core.ledger.facts.constraints import Ended
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.log.entries import Entry, Said
from foldline.core.secrets.redact import redact
from foldline.session.rules import rules_of

EPILOG = """
\b
Examples:
  foldline constraints session.jsonl
  foldline constraints login-bug         a stored session
  foldline constraints session.jsonl --json | jq '.standing[].text'
"""


@click.command(epilog=EPILOG)
@click.argument("source", metavar="FILE|ID")
@store_option
@json_option
def command(source: str, store_url: str | None, as_json: bool) -> None:
    """Show the user's standing rules in a session FILE, or in the stored session ID.

    Each with the number of its message (from 0), its entry and its date; then the rules that were lifted or
    replaced, with the sentence that did it. Where a file has that name, it is taken before a session.
    """
    session = _read(source, store_url)
    rules = rules_of(session.entries)
    standing, ended = rules.standing, rules.ended
    if as_json:
        print_json(
            {
                "standing": [_record(fact, session) for fact in standing],
                "ended": [_record(end.fact, session) | _ending(end, session) for end in ended],
            }
        )
        return
    _print(standing, ended, session)


class _Session(msgspec.Struct, frozen=True):
    """The entries of a session, and the number of the message of each."""

    entries: list[Entry]
    index: dict[str, int]

    def at(self, entry: str) -> str:
        """Return when an entry was said, UTC in ISO 8601; "" where that is not known."""
        known_at = {one.id: one.at for one in self.entries if isinstance(one, Said)}.get(entry)
        return "" if known_at is None else datetime.fromtimestamp(known_at, UTC).isoformat(timespec="seconds")


def _read(source: str, store_url: str | None) -> _Session:
    if source == "-" or Path(source).is_file():
        loaded = read_session(source)
        return _Session(loaded.entries, loaded.index)
    entries = entries_of(store_url, source)
    said = (entry.id for entry in entries if isinstance(entry, Said))
    return _Session(entries, {entry: number for number, entry in enumerate(said)})


def _record(fact: ConstraintFact, session: _Session) -> dict[str, Any]:
    return {
        "text": redact(fact.text),
        "entry": fact.entry,
        "message": session.index.get(fact.entry),
        "at": session.at(fact.entry) or None,
        "later": fact.later,
    }


def _ending(end: Ended, session: _Session) -> dict[str, Any]:
    return {"how": end.how, "by": _record(end.by, session)}


def _print(standing: Sequence[ConstraintFact], ended: Sequence[Ended], session: _Session) -> None:
    console = out()
    if not standing and not ended:
        console.print("The user stated no standing rule.")
        return
    console.print(f"[bold]Standing[/]: {len(standing)}")
    for fact in standing:
        later = " [yellow](later: where a rule above differs, this one holds)[/]" if fact.later else ""
        console.print(f"{_line(fact, session)}{later}", soft_wrap=True)
    if ended:
        console.print(f"[bold]Lifted or replaced[/]: {len(ended)}")
    for end in ended:
        console.print(_line(end.fact, session), soft_wrap=True)
        console.print(f"    [magenta]{end.how}[/] {_line(end.by, session)}", soft_wrap=True)


def _line(fact: ConstraintFact, session: _Session) -> str:
    """Return a rule as a line: its message, its entry, its date, its text."""
    number = session.index.get(fact.entry)
    place = "" if number is None else f"message {number} "
    day = session.at(fact.entry)[:10]
    return f"{place}[dim]{' '.join(filter(None, (fact.entry[:8], day)))}[/]  {escape(redact(fact.told))}"
