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
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Column, Table
from rich.text import Text

from foldline.core.log.codec import encode_utf8, in_utf8, pretty
from foldline.errors import FoldlineError, InputError
from foldline.files import written
from foldline.terminal import clean, clean_json
from foldline.transcripts.lines import date_of

WIDEST = 120  # columns of a rule: a wider one is hard to read
PIPE = 4_000  # columns of a table outside a terminal: no cell is cut, one row is one line


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error to the caller, which ends the command without a message."""
        raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError


def out() -> Console:
    """Return the console for results: coloured on a terminal, plain and unwrapped in a pipe."""
    return _fitted(_Console(highlight=False))


def err() -> Console:
    """Return the console for everything except results."""
    return _fitted(_Console(stderr=True, highlight=False))


def _fitted(console: Console) -> Console:
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = PIPE
    return console


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.flush()
    _print_bytes(pretty(value) + b"\n")  # bytes, so that a long document is not held three times


def print_line(value: Any) -> None:
    """Print one JSON object as a line, and flush; U+FFFD replaces a lone surrogate."""
    _print_bytes(json.dumps(in_utf8(value), ensure_ascii=False).encode() + b"\n")


def _print_bytes(document: bytes) -> None:
    """Write JSON or an export to standard output; without control characters on a terminal."""
    sys.stdout.buffer.write(clean_json(document) if sys.stdout.isatty() else document)
    sys.stdout.buffer.flush()


def print_text(text: str) -> None:
    """Print the text of a session; without control characters on a terminal."""
    click.echo(clean(text) if sys.stdout.isatty() else text)


def warn(lines: Iterable[str], most: int = 10) -> None:
    """Print at most `most` warnings to standard error, and the count of the others."""
    console = err()
    count = 0
    for count, line in enumerate(lines, 1):
        if count <= most:
            console.print(f"[yellow]warning:[/] {escape(line)}", soft_wrap=True)
    if count > most:
        console.print(f"[yellow]warning:[/] and {count - most} more")


def tell(line: str) -> None:
    """Print a line to standard error."""
    err().print(escape(line), soft_wrap=True)


def escape(text: str) -> str:
    """Return text that rich prints literally, without terminal control characters."""
    return markup_escape(clean(text))


def rule(console: Console, title: str) -> None:
    """Print a heading across the terminal."""
    width = min(console.width, WIDEST if console.is_terminal else 80)
    console.print("", Rule(title, style="cyan"), width=width)


def table(*columns: str, title: str = "") -> Table:
    """Return an empty table. Columns #... hold numbers; these and =... are never cut, others may be."""
    result = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        number, whole = column.startswith("#"), column[:1] in ("#", "=")
        result.add_column(
            column.lstrip("#="),
            justify="right" if number else "left",
            no_wrap=whole,
            min_width=len(column) - 1 if whole else 4,
            overflow="ellipsis",
        )
    return result


def row(to: Table, *cells: str | Text, style: str = "") -> None:
    """Add a row to a table; cells do not wrap."""
    texts: list[RenderableType] = []
    for cell in cells:
        text = cell if isinstance(cell, Text) else Text(clean(cell).replace("\n", " "))
        text.no_wrap, text.overflow = True, "ellipsis"
        texts.append(text)
    to.add_row(*texts, style=style)


def print_table(wide: Table, console: Console) -> None:
    """Print a table; if it is wider than the console, in parts that repeat the first column."""
    first, *others = wide.columns
    while others:
        count = len(others)
        while _width(part := _part([first, *others[:count]]), console) > console.width and count > 1:
            count -= 1
        others = others[count:]
        console.print(part, *([""] if others else []))


def _part(columns: Sequence[Column]) -> Table:
    part = Table(*(column.copy() for column in columns), box=None, pad_edge=False)
    for cells in zip(*(column.cells for column in columns), strict=True):
        part.add_row(*cells)
    return part


def _width(part: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(width=PIPE), part).maximum


def local_time(when: float | None) -> str:
    """Return a Unix time as a local date and time; "" for None and for an invalid one."""
    date = date_of(when)
    if date is None or date.year == 9999:  # 9999-12-31 is out of range in some time zones
        return ""
    return date.astimezone().strftime("%Y-%m-%d %H:%M")


def share(part: int, whole: int) -> str:
    """Return a percentage as text."""
    return f"{100 * part / whole:.0f}%" if whole else "-"


@contextmanager
def progress_lines(total: int) -> Generator[Callable[[int], None]]:
    """Write progress to standard error as JSON lines; yields a function that takes the count so far.

    The first line is written before the work, the last one only if the work succeeds.
    """

    def tick(done: int) -> None:
        print(json.dumps({"done": done, "total": total}), file=sys.stderr, flush=True)

    tick(0)
    yield tick
    tick(total)


@contextmanager
def progress(what: str, total: int | None = None) -> Generator[Callable[[int], None]]:
    """Show progress on a terminal, towards `total`; yields a function that takes the count so far."""
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


def message_lines(messages: Sequence[Any], **extra: Any) -> list[bytes]:
    """Return messages as JSON lines, after a line with the values of `extra`, if any."""
    header = {key: value for key, value in extra.items() if value}
    return [encode_utf8(item) + b"\n" for item in ([header] if header else []) + list(messages)]


def write_whole(output: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file atomically: an existing file stays until the new one is complete.

    `-` is standard output; a device or a pipe is written directly. Raises InputError for an unusable path,
    FoldlineError if writing fails (a full disk).
    """
    if str(output) == "-":
        if sys.stdout.isatty():
            buffer = BytesIO()
            write(buffer)
            _print_bytes(buffer.getvalue())
        else:
            write(sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    target = output.resolve()
    if not target.parent.is_dir():
        raise InputError(f"{output}: cannot be written: {target.parent} is not a folder")
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
        note = "; the old file is unchanged" if target.is_file() else ""
        raise FoldlineError(f"{output}: cannot be written: {error.strerror or error}{note}") from error
