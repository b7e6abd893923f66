"""`foldline batch fold` and `batch replay`: an archive of sessions on all cores or on Ray, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import click
import msgspec

import foldline
from foldline.cli.batch_work import FoldFiles, fold_one, replay_one
from foldline.cli.commands.replay import ReplayOptions
from foldline.cli.common import find_policy
from foldline.cli.options import (
    DIALECT,
    FROM_START,
    POLICIES,
    POLICY,
    Shown,
    argument,
    command,
    examples,
    option,
)
from foldline.cli.reports.batch import check_format, shown_results, ticking, write_table
from foldline.config import settings
from foldline.errors import InputError
from foldline.lab.batch import TABLES, BatchFolder, Work
from foldline.lab.run import ReplaySetup
from foldline.lab.runner import LOCAL, LocalPool, RayCluster, Runner
from foldline.lab.sources import sources

EXAMPLES = (
    "foldline batch fold ~/.claude/projects -o folded --target 32000",
    "foldline batch fold sessions/ more/*.jsonl -o folded --window 200000 --policy pi",
    "foldline batch replay sessions/ -o replays --policy none,pi,foldline --window 100000",
    "foldline batch replay sessions/ -o replays --policy all --ray=auto",
    "foldline batch fold postgresql://me@db/foldline -o folded --target 32000",
)
W = TypeVar("W", FoldFiles, ReplaySetup)


class BatchPlace(msgspec.Struct, frozen=True):
    """Which sessions, where the results go, and where the work runs."""

    files: tuple[str, ...] = argument("SOURCE...")
    folder: Path = option(
        "The folder for the results (one file per session), their table and the manifest.",
        *("-o", "--out", "--output"),
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
    )
    form: str = option(
        "The format of the table.", "--format", type=click.Choice(list(TABLES)), default="jsonl"
    )
    jobs: int | None = option("Sessions at once  [default: one per core]")
    ray: str | None = option(
        "Run on a Ray cluster: --ray=local starts one here, --ray=auto or --ray=HOST:PORT joins one.",
        is_flag=False,
        flag_value=LOCAL,
        metavar="[ADDRESS]",
    )
    timeout: float | None = option(
        "The longest time for one session  [default: no limit]",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
    )
    force: bool = option("Redo every session, even if the options changed.")

    def runner(self) -> Runner:
        """Return where the work runs; raises InputError if Ray cannot be used."""
        if self.ray is None:
            return LocalPool(self.jobs, self.timeout)
        cluster = RayCluster(self.ray, self.jobs, self.timeout)
        cluster.check()
        return cluster


@command(*EXAMPLES)
def fold(
    place: BatchPlace,
    target: int | None = option("Fold each session to at most N tokens."),
    window: int | None = option("The context window to fold for, in tokens."),
    model: str | None = option("The model whose window to use  [default: each file's]", metavar="NAME"),
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    dialect: str | None = DIALECT,
    from_start: bool = FROM_START,
) -> Shown:
    """Fold session files.

    A SOURCE is a file, a pattern, a folder (all session files in it) or a store's URL. Each result is a file
    of JSON lines, ready to send (as `compact` writes it); the results are in folders like the sources. The
    table has a row per session. If a session fails, the table has its error, the others continue, and the
    exit code is 1.
    """
    config = settings()
    setup = FoldFiles(
        find_policy(policy_name, policy_file),
        target=target,
        window=window or config.window,
        model=config.named_model(model),
        dialect=dialect,
        from_start=from_start,
        models=config.models,
    )
    return _run(setup, fold_one, place, ".jsonl")


@command(*EXAMPLES)
def replay(place: BatchPlace, options: ReplayOptions) -> Shown:
    """Replay session files under one or more policies.

    A SOURCE is a file, a pattern, a folder (all session files in it) or a store's URL. Each result is a
    report, as `replay --json` prints it; the table has a row for each session and policy. If a session fails,
    the table has its error, the others continue, and the exit code is 1.
    """
    return _run(options.setup(), replay_one, place, ".json")


batch = click.Group(
    "batch",
    [fold, replay],
    help="""Fold or replay an archive of sessions on all cores, or on a Ray cluster.

    Run the same command again to continue: after Ctrl-C, after a crash, or with new sessions.
    """,
    epilog=examples(EXAMPLES),
)


def _run(setup: W, work: Work[W], place: BatchPlace, ending: str) -> Shown:
    """Run the batch with progress on standard error, write its table, and return the results."""
    if "-" in place.files:
        raise InputError("a batch cannot read standard input: save it to a file first")
    check_format(place.form)
    runner, replays = place.runner(), isinstance(setup, ReplaySetup)
    options = {**msgspec.to_builtins(setup), "version": foldline.__version__}
    with BatchFolder(place.folder, options, force=place.force) as folder:
        folder.add(sources(place.files), ending)
        count = len(folder.tasks)
        with ticking("replaying" if replays else "folding", count) as tick:
            folder.run(work, setup, runner=runner, tick=tick)
        write_table(folder, place.folder, place.form, replays=replays)
        results = list(folder.results())
    return shown_results(results, place.folder)
