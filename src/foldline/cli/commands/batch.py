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
from foldline.cli.reports.batch import answer, check_format, ticking, write_table
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
        "The folder for results, one a session, their table and the manifest.",
        *("-o", "--out", "--output"),
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
    )
    form: str = option(
        "What the table is written as.", "--format", type=click.Choice(list(TABLES)), default="jsonl"
    )
    jobs: int | None = option("At once  [default: one a core]")
    ray: str | None = option(
        "Run on a Ray cluster: --ray=local starts one here, --ray=auto or --ray=HOST:PORT joins one.",
        is_flag=False,
        flag_value=LOCAL,
        metavar="[ADDRESS]",
    )
    timeout: float | None = option(
        "What one session may take  [default: any]",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
    )
    force: bool = option("Do everything again, with other options too.")

    def runner(self) -> Runner:
        """Return where the work runs; raises InputError for a Ray that cannot be used."""
        if self.ray is None:
            return LocalPool(self.jobs, self.timeout)
        cluster = RayCluster(self.ray, self.jobs, self.timeout)
        cluster.check()
        return cluster


@command(*EXAMPLES)
def fold(
    place: BatchPlace,
    target: int | None = option("Fold each to N tokens at most."),
    window: int | None = option("The context window to fold for."),
    model: str | None = option("Whose window to use  [default: each file's]", metavar="NAME"),
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    dialect: str | None = DIALECT,
    from_start: bool = FROM_START,
) -> Shown:
    """Fold session files.

    A SOURCE is a file, a pattern, a folder (it stands for the session files in it) or a store's URL. Results
    are laid out as it is, JSON lines, ready to send (as by `compact`). The table has a row a session. One
    that fails has its error there and the others go on; the exit code is then 1.
    """
    known = settings()
    wish = FoldFiles(
        find_policy(policy_name, policy_file),
        target=target,
        window=window or known.window,
        model=known.named_model(model),
        dialect=dialect,
        from_start=from_start,
        models=known.models,
    )
    return _run(wish, fold_one, place, ".jsonl")


@command(*EXAMPLES)
def replay(place: BatchPlace, asked: ReplayOptions) -> Shown:
    """Replay session files under one or more policies.

    A SOURCE is a file, a pattern, a folder (it stands for the session files in it) or a store's URL. Each
    result is a report (as by `replay --json`); the table has a row for each session and policy. A session
    that fails has its error there and the others go on; the exit code is then 1.
    """
    return _run(asked.setup(), replay_one, place, ".json")


batch = click.Group(
    "batch",
    [fold, replay],
    help="""Fold or replay an archive of sessions on all cores, or on a Ray cluster.

    The same command goes on where it stopped: after Ctrl-C, after a crash, or when there are new sessions.
    """,
    epilog=examples(EXAMPLES),
)


def _run(wish: W, work: Work[W], place: BatchPlace, ending: str) -> Shown:
    """Run the batch with progress on standard error, write its table, and answer with what came of it."""
    if "-" in place.files:
        raise InputError("a batch goes over files: save standard input to one first")
    check_format(place.form)
    runner, replays = place.runner(), isinstance(wish, ReplaySetup)
    options = {**msgspec.to_builtins(wish), "version": foldline.__version__}
    with BatchFolder(place.folder, options, force=place.force) as folder:
        folder.add(sources(place.files), ending)
        count = len(folder.tasks)
        with ticking("replaying" if replays else "folding", count) as tick:
            folder.run(work, wish, runner=runner, tick=tick)
        write_table(folder, place.folder, place.form, replays=replays)
        results = list(folder.results())
    return answer(results, place.folder)
