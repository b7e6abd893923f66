"""`foldline batch fold` and `batch replay`: an archive of sessions on all cores or on Ray, resumable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

import foldline
from foldline.cli.batch_table import FORMATS, check_format, write_table
from foldline.cli.batch_work import FoldFiles, ReplayFiles, fold_one, replay_one
from foldline.cli.commands.replay import policies_of, shares_of
from foldline.cli.common import find_policy
from foldline.cli.options import TOKENS, OneOf, json_option, policies_option, policy_options
from foldline.cli.output import fail
from foldline.cli.reports.batch import print_results, ticking
from foldline.config import settings
from foldline.dialects import names
from foldline.errors import InputError
from foldline.lab.batch import planned, run
from foldline.lab.pool import LocalPool
from foldline.lab.ray_cluster import LOCAL, RayCluster
from foldline.lab.run import Wanted
from foldline.lab.runner import Runner
from foldline.lab.sources import sources

EPILOG = """
\b
Examples:
  foldline batch fold ~/.claude/projects -o folded --target 32000
  foldline batch fold sessions/ more/*.jsonl -o folded --window 200000 --policy pi
  foldline batch replay sessions/ -o replays --policy none,pi,foldline --window 100000
  foldline batch replay sessions/ -o replays --policy all --format parquet --ray=auto
  foldline batch fold postgresql://me@db/foldline -o folded --target 32000
\b
Run the same command again and it goes on where it stopped: after Ctrl-C, after a crash, or
when there are new sessions. What the manifest in the output folder names is not done twice.
"""

F = TypeVar("F", bound=Callable[..., Any])


class _Place(msgspec.Struct, frozen=True):
    """Which files, where the results go, and where the work runs."""

    files: tuple[str, ...]
    folder: Path
    form: str
    jobs: int | None
    ray: str | None
    timeout: float | None
    force: bool
    as_json: bool

    def runner(self) -> Runner:
        """Return where the work runs; raises InputError for a Ray that cannot be used."""
        if self.ray is None:
            return LocalPool(self.jobs, self.timeout)
        cluster = RayCluster(self.ray, self.jobs, self.timeout)
        cluster.check()
        return cluster


_PLACE: tuple[Callable[[Any], Any], ...] = (
    click.argument("files", nargs=-1, required=True, metavar="SOURCE...", type=click.Path(path_type=str)),
    click.option(
        "-o",
        "--out",
        "--output",
        "folder",
        required=True,
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="The folder for results, one a session, their table and the manifest.",
    ),
    click.option(
        "--format", "form", type=OneOf(FORMATS), default="jsonl", show_default=True, help="Of the table."
    ),
    click.option("--jobs", type=TOKENS, metavar="N", help="At once  [default: one a core]"),
    click.option(
        "--ray",
        is_flag=False,
        flag_value=LOCAL,
        metavar="[ADDRESS]",
        help="Run on a Ray cluster: --ray=local starts one here, --ray=auto or --ray=HOST:PORT joins one.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="What one session may take  [default: any]",
    ),
    click.option("--force", is_flag=True, help="Do everything again, with other options too."),
    json_option,
)


def _place_options(command: F) -> F:
    """Add the parameters of `_Place`."""
    for option in reversed(_PLACE):
        command = option(command)
    return command


@click.group(epilog=EPILOG)
def command() -> None:
    """Fold or replay an archive of sessions on all cores, or on a Ray cluster."""


@command.command(epilog=EPILOG)
@click.option("--target", type=TOKENS, metavar="N", help="Fold each to N tokens at most.")
@click.option("--window", type=TOKENS, metavar="N", help="The context window to fold for.")
@click.option("--model", metavar="NAME", help="Whose window to use  [default: each file's]")
@policy_options
@click.option("--dialect", type=OneOf(names()), help="Write folded messages in this dialect.")
@click.option(
    "--from-start", is_flag=True, help="Fold everything said, not from a file's newest compaction on."
)
@_place_options
def fold(
    target: int | None,
    window: int | None,
    model: str | None,
    policy_name: str | None,
    policy_file: Path | None,
    dialect: str | None,
    from_start: bool,
    **place: Any,
) -> None:
    """Fold session files.

    A SOURCE is a file, a pattern, a folder (it stands for the session files in it) or a store's URL. Results
    are laid out as it is, JSON lines, ready to send (as by `compact`). The table has a row a session. One
    that fails has its error there and the others go on; the exit code is then 1.
    """
    known = settings()
    wish = FoldFiles(
        find_policy(policy_name, policy_file),
        foldline.__version__,
        target=target,
        window=window or known.window,
        model=known.named_model(model),
        dialect=dialect,
        from_start=from_start,
        models=known.models,
    )
    _run(wish, _Place(**place))


@command.command(epilog=EPILOG)
@click.option("--window", type=TOKENS, metavar="N", help="The context window to replay in.")
@click.option("--model", metavar="NAME", help="Whose window and prices to use  [default: each file's]")
@click.option(
    "--policy", "policy_names", multiple=True, metavar="NAME,...", help="As in `replay`; may be repeated."
)
@policies_option
@click.option("--cuts", default="0.5,0.75", show_default=True, metavar="SHARES", help="As in `replay`.")
@click.option("--retention/--no-retention", default=True, help="As in `replay`  [default: yes]")
@click.option("--rounds", type=click.IntRange(min=1, max=50), metavar="N", help="As in `replay`.")
@_place_options
def replay(
    window: int | None,
    model: str | None,
    policy_names: tuple[str, ...],
    policy_file: Path | None,
    cuts: str,
    retention: bool,
    rounds: int | None,
    **place: Any,
) -> None:
    """Replay session files under one or more policies.

    A SOURCE is a file, a pattern, a folder (it stands for the session files in it) or a store's URL. Each
    result is a report (as by `replay --json`); the table has a row for each session and policy. A session
    that fails has its error there and the others go on; the exit code is then 1.
    """
    known = settings()
    wanted = Wanted(
        policies=policies_of(",".join(policy_names) or None, policy_file),
        window=window or known.window,
        model=known.named_model(model),
        cuts=shares_of(cuts) if retention else (),
        rounds=rounds or 0,
        models=known.models,
    )
    _run(ReplayFiles(wanted, foldline.__version__), _Place(**place))


def _run(wish: FoldFiles | ReplayFiles, place: _Place) -> None:
    """Run the batch with progress on standard error, write its table, print what came of it."""
    if "-" in place.files:
        raise InputError("a batch goes over files: save standard input to one first")
    check_format(place.form)
    runner, replays = place.runner(), isinstance(wish, ReplayFiles)
    listed, ending = sources(place.files), ".json" if replays else ".jsonl"
    with planned(listed, place.folder, wish, ending, force=place.force) as (manifest, count):
        with ticking("replaying" if replays else "folding", count) as tick:
            if isinstance(wish, ReplayFiles):
                run(manifest, place.folder, wish, replay_one, runner=runner, tick=tick)
            else:
                run(manifest, place.folder, wish, fold_one, runner=runner, tick=tick)
        write_table(manifest.results(), place.folder, place.form, replays=replays)
        totals = print_results(manifest, place.folder, as_json=place.as_json)
    if totals["failed"]:
        fail(f"{totals['failed']:,} of {count:,} files failed; the same command tries them again")
