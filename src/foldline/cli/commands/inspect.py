"""`foldline inspect FILE`: show where the tokens are, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from foldline.cli.common import TO_READ, check_room, counted, find_policy, find_window, shown_name
from foldline.cli.options import PLOTS, POLICIES, POLICY, SOURCE, STORE, Shown, command, option
from foldline.cli.output import escape, out, progress, row, share, table, tell, warn
from foldline.cli.reports.fold import bar
from foldline.cli.store import open_source
from foldline.core.cut.prune import prune
from foldline.core.decide.policy import usable_of
from foldline.core.lab.composition import Composition, Share, composition
from foldline.core.log.entries import Compacted
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.errors import InputError
from foldline.folding import now, overhead_of
from foldline.lab.panels import composition_panels
from foldline.lab.plots import check_targets, draw_panels
from foldline.loading import as_recorded, from_records, index_of
from foldline.transcripts import Record, read


@command(
    "foldline inspect session.jsonl",
    "foldline inspect login-bug            a stored session",
    "foldline inspect session.jsonl --top 20",
    "foldline inspect session.jsonl --plot session.html",
    "foldline inspect session.jsonl --json | jq .by_tool",
)
def inspect(
    source: str = SOURCE,
    window: int | None = option("The context window for the estimate of a prune, in tokens."),
    plots: tuple[Path, ...] = PLOTS,
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    top: int = option("Rows of each table.", default=8),
    store_url: str | None = STORE,
) -> Shown:
    """Show where the tokens of a session FILE or the stored session ID are: by role, tool, file and turn.

    Also the largest messages, repeated reads, the file's own compactions, calls without a result, results
    without a call, and what a prune would free.
    """
    name = shown_name(source)
    check_targets(plots)
    with progress(f"reading {name}") as tick, open_source(source, store_url) as stream:
        check_room(stream, name, TO_READ)
        records: list[Record] = list(counted(read(stream, name=name), tick))
    messages = as_recorded(records, OFFLINE)
    loaded = from_records(records, OFFLINE, ledgers=False)
    warn(loaded.warnings)
    if not messages:
        raise InputError(f"{name}: no message in this file")
    with progress("measuring"):
        boundaries = [entry for entry in loaded.entries if isinstance(entry, Compacted)]
        index = {**loaded.index, **index_of(messages)}
        found = composition(messages, counter=OFFLINE, boundaries=boundaries, index=index, largest=top)
        policy, limits = find_policy(policy_name, policy_file), find_window(None, window, loaded.model)
        state = ViewState(loaded.entries, counter=OFFLINE)
        freed = prune(state.kept, policy, limits, usable_of(policy, limits), OFFLINE, date=now()[:10])
    overhead = overhead_of(loaded.system, loaded.tools, OFFLINE)
    apart = overhead.system + overhead.tools
    for target in plots:
        draw_panels(composition_panels(found), f"{name}: {found.tokens:,} tokens", target)
        tell(f"wrote {target}")

    def document() -> dict[str, Any]:
        prunable = {"tokens": freed.freed, "results": len(freed.edits), "superseded": freed.superseded}
        sizes = {"view_tokens": state.tokens, "apart_tokens": apart}
        return {"format": loaded.format, **sizes, **msgspec.to_builtins(found), "prune": prunable}

    def show() -> None:
        console = out()
        size = f"{loaded.format}, {found.messages:,} messages, {found.tokens:,} tokens"
        console.print(f"[bold]{escape(name)}[/]: {size}", soft_wrap=True)
        since = ", from the newest compaction on" if boundaries else ""
        part = f", {apart:,} of them the system prompt and tools" if apart else ""
        sent = f"{apart + state.tokens:,} tokens in {len(state.items()):,} messages"
        console.print(f"what a model is sent{since}: {sent}{part}", soft_wrap=True)
        _print(found, console, top)
        console.print(
            f"a prune would free [green]{freed.freed:,}[/] tokens in {len(freed.edits):,} results "
            f"({freed.superseded:,} of them read again later)"
        )

    return Shown(document, show)


def _print(found: Composition, console: Console, top: int) -> None:
    for title, shares in (
        ("by role", found.by_role),
        ("by kind", found.by_kind),
        ("by tool", found.by_tool),
        ("by file", found.by_file),
    ):
        _print_shares(title, shares, found.tokens, console, top)
    largest = sorted(found.by_turn, key=lambda turn: -turn.tokens)[:top]
    _print_rows(
        ("#turn at", "#tokens", "#messages", "#calls", "largest turns"),
        [(turn.index, turn.tokens, turn.messages, turn.calls, turn.request) for turn in largest],
        console,
    )
    _print_rows(
        ("#message", "#tokens", "largest messages"),
        [(message.index, message.tokens, message.what) for message in found.largest],
        console,
    )
    if found.repeated:
        _print_rows(
            ("#times", "#older tokens", "repeated reads and commands"),
            [(call.times, call.tokens, call.what) for call in found.repeated[:top]],
            console,
        )
    for boundary in found.boundaries:
        size = f", {boundary.tokens_before:,} tokens before" if boundary.tokens_before else ""
        first = boundary.first_kept
        kept = "nothing kept" if first is None else f"kept from message {first}"
        console.print(f"[magenta]boundary[/] {boundary.kind} ({boundary.reason}), {kept}{size}")
    for problem in found.problems[:top]:
        console.print(
            f"[yellow]{problem.kind}[/] at message {problem.index}: {escape(problem.tool)} "
            f"{escape(problem.call_id)}"
        )
    if len(found.problems) > top:
        console.print(f"[yellow]and {len(found.problems) - top} more pairing problems[/]")


def _print_rows(titles: Sequence[str], rows: Iterable[Sequence[int | str]], console: Console) -> None:
    """Print a table whose first column is an index, and whose other numbers are counts."""
    result = table(*titles)
    for first, *others in rows:
        row(result, str(first), *(cell if isinstance(cell, str) else f"{cell:,}" for cell in others))
    console.print(result, "")


def _print_shares(title: str, shares: Sequence[Share], whole: int, console: Console, top: int) -> None:
    if not shares:
        return
    rows = table(title, "#tokens", "#share", "#count", "")
    for item in shares[:top]:
        part = share(item.tokens, whole)
        row(rows, item.name, f"{item.tokens:,}", part, f"{item.count:,}", bar(item.tokens, whole))
    if others := shares[top:]:
        tokens, count = sum(item.tokens for item in others), sum(item.count for item in others)
        row(rows, f"{len(others)} more", f"{tokens:,}", share(tokens, whole), f"{count:,}", style="dim")
    console.print(rows, "")
