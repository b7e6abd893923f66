"""`foldline policies`: show the policies as a table."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.console import Console

from foldline.cli.common import find_window
from foldline.cli.options import TOKENS, json_option, policies_option
from foldline.cli.output import escape, out, print_json, row, rule, table
from foldline.config import settings
from foldline.core.decide.describe import describe
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.decide.presets import PRESETS
from foldline.core.decide.triggers import thresholds
from foldline.core.measure.window import Window
from foldline.policies import load, policy

WIDE = 150  # columns needed to show what a policy does

EPILOG = """
\b
Examples:
  foldline policies --window 200000
  foldline policies pi codex
  foldline policies pi --json
  foldline policies mine.toml
  foldline policies --policies mine.toml
"""


@click.command(epilog=EPILOG)
@click.argument("names", nargs=-1, metavar="[NAME|FILE.toml]...")
@click.option("--window", type=TOKENS, metavar="N", help="Show the thresholds for this context window.")
@click.option("--model", metavar="NAME", help="Show the thresholds for this model.")
@policies_option
@json_option
def command(
    names: tuple[str, ...], window: int | None, model: str | None, policy_file: Path | None, as_json: bool
) -> None:
    """Show the presets, and your own policies, with what they mean for a window.

    With names, or a TOML file of your own: what those policies do, in words; with --json every field.
    """
    known: dict[str, Policy] = {
        **PRESETS,
        **settings().user_policies(),
        **(load(policy_file) if policy_file else {}),
    }
    chosen: dict[str, Policy] = {}
    for name in names or known:
        chosen |= load(Path(name)) if name.endswith(".toml") else _one(name, known)
    if as_json:
        print_json(msgspec.to_builtins({name: _full(rules) for name, rules in chosen.items()}))
        return
    console, limits = out(), find_window(model, window)
    if names:
        for rules in chosen.values():
            _print_words(rules, console)
            if window or model:
                _print_thresholds(rules, limits, console)
    else:
        _print_rows(chosen, limits, console)


def _one(name: str, known: dict[str, Policy]) -> dict[str, Policy]:
    found = policy(name, known)
    return {found.name: found}


def _print_rows(chosen: dict[str, Policy], limits: Window, console: Console) -> None:
    wide = console.width >= WIDE
    what = ("what it does",) if wide else ()
    title = f"window {limits.context:,}, output {limits.output:,} tokens"
    rows = table("=policy", "#usable", "#soft", "#hard", "keeps", *what, title=title)
    for name, rules in chosen.items():
        at = thresholds(rules, limits)
        soft, hard = (f"{n:,}" if n is not None else "-" for n in (at.soft, at.hard))
        told = (rules.summary,) if wide else ()
        row(rows, name, f"{usable_of(rules, limits):,}", soft, hard, _keeps(rules, limits), *told)
    console.print(rows)
    console.print("[dim]`foldline policies NAME` describes one.[/]")


def _print_words(rules: Policy, console: Console) -> None:
    rule(console, rules.name)
    console.print(escape(rules.summary), soft_wrap=not console.is_terminal)
    for part, words in describe(rules).items():
        label = part.replace("_", " ")
        console.print(f"[cyan]{label:13}[/] {escape(words)}", soft_wrap=not console.is_terminal)


def _print_thresholds(rules: Policy, limits: Window, console: Console) -> None:
    at = thresholds(rules, limits)
    fires = [f"{name} above {n:,}" for name, n in (("soft", at.soft), ("hard", at.hard)) if n is not None]
    said = "; ".join([f"{usable_of(rules, limits):,} tokens usable", *fires])
    console.print(f"[cyan]{f'in {limits.context:,}':13}[/] {said}", soft_wrap=not console.is_terminal)


def _full(rules: Policy) -> dict[str, object]:
    return {name: getattr(rules, name) for name in rules.__struct_fields__}


def _keeps(rules: Policy, limits: Window) -> str:
    keep = rules.keep
    parts = [
        *([f"{keep.messages} messages"] if keep.messages else []),
        *([f"{keep.message_fraction:.0%} of messages"] if keep.message_fraction else []),
        *([f"{keep.amount.resolve(limits, usable_of(rules, limits)):,} tokens"] if keep.amount else []),
        *([f"{rules.quote_user_tokens:,} of the user's"] if rules.quote_user_tokens else []),
    ]
    return "up to " + ", ".join(parts) if parts else "nothing"
