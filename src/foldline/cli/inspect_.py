"""`foldline inspect FILE`: where the tokens are, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import msgspec
from rich.console import Console

from foldline.cli.common import (
    err,
    escape,
    file_argument,
    find_policy,
    find_window,
    json_option,
    out,
    policy_options,
    print_json,
    progress,
    share,
    table,
    warn,
)
from foldline.cli.report import bar
from foldline.core.decide.policy import usable_of
from foldline.core.fold.prune import Pruning, prune
from foldline.core.log.entries import Compacted
from foldline.core.measure.composition import Composition, Share, composition
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import Fold
from foldline.errors import InputError
from foldline.loading import as_recorded, from_records
from foldline.stateless import now
from foldline.transcripts import Record, read

EPILOG = """
\b
Examples:
  foldline inspect session.jsonl
  foldline inspect session.jsonl --top 20
  foldline inspect session.jsonl --json | jq .by_tool
"""


@click.command(epilog=EPILOG)
@file_argument
@click.option("--top", type=click.IntRange(min=1), default=8, show_default=True, help="Rows of each table.")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="N",
    help="The context window that a prune is worked out for.",
)
@policy_options
@json_option
def command(
    file: str, top: int, window: int | None, policy_name: str | None, policy_file: Path | None, as_json: bool
) -> None:
    """Show where a session FILE's tokens are: by role, tool, file and turn.

    Also the largest messages, reads that were made again, the file's own compactions, calls and results
    that do not pair, and what a prune would free.
    """
    with progress(f"reading {file}"):
        records: list[Record] = list(read(file))
        said = as_recorded(records, OFFLINE)
        if not said:
            raise InputError(f"{file}: there is no message in it")
        loaded = from_records(records, OFFLINE)
        boundaries = [entry for entry in loaded.entries if isinstance(entry, Compacted)]
        found = composition(said, counter=OFFLINE, boundaries=boundaries, largest=top)
        rules, limits = find_policy(policy_name, policy_file), find_window(None, window, loaded.model)
        fold = Fold(loaded.entries, counter=OFFLINE)
        freed = prune(fold.kept, rules, limits, usable_of(rules, limits), OFFLINE, date=now()[:10])
    warn(loaded.warnings)
    if as_json:
        whole = msgspec.to_builtins(found)
        prunable = {"tokens": freed.freed, "results": len(freed.edits), "superseded": freed.superseded}
        print_json({"format": loaded.format, "view_tokens": fold.tokens, **whole, "prune": prunable})
        return
    console = out()
    console.print(
        f"[bold]{escape(file)}[/]: {loaded.format}, {found.messages:,} messages, {found.tokens:,} tokens"
    )
    if boundaries:
        console.print(f"the model's view, from the newest compaction on: {fold.tokens:,} tokens")
    _print(found, freed, console, top)


def _print(found: Composition, freed: Pruning, console: Console, top: int) -> None:
    _shares("by role", found.by_role, found.tokens, console, top)
    _shares("by kind", found.by_kind, found.tokens, console, top)
    _shares("by tool", found.by_tool, found.tokens, console, top)
    _shares("by file", found.by_file, found.tokens, console, top)
    rows = table("largest turns", "turn", "#tokens", "#messages", "#calls", "asked")
    for turn in sorted(found.by_turn, key=lambda turn: -turn.tokens)[:top]:
        rows.add_row(
            str(turn.index), f"{turn.tokens:,}", f"{turn.messages:,}", f"{turn.calls:,}", escape(turn.request)
        )
    console.print(rows)
    rows = table("largest messages", "message", "#tokens", "what")
    for large in found.largest:
        rows.add_row(str(large.index), f"{large.tokens:,}", escape(large.what))
    console.print(rows)
    if found.repeated:
        rows = table("read or run again", "what", "#times", "#tokens of the older ones")
        for repeat in found.repeated[:top]:
            rows.add_row(escape(f"{repeat.tool} {repeat.what}"), f"{repeat.times:,}", f"{repeat.tokens:,}")
        console.print(rows)
    for boundary in found.boundaries:
        size = f", {boundary.tokens_before:,} tokens before" if boundary.tokens_before else ""
        console.print(
            f"[magenta]boundary[/] {boundary.kind} ({boundary.reason}), kept from message {boundary.first_kept}{size}"
        )
    for problem in found.problems[:top]:
        console.print(
            f"[yellow]{problem.kind}[/] at message {problem.index}: {escape(problem.tool)} {escape(problem.call_id)}"
        )
    if len(found.problems) > top:
        err().print(f"and {len(found.problems) - top} more pairing problems")
    console.print(
        f"a prune would free [green]{freed.freed:,}[/] tokens in {len(freed.edits):,} results "
        f"({freed.superseded:,} of them read again later)"
    )


def _shares(title: str, shares: Iterable[Share], whole: int, console: Console, top: int) -> None:
    found = list(shares)
    if not found:
        return
    rows = table(title, "", "#tokens", "#", "#count", "")
    for one in found[:top]:
        part = share(one.tokens, whole)
        rows.add_row(escape(one.name), f"{one.tokens:,}", part, f"{one.count:,}", bar(one.tokens, whole))
    if len(found) > top:
        rest = sum(one.tokens for one in found[top:])
        rows.add_row(
            f"[dim]{len(found) - top} more[/]", f"{rest:,}", share(rest, whole), "", bar(rest, whole)
        )
    console.print(rows)
