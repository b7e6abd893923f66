"""Reports of replays for people: a row per policy, a row per turn, the rounds of a decay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from foldline.cli.output import escape, print_table, row, rule, share, table
from foldline.lab.report import MEASURES, ReplaySums, SessionReport

LEGEND = (
    "handle to steps: share of the names needed later that a view still has; 1.00 is best (docs/replay.md)"
)
COUNTS = {
    "compactions": "compactions",
    "prunes": "prunes",
    "overflows": "overflows",
    "invalid": "invalid_views",
    "peak": "peak",
}
"""The columns of counts, and the totals that they show."""
TURNS = 40  # the most turns to print


def print_session(report: SessionReport, console: Console) -> None:
    """Print one session under all its policies."""
    rule(console, escape(report.session))
    model = f", priced as {escape(report.model)}" if report.model else ", prices unknown"
    console.print(f"window {report.window:,} tokens{model}", soft_wrap=True)
    print_rows([(item.policy, item.totals, item.retention) for item in report.policies], console)
    _print_untouched(report, console)
    print_turns(report, console)
    for item in report.policies:
        if item.rounds is not None:
            print_rounds(item.policy, item.rounds, console)
    if report.note:
        console.print(f"[dim]{escape(report.note)}[/]", soft_wrap=not console.is_terminal)


def print_rows(rows: Sequence[tuple[str, dict[str, Any], dict[str, Any] | None]], console: Console) -> None:
    """Print a row for each policy."""
    money = any(totals["price"] is not None for _, totals, _ in rows)
    scored = any(retention is not None for _, _, retention in rows)
    result = table(
        "=policy",
        "#calls",
        "#input tokens",
        "#less",
        *(("#USD", "#USD cached", "#summaries") if money else ()),
        *(f"#{name}" for name in COUNTS),
        "#seconds",
        *(f"#{name}" for name in MEASURES if scored),
    )
    most = max((totals["input_tokens"] for _, totals, _ in rows), default=0)
    for name, totals, retention in rows:
        prices = (totals["price"], totals["price_cached"], totals["price_summaries"])
        row(
            result,
            name,
            f"{totals['calls']:,}",
            f"{totals['input_tokens']:,}",
            share(most - totals["input_tokens"], most),
            *((f"{price:,.2f}" if price is not None else "-" for price in prices) if money else ()),
            *(f"{totals[name]:,}" for name in COUNTS.values()),
            f"{totals['compaction_seconds']:,.2f}",
            *(_score((retention or {}).get(measure)) for measure in MEASURES if scored),
        )
    print_table(result, console)
    console.print()
    if scored:
        console.print(f"[dim]{LEGEND}[/]\n", soft_wrap=not console.is_terminal)


def _print_untouched(report: SessionReport, console: Console) -> None:
    """Explain equal results if no policy folded anything."""
    totals = [item.totals for item in report.policies]
    peak = max((sums["peak"] for sums in totals), default=0)
    if not peak or any(sums["compactions"] or sums["prunes"] or sums["overflows"] for sums in totals):
        return
    console.print(
        f"nothing was folded: at most {peak:,} tokens were sent, which fits a window of {report.window:,}; "
        "--window N replays it in a smaller one\n",
        soft_wrap=True,
    )


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def print_turns(report: SessionReport, console: Console) -> None:
    """Print the context of each turn's first call, marked if a boundary was made in the turn."""
    names = [item.policy for item in report.policies]
    result = table("#turn", "#calls", *(f"#{name}" for name in names))
    by_turn: defaultdict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for item in report.policies:
        for turn in item.turns:
            by_turn[turn["turn"]][item.policy] = turn
    for number in sorted(by_turn)[:TURNS]:
        turns = by_turn[number]
        cells = [_baseline(turns.get(name)) for name in names]
        row(result, str(number), f"{next(iter(turns.values()))['calls']:,}", *cells)
    console.print(
        "context of each turn's first call; v: a boundary in the turn, !: a request too large", soft_wrap=True
    )
    print_table(result, console)
    if len(by_turn) > TURNS:
        console.print(f"[dim]… {len(by_turn) - TURNS:,} more turns; --json prints all[/]")
    console.print()


def _baseline(turn: dict[str, Any] | None) -> str:
    if turn is None:
        return "-"
    marks = ("v" if turn["boundaries"] else "") + ("!" if turn["overflows"] else "")
    return f"{marks} {turn['baseline']:,}"


def print_rounds(policy: str, rounds: Sequence[dict[str, Any]], console: Console) -> None:
    """Print what the view still had after each round of a decay."""
    result = table(
        "#round",
        "#session",
        "#view",
        "#rules",
        "#settings",
        "#stale",
        "#first names",
        *(f"#{name}" for name in MEASURES),
    )
    for figures in rounds:
        retention: dict[str, Any] = figures["retention"] or {}
        row(
            result,
            str(figures["round"]),
            f"{figures['said_tokens']:,}",
            f"{figures['view_tokens']:,}",
            f"{figures['rules']}/{figures['rules_planted']}",
            f"{figures['settings']}/{figures['settings_planted']}",
            str(figures["stale"]),
            _score(figures["first_names"]),
            *(_score(retention.get(name)) for name in MEASURES),
        )
    console.print(
        f"[bold]{escape(policy)}[/], folded repeatedly, each time to a tenth of the session so far",
        soft_wrap=True,
    )
    print_table(result, console)
    for figures in rounds:
        if "problem" in figures:
            problem = escape(figures["problem"])
            console.print(f"[yellow]round {figures['round']}:[/] {problem}", soft_wrap=True)
    console.print()


def print_totals(sums: ReplaySums, console: Console) -> None:
    """Print the sums over all sessions, and the mean of their retention."""
    rule(console, f"{sums.sessions:,} sessions")
    rows = [(name, item.totals(), item.retention()) for name, item in sums.policies.items()]
    print_rows(rows, console)
    console.print("retention: the mean of the sessions in which it can be measured", soft_wrap=True)
    if 0 < sums.unpriced < sums.sessions:
        console.print(
            f"USD: without {sums.unpriced:,} sessions whose price is unknown; --model NAME gives one",
            soft_wrap=True,
        )
