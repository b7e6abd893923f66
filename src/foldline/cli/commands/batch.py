"""`foldline batch FILE...`: fold or replay an archive of sessions on all cores, resuming where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import foldline
from foldline.cli.batch_work import FoldFiles, ReplayFiles, fold_one, replay_one
from foldline.cli.commands.replay import policies_of, shares_of
from foldline.cli.common import OneOf, find_policy, policy_options
from foldline.cli.options import json_option
from foldline.cli.output import fail
from foldline.cli.reports.batch import print_results, ticking
from foldline.config import settings
from foldline.dialects import names
from foldline.errors import InputError
from foldline.lab.batch import Result, Task, run, tasks
from foldline.lab.run import Wanted

EPILOG = """
\b
Examples:
  foldline batch ~/.claude/projects -o folded --target 32000
  foldline batch sessions/ more/*.jsonl -o folded --window 200000 --policy pi
  foldline batch sessions/ -o replays --replay --policy none,pi,foldline --window 100000
  foldline batch sessions/ -o replays --replay --policy all --json > totals.json
\b
Run the same command again and it goes on where it stopped: after Ctrl-C, after a crash, or
when there are new sessions. What the manifest in the output folder names is not done twice.
"""

_tokens = click.IntRange(min=1)


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...", type=click.Path(path_type=str))
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for results, one a session, and the manifest.",
)
@click.option("--replay", is_flag=True, help="Replay the sessions instead of folding them.")
@click.option("--target", type=_tokens, metavar="N", help="Fold each to N tokens at most.")
@click.option("--window", type=_tokens, metavar="N", help="The context window to fold for, or to replay in.")
@click.option("--model", metavar="NAME", help="Whose window and prices to use  [default: each file's]")
@policy_options
@click.option("--dialect", type=OneOf(names()), help="Write folded messages in this dialect.")
@click.option(
    "--from-start", is_flag=True, help="Fold everything said, not from a file's newest compaction on."
)
@click.option("--cuts", default="0.5,0.75", show_default=True, metavar="SHARES", help="As in `replay`.")
@click.option("--retention/--no-retention", default=True, help="As in `replay`  [default: yes]")
@click.option("--rounds", type=click.IntRange(min=1, max=50), metavar="N", help="As in `replay`.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes  [default: one a core]")
@click.option("--force", is_flag=True, help="Do everything again.")
@json_option
def command(
    files: tuple[str, ...],
    folder: Path,
    replay: bool,
    target: int | None,
    window: int | None,
    model: str | None,
    policy_name: str | None,
    policy_file: Path | None,
    dialect: str | None,
    from_start: bool,
    cuts: str,
    retention: bool,
    rounds: int | None,
    jobs: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Fold session FILEs, or replay them, on all cores.

    A DIR stands for the session files in it, and results are laid out as it is. Folded sessions are JSON
    lines, ready to send (as by `compact`); with --replay each result is a report (as by `replay --json`,
    where --policy takes a list). A file that fails is named and the others go on; the exit code is then 1.
    """
    if "-" in files:
        raise InputError("a batch goes over files: save standard input to one first")
    known = settings()
    _refuse("folds, and --replay does not", replay, target=target, dialect=dialect, from_start=from_start)
    _refuse("is for --replay", not replay, rounds=rounds)
    window, model = window or known.window, model or known.model
    wish: FoldFiles | ReplayFiles
    if replay:
        wanted = Wanted(
            policies=policies_of(policy_name, policy_file),
            window=window,
            model=model,
            cuts=shares_of(cuts) if retention else (),
            rounds=rounds or 0,
            models=known.models,
        )
        wish = ReplayFiles(wanted, foldline.__version__)
    else:
        wish = FoldFiles(
            find_policy(policy_name, policy_file),
            foldline.__version__,
            target=target,
            window=window,
            model=model,
            dialect=dialect,
            from_start=from_start,
            models=known.models,
        )
    found = tasks(files, folder, ".json" if replay else ".jsonl")
    results = _run(found, folder, wish, jobs=jobs, force=force)
    print_results(results, folder, as_json=as_json)
    if failed := sum(result.state == "failed" for result in results):
        fail(f"{failed:,} of {len(results):,} files failed; the same command tries them again")


def _refuse(why: str, applies: bool, **flags: Any) -> None:
    """Refuse flags that say nothing about what is asked."""
    given = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value]
    if applies and given:
        raise InputError(f"{', '.join(given)} {why}")


def _run(
    found: Sequence[Task], folder: Path, wish: FoldFiles | ReplayFiles, *, jobs: int | None, force: bool
) -> list[Result]:
    """Run the batch, with progress on standard error."""
    with ticking("replaying" if isinstance(wish, ReplayFiles) else "folding", len(found)) as tick:
        if isinstance(wish, ReplayFiles):
            return run(found, folder, wish, replay_one, jobs=jobs, force=force, tick=tick)
        return run(found, folder, wish, fold_one, jobs=jobs, force=force, tick=tick)
