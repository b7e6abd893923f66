"""`foldline demo`: fold an example session and show every step."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import resources
from pathlib import Path

import click
from rich.console import Console

from foldline.catalogue import ModelInfo
from foldline.cli.common import find_policy, read_session
from foldline.cli.options import Shown, command, option
from foldline.cli.output import escape, out, row, rule, share, table
from foldline.cli.reports.fold import bar, print_figures, print_summary, print_view
from foldline.core.decide.breaker import BreakerState
from foldline.core.decide.policy import Policy
from foldline.core.decide.triggers import TriggerFacts, WatchLimits, decide, thresholds
from foldline.core.lab.composition import composition
from foldline.core.log.entries import Receipt, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Floor, Window
from foldline.core.view import ViewState
from foldline.folding import FoldOptions, as_dict, fold_now
from foldline.loading import Loaded

EXAMPLE = "example.jsonl"  # in the package; unpacked while it is read if the package is in an archive
WINDOW = Window(context=32_000, output=4_000)
NEXT = """\
foldline compact YOUR-SESSION.jsonl --target 32000 -o folded.jsonl    fold your own session
foldline inspect YOUR-SESSION.jsonl                                   where its tokens are
foldline policies --window 200000                                     the policies of ten systems in one table
README.md, docs/library.md                                            three lines in your own agent"""


@command("foldline demo", "foldline demo --file my-session.jsonl --target 8000")
def demo(
    file: Path | None = option(
        "The session to fold  [default: an example that comes with Foldline]", metavar="FILE"
    ),
    target: int = option("The budget in tokens.", default=9_000),
    lines: int = option(
        "Lines of each section of the checkpoint; 0: all.", type=click.IntRange(min=0), default=7
    ),
) -> Shown:
    """Fold a session and show each step: contents, decision, checkpoint, receipt, view."""
    with nullcontext(file) if file else resources.as_file(resources.files("foldline") / EXAMPLE) as path:
        loaded = read_session(str(path))
    policy = find_policy("foldline", None)
    done = fold_now(loaded, FoldOptions(policy, ModelInfo(None, WINDOW), target=target))

    def show() -> None:
        console = out()
        rule(console, f"1. what is in {escape(str(file or 'the example session'))}")
        _print_composition(loaded, console)
        rule(console, "2. the policy's decision")
        _print_decision(done.receipt, policy, target, console)
        if done.summary is not None:
            rule(console, "3. the checkpoint that replaces what was folded")
            print_summary(done.summary, console, most=lines or None)
        rule(console, "4. the receipt")
        print_figures(done.receipt, console)
        if done.boundary is not None:
            rule(console, "5. the start of the view, which the model receives")
            entries = [*loaded.entries, done.boundary]
            print_view(ViewState(entries, counter=OFFLINE).view(), console)
        rule(console, "where to go next")
        console.print(NEXT, markup=False, soft_wrap=True)

    return Shown(lambda: as_dict(done), show)


def _print_composition(loaded: Loaded, console: Console) -> None:
    messages = [entry for entry in loaded.entries if isinstance(entry, Said)]
    found = composition(messages, counter=OFFLINE)
    console.print(f"{found.messages:,} messages, {found.tokens:,} tokens, {len(found.by_turn)} turns")
    rows = table("by kind", "#tokens", "#share", "")
    for kind in found.by_kind[:6]:
        part = share(kind.tokens, found.tokens)
        row(rows, kind.name, f"{kind.tokens:,}", part, bar(kind.tokens, found.tokens))
    console.print(rows)
    for problem in found.problems[:3]:
        console.print(f"[yellow]{problem.kind} call[/] at message {problem.index}: {escape(problem.tool)}")


def _print_decision(receipt: Receipt, policy: Policy, target: int, console: Console) -> None:
    limits = thresholds(policy, WINDOW)
    size, messages = receipt.tokens_before, receipt.messages_before
    facts = TriggerFacts(size, size, size, messages, messages, Floor, BreakerState, bool)
    decision = decide(WatchLimits(policy, WINDOW), facts, "turn_start")
    drafts = f"drafts above {limits.soft:,}, " if limits.soft is not None else ""
    compacts = (
        f"compacts above {limits.hard:,}" if limits.hard is not None else "never compacts automatically"
    )
    console.print(
        f"policy {policy.name}, window {WINDOW.context:,} tokens: {limits.usable:,} are usable, {drafts}"
        f"{compacts}\nthe session takes {receipt.tokens_before:,}, system prompt and tools "
        f"included, so the decision is: [bold]{type(decision).__name__.lower()}[/]"
    )
    console.print(f"this demo folds it to {target:,} tokens (--target), without a model, a key or a network")
