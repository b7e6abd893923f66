"""What a batch prints: a line per file while it runs, and the results at the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from foldline.cli.output import err, escape, out, print_json, progress, share, tell, warn
from foldline.cli.reports.replay import by_policy, mean_of, print_totals, sums_of
from foldline.lab.batch import Result
from foldline.lab.manifest import NAME
from foldline.lab.report import SessionReport


@contextmanager
def ticking(verb: str, count: int) -> Generator[Callable[[Result], None]]:
    """Show a batch's progress on standard error: a bar on a terminal, else a line per file."""
    finished, console = 0, err()

    with progress(f"{verb} {count:,} sessions", count) as bar:

        def tick(result: Result) -> None:
            nonlocal finished
            finished += 1
            bar(finished)
            if result.state == "failed":
                console.print(f"[red]failed:[/] {escape(result.error)}", soft_wrap=True)
            elif result.state == "done" and not console.is_terminal:
                tell(f"{finished:,} of {count:,}: {result.file}")

        try:
            yield tick
        except KeyboardInterrupt:
            tell(f"{finished:,} of {count:,} files are done; run the same command again to continue")
            raise


def print_results(results: Sequence[Result], folder: Path, *, as_json: bool) -> None:
    """Print the results of all files: one JSON document, or text."""
    reports = [
        msgspec.convert(one.found["report"], SessionReport) for one in results if "report" in one.found
    ]
    if as_json:
        policies = {"policies": _policies(reports)} if reports else {}
        print_json({"files": [_row(one) for one in results], "totals": _totals(results), **policies})
        return
    warn(
        [f"{one.file}: {text}" for one in results if one.state == "done" for text in one.found["warnings"]],
        most=5,
    )
    if reports:
        print_totals(reports, out())
    _print_sums(_totals(results), folder)


def _totals(results: Sequence[Result]) -> dict[str, Any]:
    states = {state: sum(one.state == state for one in results) for state in ("done", "earlier", "failed")}
    folds = [one.found for one in results if "tokens_before" in one.found]
    sums = {name: sum(one[name] for one in folds) for name in ("tokens_before", "tokens_after", "folded")}
    return {"files": len(results), **states, **(sums if folds else {})}


def _row(result: Result) -> dict[str, Any]:
    """Return a file as --json prints it."""
    found = {key: value for key, value in result.found.items() if key != "report"}
    if result.state == "failed":
        found["error"] = result.error
    return {"file": result.file, "output": result.output, "state": result.state, **found}


def _policies(reports: Sequence[SessionReport]) -> list[dict[str, Any]]:
    """Return the sums of each policy, and the mean of its retention over the sessions that have one."""
    return [
        {"policy": name, "totals": sums_of(found), "retention": mean_of(found)}
        for name, found in by_policy(reports).items()
    ]


def _print_sums(sums: dict[str, Any], folder: Path) -> None:
    console = out()
    states = (("done", "done now"), ("earlier", "done before"), ("failed", "failed"))
    told = [f"{sums[name]:,} {text}" for name, text in states if sums[name]]
    console.print(f"{sums['files']:,} files: {', '.join(told)}", soft_wrap=True)
    if "tokens_before" in sums:
        before, after = sums["tokens_before"], sums["tokens_after"]
        console.print(
            f"{before:,} tokens -> {after:,} ({share(before - after, before)} less); {sums['folded']:,} were "
            "folded, "
            "the others fit as they are",
            soft_wrap=True,
        )
    console.print(f"[dim]results and {NAME} are in {escape(str(folder))}[/]", soft_wrap=True)
