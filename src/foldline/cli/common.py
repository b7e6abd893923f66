"""What the commands share: options, reading files, printing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.log.codec import encode
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.errors import InputError
from foldline.loading import Loaded, from_own, from_records
from foldline.policies import load, policy
from foldline.stateless import window_for
from foldline.transcripts import Heard, Record, open_transcript, read, sniff

HEAD = 64 * 1024  # bytes by which a format is told

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
store_option = click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Where sessions live: sqlite:///FILE or memory://  [default: the settings', else ~/.foldline/foldline.db]",
)
file_argument = click.argument("file", type=click.Path(path_type=str))


def policy_options(command: F) -> F:
    """Add --policy and --policies."""
    command = click.option(
        "--policies",
        "policy_file",
        type=click.Path(path_type=Path),
        help="A TOML file with policies of your own.",
    )(command)
    return click.option(
        "--policy",
        "policy_name",
        metavar="NAME",
        help="A preset, or one of your own  [default: the settings', else foldline]",
    )(command)


def find_policy(name: str | None, policy_file: Path | None) -> Policy:
    """Return the policy of that name (default: the settings'); those of `policy_file` come first."""
    known = settings()
    return policy(
        name or known.policy, {**known.user_policies(), **(load(policy_file) if policy_file else {})}
    )


def find_window(model: str | None, window: int | None, recorded: str | None = None) -> Window:
    """Return the limits to work with: the flags', the settings', or those of the model that a file names."""
    known = settings()
    return window_for(model or known.model or recorded, window or known.window, known.catalogue())


def out() -> Console:
    """Return the console for results: coloured on a terminal, plain in a pipe."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def err() -> Console:
    """Return the console for everything that is not a result."""
    return Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    raw = encode(value)
    click.echo(msgspec.json.format(raw, indent=2).decode())


def warn(lines: Iterable[str], most: int = 10) -> None:
    """Print warnings to standard error, the first of them."""
    console = err()
    rest = list(lines)
    for line in rest[:most]:
        console.print(f"[yellow]warning:[/] {escape(line)}")
    if len(rest) > most:
        console.print(f"[yellow]warning:[/] and {len(rest) - most} more")


def escape(text: str) -> str:
    """Return text that rich prints as it is."""
    return text.replace("[", "\\[")


@contextmanager
def progress(what: str) -> Iterator[Callable[[int], None]]:
    """Show that something long goes on, on a terminal alone; yields a function that takes the count so far."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(pulse_style="cyan"),
        TextColumn("{task.completed:,}"),
        TimeElapsedColumn(),
        console=err(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done: bar.update(task, completed=done)


def read_session(file: str, *, from_start: bool = False, counter: Counter = OFFLINE) -> Loaded:
    """Read a session file of any known format into entries; warnings go to standard error."""
    with progress(f"reading {file}") as tick, open_transcript(file) as stream:
        head = stream.read(HEAD)
        stream.seek(0)
        if not from_start and sniff(head, file) == "foldline":
            loaded = from_own(stream, file)
        else:
            loaded = from_records(_counted(read(stream, name=file), tick), counter, from_start=from_start)
    warn(loaded.warnings)
    if not loaded.entries:
        raise InputError(f"{file}: there is no message in it")
    return loaded


def _counted(records: Iterator[Record], tick: Callable[[int], None]) -> Iterator[Record]:
    heard = 0
    for record in records:
        heard += isinstance(record, Heard)
        if heard % 500 == 0:
            tick(heard)
        yield record


def table(title: str, *columns: str) -> Table:
    """Return an empty table; columns whose name starts with # are numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        number = column.startswith("#")
        made.add_column(column.lstrip("#"), justify="right" if number else "left", no_wrap=number)
    return made


def share(part: int, whole: int) -> str:
    """Return a percentage, to be read."""
    return f"{100 * part / whole:.0f}%" if whole else "-"
