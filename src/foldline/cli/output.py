"""Where results go: the console, one JSON document, or a file written atomically."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.console import Console, RenderableType
from rich.markup import escape as markup_escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from foldline.core.log.codec import encode_utf8, in_utf8, pretty
from foldline.errors import FoldlineError, InputError
from foldline.files import written
from foldline.terminal import clean, clean_json
from foldline.transcripts.lines import date_of

WIDEST = 120  # columns of a rule; wider ones are hard to read across
PIPE = 4_000  # columns of a table outside a terminal: no cell is cut, one row is one line


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise it to the caller, which ends the command without an error."""
        raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError


def out() -> Console:
    """Return the console for results: coloured on a terminal, plain and unwrapped in a pipe."""
    return _fitted(_Console(highlight=False))


def err() -> Console:
    """Return the console for everything but results."""
    return _fitted(_Console(stderr=True, highlight=False))


def _fitted(console: Console) -> Console:
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = PIPE
    return console


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.flush()
    document = pretty(value)  # bytes, so that a long document is not held three times
    sys.stdout.buffer.write((clean_json(document) if sys.stdout.isatty() else document) + b"\n")
    sys.stdout.buffer.flush()


def print_line(value: Any) -> None:
    """Print one JSON object on a line of its own, at once; U+FFFD for a lone surrogate."""
    line = json.dumps(in_utf8(value), ensure_ascii=False).encode()
    sys.stdout.buffer.write((clean_json(line) if sys.stdout.isatty() else line) + b"\n")
    sys.stdout.buffer.flush()


def print_text(text: str) -> None:
    """Print text of a session: as it is into a pipe, without what steers a terminal where it is one."""
    click.echo(clean(text) if sys.stdout.isatty() else text)


def warn(lines: Iterable[str], most: int = 10) -> None:
    """Print the first warnings to standard error."""
    console = err()
    count = 0
    for count, line in enumerate(lines, 1):
        if count <= most:
            console.print(f"[yellow]warning:[/] {escape(line)}", soft_wrap=True)
    if count > most:
        console.print(f"[yellow]warning:[/] and {count - most} more")


def tell(line: str) -> None:
    """Print a note to standard error."""
    err().print(escape(line), soft_wrap=True)


def escape(text: str) -> str:
    """Return text that rich prints literally, without terminal control characters."""
    return markup_escape(clean(text))


def rule(console: Console, title: str) -> None:
    """Print a heading across the terminal."""
    width = min(console.width, WIDEST if console.is_terminal else 80)
    console.print("", Rule(title, style="cyan"), width=width)


def table(*columns: str, title: str = "") -> Table:
    """Return an empty table. Columns named #... hold numbers; these and =... are never cut, others may be."""
    made = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        number, whole = column.startswith("#"), column[:1] in ("#", "=")
        made.add_column(
            column.lstrip("#="),
            justify="right" if number else "left",
            no_wrap=whole,
            min_width=len(column) - 1 if whole else 4,
            overflow="ellipsis",
        )
    return made


def row(made: Table, *cells: str | Text, style: str = "") -> None:
    """Add a row to a table; each cell stays on its line."""
    shown: list[RenderableType] = []
    for cell in cells:
        text = cell if isinstance(cell, Text) else Text(clean(cell).replace("\n", " "))
        text.no_wrap, text.overflow = True, "ellipsis"
        shown.append(text)
    made.add_row(*shown, style=style)


def local_time(when: float | None) -> str:
    """Return a Unix time as people read it; "" for none, and for one that is no date."""
    date = date_of(when)
    if date is None or date.year == 9999:  # whose last day not every time zone has
        return ""
    return date.astimezone().strftime("%Y-%m-%d %H:%M")


def share(part: int, whole: int) -> str:
    """Return a percentage as text."""
    return f"{100 * part / whole:.0f}%" if whole else "-"


@contextmanager
def progress_lines(total: int) -> Generator[Callable[[int], None]]:
    """Write progress to standard error as lines of JSON; yields a function that takes the count so far.

    The first line is written before the work, the last one when it has succeeded.
    """

    def tick(done: int) -> None:
        print(json.dumps({"done": done, "total": total}), file=sys.stderr, flush=True)

    tick(0)
    yield tick
    tick(total)


@contextmanager
def progress(what: str, total: int | None = None) -> Generator[Callable[[int], None]]:
    """Show progress, only on a terminal; yields a function that takes the count so far.

    `total` is the final count, if known.
    """
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(pulse_style="cyan"),
        TextColumn("{task.completed:,}" + (f" of {total:,}" if total else "")),
        TimeElapsedColumn(),
        console=err(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(clean(what), total=total)
        yield lambda done: bar.update(task, completed=done)


def message_lines(messages: Sequence[Any], **around: Any) -> list[bytes]:
    """Return messages as JSON lines, after a line with what belongs to them (`system`, `tools`)."""
    header = {key: value for key, value in around.items() if value}
    return [encode_utf8(item) + b"\n" for item in ([header] if header else []) + list(messages)]


def write_whole(output: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file atomically; an old one of that name stays until then.

    `-` is standard output; a device or a pipe is written directly. Raises InputError for a path that cannot
    be a file, FoldlineError if writing fails (a full disk).
    """
    if str(output) == "-":
        _write_to_output(write)
        return
    target = output.resolve()
    if not target.parent.is_dir():
        raise InputError(f"{output}: cannot be written: {target.parent} is no folder")
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            with target.open("wb") as stream:
                write(stream)
        else:
            with written(target) as stream:
                write(stream)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        kept = "; the old file is unchanged" if target.is_file() else ""
        raise FoldlineError(f"{output}: cannot be written: {error.strerror or error}{kept}") from error


def _write_to_output(write: Callable[[BinaryIO], object]) -> None:
    """Write to standard output: as it is into a pipe, without what steers a terminal where it is one."""
    if sys.stdout.isatty():
        held = BytesIO()
        write(held)
        sys.stdout.buffer.write(clean_json(held.getvalue()))
    else:
        write(sys.stdout.buffer)
    sys.stdout.buffer.flush()
