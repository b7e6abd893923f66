"""`foldline replay` and `check`: replay recorded sessions, to compare policies or to find problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from foldline.cli.common import find_policies, shown_name
from foldline.cli.options import JOBS, PLOTS, POLICIES, RECORDED_WINDOW, Shown, argument, command, option
from foldline.cli.output import err, escape, out, progress, progress_lines, tell, warn
from foldline.cli.reports.replay import print_session, print_totals
from foldline.config import settings
from foldline.errors import InputError
from foldline.lab.plots import check_targets, draw
from foldline.lab.recordings import problems_of
from foldline.lab.report import ReplaySums, SessionReport, as_json
from foldline.lab.run import ReplaySetup, replay_many, replay_setup
from foldline.lab.runner import Failed
from foldline.lab.sources import session_files
from foldline.transcripts import MessageRecord, read

EACH = 3  # with more files, only sums are printed


class ReplayOptions(msgspec.Struct, frozen=True):
    """Policies, window and measures of a replay; `batch replay` takes the same options."""

    policies: tuple[str, ...] = option(
        "Presets, or your own policies; `none` never compacts, `all` is none and the ten systems  "
        "[default: none and the settings' policy]",
        "--policy",
        metavar="NAME,...",
    )
    policy_file: Path | None = POLICIES
    window: int | None = RECORDED_WINDOW
    model: str | None = option(
        "The model whose window and prices to use  [default: the file's]", metavar="NAME"
    )
    rounds: int | None = option("Fold N times while the session grows.", type=click.IntRange(min=1, max=50))
    cuts: str = option(
        "Where to measure retention, as shares of the session's tokens.",
        metavar="SHARES",
        default="0.5,0.75",
    )
    retention: bool = option("Measure retention  [default: yes]", "--retention/--no-retention", default=True)

    def setup(self, *, fills: bool = False) -> ReplaySetup:
        """Return the setup of the replay; with `fills` its report lists what filled the window."""
        found = find_policies(self.policies, self.policy_file, default=f"none,{settings().policy}")
        return replay_setup(
            found.values(),
            self.window,
            self.model,
            cuts=_shares(self.cuts) if self.retention else (),
            rounds=self.rounds or 0,
            fills=fills,
        )


@command(
    "foldline replay session.jsonl",
    "foldline replay session.jsonl --policy none,pi,foldline --window 200000",
    "foldline replay examples/coop-trace.jsonl --policy none,coop,foldline --plot trace.html",
    "foldline replay ~/.claude/projects/my-project --policy all --json > replays.json",
    "foldline replay session.jsonl --policy foldline,pi --rounds 5",
)
def replay(
    options: ReplayOptions,
    files: tuple[str, ...] = argument("FILE..."),
    plots: tuple[Path, ...] = PLOTS,
    jobs: int | None = JOBS,
    lines: bool = option(
        "Write progress to standard error as JSON lines: messages replayed, or files if there are several.",
        "--progress",
    ),
) -> Shown:
    """Replay session FILEs as they would have gone under one or more policies.

    For each turn: calls, the context of the first call, boundaries. In total: input tokens, price without and
    with prompt caching, compactions, overflows, retention. FILE may be a folder or a pattern. Nothing is sent
    anywhere; checkpoints are written without a model. docs/replay.md explains the figures.
    """
    setup = options.setup(fills=bool(plots))
    paths = session_files(files)
    if plots and len(paths) > 1:
        raise InputError(f"--plot draws one session; {len(paths):,} files were named")
    check_targets(plots)  # before the long work begins
    several = len(paths) if len(paths) > 1 else None
    if lines:
        shown = progress_lines(several or sum(isinstance(record, MessageRecord) for record in read(paths[0])))
    else:
        name = f"{several:,} sessions" if several else shown_name(paths[0])
        shown = progress(f"replaying {name}", several)
    with shown as tick:
        results = replay_many(paths, setup, jobs, tick)
    reports, failed = _sorted_out(results)
    for result in results:
        if isinstance(result, Failed):
            err().print(f"[red]left out:[/] {escape(result.error)}", soft_wrap=True)
        else:
            warn([f"{result.session}: {text}" for text in result.warnings], most=3)
    for target in plots:
        draw(reports[0], target)
        tell(f"wrote {target}")
    if failed:
        err().print(f"[red]error:[/] {len(failed):,} of {len(results):,} files could not be replayed")
    document = {**as_json(reports), **({"failed": failed} if failed else {})}
    return Shown(lambda: document, lambda: _print(reports), 1 if failed else 0)


def _shares(text: str) -> tuple[float, ...]:
    """Return the shares of --cuts; raises InputError if one is not between 0 and 1."""
    try:
        shares = tuple(float(share) for share in text.split(",") if share.strip())
    except ValueError:
        shares = ()
    if not shares or not all(0 < share < 1 for share in shares):
        raise InputError(f"--cuts {text}: give shares between 0 and 1, such as 0.5,0.75")
    return shares


def _sorted_out(results: Sequence[SessionReport | Failed]) -> tuple[list[SessionReport], list[Failed]]:
    """Return the reports, and the files that could not be replayed."""
    reports = [result for result in results if isinstance(result, SessionReport)]
    return reports, [result for result in results if isinstance(result, Failed)]


def _print(reports: Sequence[SessionReport]) -> None:
    console = out()
    if len(reports) <= EACH:
        for report in reports:
            print_session(report, console)
    if len(reports) > 1:
        sums = ReplaySums()
        for report in reports:
            sums.add(report)
        print_totals(sums, console)


@command(
    "foldline check recordings --window 60000",
    "foldline check 'recordings/**/*.jsonl' --policy foldline,pi",
    "foldline check session.jsonl --json | jq -r '.problems[].text'",
)
def check(
    files: tuple[str, ...] = argument("FILE..."),
    policies: tuple[str, ...] = option(
        "Presets, or your own policies  [default: the settings', else foldline]",
        "--policy",
        metavar="NAME,...",
    ),
    policy_file: Path | None = POLICIES,
    window: int | None = RECORDED_WINDOW,
    model: str | None = option("The model whose window to use  [default: the file's]", metavar="NAME"),
    jobs: int | None = JOBS,
) -> Shown:
    """Replay recorded session FILEs, and fail on a problem.

    The exit code is 1 if a view lacks a standing rule of the user, a view is invalid for its dialect, a
    request exceeds the window, or a file cannot be replayed. FILE may be a folder or a pattern.
    """
    chosen = find_policies(policies, policy_file)
    setup = replay_setup(chosen.values(), window, model, checks=True)
    paths = session_files(files)
    with progress("checking sessions", len(paths) if len(paths) > 1 else None) as tick:
        results = replay_many(paths, setup, jobs, tick)
    reports, failed = _sorted_out(results)
    problems = [problem for report in reports for problem in problems_of(report)]

    def show() -> None:
        console = out()
        for line in (*(failure.error for failure in failed), *map(str, problems)):
            console.print(f"[red]failed:[/] {escape(line)}", soft_wrap=True)
        sessions = "1 session" if len(results) == 1 else f"{len(results):,} sessions"
        bad = {item.session for item in (*failed, *problems)}
        console.print(f"{sessions}, {len(bad):,} failed, under {escape(', '.join(chosen))}")

    def document() -> dict[str, Any]:
        return {"sessions": len(results), "policies": list(chosen), "problems": problems, "failed": failed}

    return Shown(document, show, 1 if failed or problems else 0)
