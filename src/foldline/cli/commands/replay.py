"""`foldline replay FILE...`: replay recorded sessions under several policies, turn by turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from foldline.cli.common import find_policies, shown_name
from foldline.cli.options import PLOTS, POLICIES, Shown, argument, command, option
from foldline.cli.output import err, escape, out, progress, progress_lines, tell, warn
from foldline.cli.reports.replay import print_session, print_totals
from foldline.config import settings
from foldline.errors import InputError
from foldline.lab.plots import check_targets, draw
from foldline.lab.report import ReplaySums, SessionReport, as_json
from foldline.lab.run import ReplaySetup, replay_many, replay_setup
from foldline.lab.runner import Failed
from foldline.lab.sources import session_files
from foldline.transcripts import MessageRecord, read

EACH = 3  # up to so many files every turn is printed, beyond that only sums


class ReplayOptions(msgspec.Struct, frozen=True):
    """What to replay under, and what to measure; `batch replay` takes the same."""

    policies: tuple[str, ...] = option(
        "Presets, or policies of your own; `none` never compacts, `all` is none and the ten systems  "
        "[default: none and the settings' policy]",
        "--policy",
        metavar="NAME,...",
    )
    policy_file: Path | None = POLICIES
    window: int | None = option(
        "The context window, in tokens  [default: the file's own, else its model's, else 200000]",
    )
    model: str | None = option("Whose window and prices to use  [default: the file's]", metavar="NAME")
    rounds: int | None = option("Fold N times while the session grows.", type=click.IntRange(min=1, max=50))
    cuts: str = option(
        "Where in a session retention is measured, as shares of its tokens.",
        metavar="SHARES",
        default="0.5,0.75",
    )
    retention: bool = option("Measure retention  [default: yes]", "--retention/--no-retention", default=True)

    def setup(self, *, fills: bool = False) -> ReplaySetup:
        """Return how to replay; `fills` keeps what filled the window."""
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
    asked: ReplayOptions,
    files: tuple[str, ...] = argument("FILE..."),
    plots: tuple[Path, ...] = PLOTS,
    jobs: int | None = option("Processes, for several files  [default: one per core]"),
    lines: bool = option(
        "Write progress to standard error as lines of JSON: messages replayed, or files of several.",
        "--progress",
    ),
) -> Shown:
    """Replay session FILEs as they would have gone under one or more policies.

    For every turn: calls, the context of the first, input tokens, boundaries. In all: input tokens, price
    without and with prompt caching, compactions, overflows, retention. A folder stands for the session files
    in it. Nothing is sent anywhere; checkpoints are written without a model. docs/replay.md says how it
    counts.
    """
    setup = asked.setup(fills=bool(plots))
    paths = session_files(files)
    _check(paths, plots)
    several = len(paths) if len(paths) > 1 else None
    if lines:
        shown = progress_lines(several or sum(isinstance(one, MessageRecord) for one in read(paths[0])))
    else:
        what = f"{several:,} sessions" if several else shown_name(paths[0])
        shown = progress(f"replaying {what}", several)
    with shown as tick:
        found = replay_many(paths, setup, jobs, tick)
    reports = [report for report in found if isinstance(report, SessionReport)]
    failed = [one for one in found if isinstance(one, Failed)]
    _complain(found)
    for target in plots:
        draw(reports[0], target)
        tell(f"wrote {target}")
    if failed:
        err().print(f"[red]error:[/] {len(failed):,} of {len(found):,} files could not be replayed")
    document = {**as_json(reports), **({"failed": failed} if failed else {})}
    return Shown(lambda: document, lambda: _print(reports), 1 if failed else 0)


def _shares(text: str) -> tuple[float, ...]:
    """Return the cuts of --cuts; raises InputError with what is allowed."""
    try:
        found = tuple(float(share) for share in text.split(",") if share.strip())
    except ValueError:
        found = ()
    if not found or not all(0 < share < 1 for share in found):
        raise InputError(f"--cuts {text}: give shares between 0 and 1, such as 0.5,0.75")
    return found


def _check(paths: Sequence[str], plots: Sequence[Path]) -> None:
    """Refuse impossible calls before any long work begins."""
    if plots and len(paths) > 1:
        raise InputError(f"--plot draws one session; {len(paths):,} files were named")
    check_targets(plots)


def _complain(found: Sequence[SessionReport | Failed]) -> None:
    console = err()
    for one in found:
        if isinstance(one, Failed):
            console.print(f"[red]left out:[/] {escape(one.error)}", soft_wrap=True)
        else:
            warn([f"{one.session}: {text}" for text in one.warnings], most=3)


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
