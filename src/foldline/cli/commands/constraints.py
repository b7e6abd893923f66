"""`foldline constraints FILE`: show the rules that the user stated, and what ended them."""

from __future__ import annotations

from typing import Any

from foldline.cli.common import read_session
from foldline.cli.options import SOURCE, STORE, Shown, command
from foldline.cli.output import escape, out
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.log.entries import Said
from foldline.core.secrets.redact import redact
from foldline.session.rules import rules_of
from foldline.transcripts.lines import date_of


@command(
    "foldline constraints session.jsonl",
    "foldline constraints login-bug         a stored session",
    "foldline constraints session.jsonl --json | jq '.standing[].text'",
)
def constraints(source: str = SOURCE, store_url: str | None = STORE) -> Shown:
    """Show the user's standing rules in a session FILE, or in the stored session ID.

    Each rule has the number of its message (from 0), its entry and its date. Below are the rules that were
    lifted or replaced, each with the sentence that ended it. A file wins over a session of the same name.
    """
    loaded = read_session(source, store=store_url)
    times = {entry.id: entry.at for entry in loaded.entries if isinstance(entry, Said)}
    rules = rules_of(loaded.entries)

    def record(fact: ConstraintFact) -> dict[str, Any]:
        date = date_of(times.get(fact.entry))
        return {
            "text": redact(fact.text),
            "entry": fact.entry,
            "message": loaded.index.get(fact.entry),
            "at": None if date is None else date.isoformat(timespec="seconds"),
            "later": fact.later,
        }

    def line(fact: ConstraintFact) -> str:
        fields = record(fact)
        place = "" if fields["message"] is None else f"message {fields['message']} "
        day = (fields["at"] or "")[:10]
        return f"{place}[dim]{f'{fact.entry[:8]} {day}'.strip()}[/]  {escape(redact(fact.told))}"

    def show() -> None:
        console = out()
        if not rules.standing and not rules.ended:
            console.print("The user stated no standing rule.")
            return
        console.print(f"[bold]Standing[/]: {len(rules.standing)}")
        for fact in rules.standing:
            later = (
                " [yellow](stated later: overrides the rules above where they differ)[/]"
                if fact.later
                else ""
            )
            console.print(f"{line(fact)}{later}", soft_wrap=True)
        if rules.ended:
            console.print(f"[bold]Lifted or replaced[/]: {len(rules.ended)}")
        for end in rules.ended:
            console.print(line(end.fact), soft_wrap=True)
            console.print(f"    [magenta]{end.how}[/] {line(end.by)}", soft_wrap=True)

    def document() -> dict[str, Any]:
        ended = [{**record(end.fact), "how": end.how, "by": record(end.by)} for end in rules.ended]
        return {"standing": list(map(record, rules.standing)), "ended": ended}

    return Shown(document, show)
