"""`foldline policies`: show the policies as a table."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.console import Console

from foldline.cli.common import find_window, known_policies
from foldline.cli.options import POLICIES, Shown, argument, command, option
from foldline.cli.output import escape, out, row, rule, table
from foldline.core.decide.describe import describe
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.decide.presets import PRESETS
from foldline.core.decide.triggers import thresholds
from foldline.core.measure.window import Window
from foldline.policies import load, policy

WIDE = 150  # columns needed to show what a policy does


@command(
    "foldline policies --window 200000",
    "foldline policies pi codex",
    "foldline policies pi --json",
    "foldline policies mine.toml",
    "foldline policies --policies mine.toml",
)
def policies(
    names: tuple[str, ...] = argument("[NAME|FILE.toml]...", required=False),
    window: int | None = option("Show the thresholds for this context window."),
    model: str | None = option("Show the thresholds for this model.", metavar="NAME"),
    policy_file: Path | None = POLICIES,
) -> Shown:
    """Show the presets, and your own policies, with what they mean for a window.

    With names, or a TOML file of your own: what those policies do, in words; with --json every field.
    """
    known = {**PRESETS, **known_policies(policy_file)}
    chosen: dict[str, Policy] = {}
    for name in names or known:
        if name.endswith(".toml"):
            chosen |= load(Path(name))
        else:
            found = policy(name, known)
            chosen[found.name] = found

    def show() -> None:
        console, limits = out(), find_window(model, window)
        if not names:
            _print_rows(chosen, limits, console)
            return
        for rules in chosen.values():
            rule(console, rules.name)
            console.print(escape(rules.summary), soft_wrap=not console.is_terminal)
            words = {part.replace("_", " "): text for part, text in describe(rules).items()}
            if window or model:
                words[f"in {limits.context:,}"] = _fires(rules, limits)
            for part, text in words.items():
                console.print(f"[cyan]{part:13}[/] {escape(text)}", soft_wrap=not console.is_terminal)

    fields = {name: {key: getattr(one, key) for key in one.__struct_fields__} for name, one in chosen.items()}
    return Shown(lambda: msgspec.to_builtins(fields), show)


def _print_rows(chosen: dict[str, Policy], limits: Window, console: Console) -> None:
    wide = console.width >= WIDE
    title = f"window {limits.context:,}, output {limits.output:,} tokens"
    what = ["what it does"] if wide else []
    rows = table("=policy", "#usable", "#soft", "#hard", "keeps", *what, title=title)
    for name, rules in chosen.items():
        at = thresholds(rules, limits)
        soft, hard = (f"{n:,}" if n is not None else "-" for n in (at.soft, at.hard))
        told = [rules.summary] if wide else []
        row(rows, name, f"{usable_of(rules, limits):,}", soft, hard, _keeps(rules, limits), *told)
    console.print(rows)
    console.print("[dim]`foldline policies NAME` describes one.[/]")


def _fires(rules: Policy, limits: Window) -> str:
    at = thresholds(rules, limits)
    fires = [f"{name} above {n:,}" for name, n in (("soft", at.soft), ("hard", at.hard)) if n is not None]
    return "; ".join([f"{usable_of(rules, limits):,} tokens usable", *fires])


def _keeps(rules: Policy, limits: Window) -> str:
    keep = rules.keep
    parts = [
        *([f"{keep.messages} messages"] if keep.messages else []),
        *([f"{keep.message_fraction:.0%} of messages"] if keep.message_fraction else []),
        *([f"{keep.amount.resolve(limits, usable_of(rules, limits)):,} tokens"] if keep.amount else []),
        *([f"{rules.quote_user_tokens:,} of the user's"] if rules.quote_user_tokens else []),
    ]
    return "up to " + ", ".join(parts) if parts else "nothing"
