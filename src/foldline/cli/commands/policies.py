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
from foldline.policies import load
from foldline.policies import policy as named_policy

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
    window: int | None = option("Show the thresholds for this context window, in tokens."),
    model: str | None = option("Show the thresholds for this model.", metavar="NAME"),
    policy_file: Path | None = POLICIES,
) -> Shown:
    """Show the presets and your own policies, with their thresholds in a window.

    With names, or with your own TOML file: describe what these policies do. With --json: print every field.
    """
    known = {**PRESETS, **known_policies(policy_file)}
    chosen: dict[str, Policy] = {}
    for name in names or known:
        if name.endswith(".toml"):
            chosen |= load(Path(name))
        else:
            found = named_policy(name, known)
            chosen[found.name] = found

    def show() -> None:
        console, limits = out(), find_window(model, window)
        if not names:
            _print_rows(chosen, limits, console)
            return
        for policy in chosen.values():
            rule(console, escape(policy.name))
            console.print(escape(policy.summary), soft_wrap=not console.is_terminal)
            parts = {part.replace("_", " "): text for part, text in describe(policy).items()}
            if window or model:
                parts[f"in {limits.context:,}"] = _thresholds(policy, limits)
            for part, text in parts.items():
                console.print(f"[cyan]{part:13}[/] {escape(text)}", soft_wrap=not console.is_terminal)

    fields = {name: msgspec.structs.asdict(found) for name, found in chosen.items()}
    return Shown(lambda: fields, show)


def _print_rows(chosen: dict[str, Policy], limits: Window, console: Console) -> None:
    wide = console.width >= WIDE
    title = f"window {limits.context:,}, output {limits.output:,} tokens"
    what = ["what it does"] if wide else []
    rows = table("=policy", "#usable", "#soft", "#hard", "keeps", *what, title=title)
    for name, policy in chosen.items():
        found = thresholds(policy, limits)
        soft, hard = (f"{n:,}" if n is not None else "-" for n in (found.soft, found.hard))
        summary = [policy.summary] if wide else []
        row(rows, name, f"{found.usable:,}", soft, hard, _keeps(policy, limits), *summary)
    console.print(rows)
    console.print("[dim]`foldline policies NAME` describes a policy.[/]")


def _thresholds(policy: Policy, limits: Window) -> str:
    found = thresholds(policy, limits)
    above = [
        f"{name} above {n:,}" for name, n in (("soft", found.soft), ("hard", found.hard)) if n is not None
    ]
    return "; ".join([f"{found.usable:,} tokens usable", *above])


def _keeps(policy: Policy, limits: Window) -> str:
    keep = policy.keep
    parts = [
        *([f"{keep.messages} messages"] if keep.messages else []),
        *([f"{keep.message_fraction:.0%} of messages"] if keep.message_fraction else []),
        *([f"{keep.amount.resolve(limits, usable_of(policy, limits)):,} tokens"] if keep.amount else []),
        *([f"{policy.quote_user_tokens:,} of the user's"] if policy.quote_user_tokens else []),
    ]
    return "up to " + ", ".join(parts) if parts else "nothing"
