"""`foldline replay FILE...`: replay recorded sessions under several policies, turn by turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from foldline.cli.common import shown_name
from foldline.cli.options import TOKENS, json_option, plot_options, policies_option
from foldline.cli.output import err, escape, fail, out, print_json, progress, progress_lines, tell, warn
from foldline.cli.reports.replay import print_session, print_totals
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS
from foldline.errors import InputError, PolicyError
from foldline.lab.plots import check_targets, draw
from foldline.lab.report import ReplaySums, SessionReport
from foldline.lab.report import as_json as reports_as_json
from foldline.lab.run import Wanted, replay_many
from foldline.lab.runner import Failed
from foldline.lab.sources import session_files
from foldline.policies import load, policy
from foldline.transcripts import MessageRecord, read

NONE = Policy(name="none", summary="Never compacts.", enabled=False)
TEN = tuple(name for name in PRESETS if ":" not in name)  # the systems, without tunings of one
EACH = 3  # up to so many files every turn is printed, beyond that only sums

EPILOG = """
\b
Examples:
  foldline replay session.jsonl
  foldline replay session.jsonl --policy none,pi,foldline --window 200000
  foldline replay examples/coop-trace.jsonl --policy none,coop,foldline --plot trace.html
  foldline replay ~/.claude/projects/my-project --policy all --json > replays.json
  foldline replay session.jsonl --policy foldline,pi --rounds 5
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=str))
@click.option(
    "--policy",
    "names",
    metavar="NAME,...",
    help="Presets, or policies of your own; `none` never compacts, `all` is none and the ten systems  "
    "[default: none and the settings' policy]",
)
@policies_option
@click.option(
    "--window",
    type=TOKENS,
    metavar="N",
    help="The context window, in tokens  [default: the file's own, else its model's, else 200000]",
)
@click.option("--model", metavar="NAME", help="Whose window and prices to use  [default: the file's]")
@click.option(
    "--cuts",
    default="0.5,0.75",
    show_default=True,
    metavar="SHARES",
    help="Where in a session retention is measured, as shares of its tokens.",
)
@click.option("--retention/--no-retention", default=True, help="Measure retention  [default: yes]")
@click.option(
    "--rounds", type=click.IntRange(min=1, max=50), metavar="N", help="Fold N times while the session grows."
)
@plot_options("one session")
@click.option(
    "--jobs",
    type=TOKENS,
    metavar="N",
    help="Processes, for several files  [default: one per core]",
)
@click.option(
    "--progress",
    "told",
    is_flag=True,
    help="Write progress to standard error as lines of JSON: messages replayed, or files of several.",
)
@json_option
def command(
    files: tuple[str, ...],
    names: str | None,
    policy_file: Path | None,
    window: int | None,
    model: str | None,
    cuts: str,
    retention: bool,
    rounds: int | None,
    plots: tuple[Path, ...],
    plot_linked: bool,
    jobs: int | None,
    told: bool,
    as_json: bool,
) -> None:
    """Replay session FILEs as they would have gone under one or more policies.

    For every turn: calls, the context of the first, input tokens, boundaries. In all: input tokens, price
    without and with prompt caching, compactions, overflows, retention. A folder stands for the session files
    in it. Nothing is sent anywhere; checkpoints are written without a model. docs/replay.md says how it
    counts.
    """
    known = settings()
    wanted = Wanted(
        policies=policies_of(names, policy_file),
        window=window or known.window,
        model=known.named_model(model),
        cuts=shares_of(cuts) if retention else (),
        rounds=rounds or 0,
        fills=bool(plots),
        models=known.models,
    )
    paths = session_files(files)
    _check(paths, plots)
    shown = progress_lines(_total(paths)) if told else progress(_title(paths), _several(paths))
    with shown as tick:
        found = replay_many(paths, wanted, jobs, tick)
    reports = [report for report in found if isinstance(report, SessionReport)]
    _complain(found)
    for target in plots:
        draw(reports[0], target, linked=plot_linked)
        tell(f"wrote {target}")
    if as_json:
        print_json(_document(reports, found))
    else:
        _print(reports)
    if len(reports) < len(found):
        fail(f"{len(found) - len(reports):,} of {len(found):,} files could not be replayed")


def _document(reports: Sequence[SessionReport], found: Sequence[SessionReport | Failed]) -> dict[str, Any]:
    """Return what --json prints; `failed` only if a file was left out."""
    failed = [one for one in found if isinstance(one, Failed)]
    return {**reports_as_json(reports), **({"failed": failed} if failed else {})}


def policies_of(names: str | None, policy_file: Path | None) -> tuple[Policy, ...]:
    """Return the policies that a comma-separated list names, each once."""
    known = settings()
    own = {**known.user_policies(), **(load(policy_file) if policy_file else {})}
    asked = [name.strip() for name in (names or f"none,{known.policy}").split(",") if name.strip()]
    if not asked:
        raise PolicyError("no policy named; give --policy none,pi,foldline or --policy all")
    found: dict[str, Policy] = {}
    for name in asked:
        for one in ("none", *TEN, *own) if name == "all" else (name,):
            found[one] = NONE if one == "none" else policy(one, own)
    return tuple(found.values())


def shares_of(text: str) -> tuple[float, ...]:
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
    if "-" in paths:
        raise InputError("a replay reads its file more than once: save standard input to a file first")


def _several(paths: Sequence[str]) -> int | None:
    return len(paths) if len(paths) > 1 else None


def _total(paths: Sequence[str]) -> int:
    """Return the number of files, or of the messages of a single one."""
    return _several(paths) or sum(isinstance(record, MessageRecord) for record in read(paths[0]))


def _title(paths: Sequence[str]) -> str:
    return f"replaying {shown_name(paths[0])}" if len(paths) == 1 else f"replaying {len(paths):,} sessions"


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
