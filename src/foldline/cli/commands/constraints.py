"""`foldline constraints FILE`: show the rules that the user stated, and what became of each."""

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

    Each with the number of its message (from 0), its entry and its date; then the rules that were lifted or
    replaced, with the sentence that did it. Where a file has that name, it is taken before a session.
    """
    loaded = read_session(source, store=store_url)
    times = {one.id: one.at for one in loaded.entries if isinstance(one, Said) and one.at is not None}
    rules = rules_of(loaded.entries)

    def record(fact: ConstraintFact) -> dict[str, Any]:
        at = date_of(times.get(fact.entry))
        return {
            "text": redact(fact.text),
            "entry": fact.entry,
            "message": loaded.index.get(fact.entry),
            "at": None if at is None else at.isoformat(timespec="seconds"),
            "later": fact.later,
        }

    def line(fact: ConstraintFact) -> str:
        known = record(fact)
        place = "" if known["message"] is None else f"message {known['message']} "
        day = (known["at"] or "")[:10]
        return f"{place}[dim]{f'{fact.entry[:8]} {day}'.strip()}[/]  {escape(redact(fact.told))}"

    def show() -> None:
        console = out()
        if not rules.standing and not rules.ended:
            console.print("The user stated no standing rule.")
            return
        console.print(f"[bold]Standing[/]: {len(rules.standing)}")
        for fact in rules.standing:
            later = " [yellow](later: where a rule above differs, this one holds)[/]" if fact.later else ""
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
