"""Result files: what a tool measured, with its command, day, commit and machine; docs/results/README.md is made from them.

    python -m tools.results        write the tables of docs/results/*.json into docs/results/README.md

A tool that is run with `--save` writes its file and then the page. A table stands between `<!-- table: NAME -->` and
`<!-- end -->`; with `<!-- table: NAME (PATTERN) -->` only the rows in which a cell matches the pattern, and only
tables that have such rows.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from foldline.bench.machine import machine

ROOT = Path(__file__).parents[1]
FOLDER, PAGE = ROOT / "docs" / "results", ROOT / "docs" / "results" / "README.md"
PLACE = re.compile(r"(<!-- table: ([a-z-]+)(?: \((.+?)\))? -->\n).*?(<!-- end -->)", re.DOTALL)


class Table(msgspec.Struct):
    """One table as it is shown: cells are texts, Markdown allowed. Columns after the first `left` are numbers."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    title: str = ""
    notes: tuple[str, ...] = ()
    left: int = 1

    def lines(self) -> list[str]:
        """Return the table in Markdown, its title before it and its notes behind it."""
        rule = ["---"] * self.left + ["---:"] * (len(self.columns) - self.left)
        rows = [f"| {' | '.join(row)} |" for row in (self.columns, rule, *self.rows)]
        head = [f"**{self.title}**", ""] if self.title else []
        return [
            *head,
            *rows,
            "",
            *(f"{note}  " for note in self.notes[:-1]),
            *self.notes[-1:],
            *[""] * bool(self.notes),
        ]

    def only(self, pattern: str) -> Table:
        """Return the table with just those rows in which a cell, without its marks of bold, matches a pattern."""
        rows = [row for row in self.rows if any(re.fullmatch(pattern, cell.strip("*")) for cell in row)]
        return msgspec.structs.replace(self, rows=rows)


class Result(msgspec.Struct):
    """What one command measured."""

    command: str
    date: str
    commit: str
    machine: str
    tables: list[Table]

    def lines(self) -> list[str]:
        """Return the tables in Markdown, behind a line that says how they were made."""
        made = f"`{self.command}`, {self.date}, commit {self.commit}; {self.machine}."
        return [made, "", *(line for table in self.tables for line in table.lines())]


def commit() -> str:
    """Return the short name of the commit that is checked out, with a + where files differ from it."""
    git = shutil.which("git")
    if git is None:
        return "unknown"

    def ask(*words: str) -> str:
        return subprocess.run(
            [git, *words], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    return f"{ask('rev-parse', '--short', 'HEAD') or 'unknown'}{'+' if ask('status', '--porcelain', 'src') else ''}"


def save(name: str, command: str, tables: Iterable[Table], folder: Path = FOLDER, page: Path = PAGE) -> Path:
    """Write the result file of this name, then the page; returns the file."""
    result = Result(command, f"{datetime.now(UTC):%Y-%m-%d}", commit(), machine(), list(tables))
    path = folder / f"{name}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    write(page, folder)
    return path


def filled(text: str, folder: Path = FOLDER) -> str:
    """Return a page with the tables of the result files between its marks."""

    def tables(found: re.Match[str]) -> str:
        result = msgspec.json.decode((folder / f"{found[2]}.json").read_bytes(), type=Result)
        if found[3]:
            result.tables = [
                table for table in (table.only(found[3]) for table in result.tables) if table.rows
            ]
        return "\n".join([found[1], *result.lines(), found[4]])

    return PLACE.sub(tables, text)


def write(page: Path = PAGE, folder: Path = FOLDER) -> None:
    """Write the tables into a page."""
    page.write_text(filled(page.read_text(encoding="utf-8"), folder), encoding="utf-8")


def shown(tables: Sequence[Table]) -> str:
    """Return tables as one text."""
    return "\n".join(line for table in tables for line in table.lines())


if __name__ == "__main__":
    write()
