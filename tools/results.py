"""Result files: the tables of a tool, with its command, date, commit and machine; docs/results/README.md is made of them.

    python -m tools.results        write the tables of docs/results/*.json into docs/results/README.md

With `--save` a tool writes its file and then the page. A table is between `<!-- table: NAME -->` and `<!-- end -->`;
`<!-- table: NAME (PATTERN) -->` selects the rows with a cell that matches the pattern, and the tables with such rows.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from foldline.bench.system import machine

ROOT = Path(__file__).parents[1]
FOLDER, PAGE = ROOT / "docs" / "results", ROOT / "docs" / "results" / "README.md"
PLACE = re.compile(r"(<!-- table: ([a-z-]+)(?: \((.+?)\))? -->\n).*?(<!-- end -->)", re.DOTALL)


class Table(msgspec.Struct):
    """One table: cells are texts, in which Markdown is allowed. Columns after the first `left` are numbers."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    title: str = ""
    notes: tuple[str, ...] = ()
    left: int = 1

    def lines(self) -> list[str]:
        """Return the table in Markdown, with its title and its notes."""
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
        """Return the table with only the rows in which a cell, without bold marks, matches a pattern."""
        rows = [row for row in self.rows if any(re.fullmatch(pattern, cell.strip("*")) for cell in row)]
        return msgspec.structs.replace(self, rows=rows)


class Result(msgspec.Struct):
    """The results of one command."""

    command: str
    date: str
    commit: str
    machine: str
    tables: list[Table]

    def lines(self) -> list[str]:
        """Return the tables in Markdown, after a line with command, date, commit and machine."""
        origin = f"`{self.command}`, {self.date}, commit {self.commit}; {self.machine}."
        return [origin, "", *(line for table in self.tables for line in table.lines())]


def commit() -> str:
    """Return the short hash of the commit that is checked out, with a + if files in src differ from it."""
    git = shutil.which("git")
    if git is None:
        return "unknown"

    def run(*words: str) -> str:
        return subprocess.run(
            [git, *words], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    return f"{run('rev-parse', '--short', 'HEAD') or 'unknown'}{'+' if run('status', '--porcelain', 'src') else ''}"


def save(name: str, command: str, tables: Iterable[Table], folder: Path = FOLDER, page: Path = PAGE) -> Path:
    """Write the result file with this name, then the page; return the path of the file."""
    result = Result(command, f"{datetime.now(UTC):%Y-%m-%d}", commit(), machine(), list(tables))
    path = folder / f"{name}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    write(page, folder)
    return path


def filled(text: str, folder: Path = FOLDER) -> str:
    """Return a page with the tables of the result files between its marks."""

    def tables(match: re.Match[str]) -> str:
        result = msgspec.json.decode((folder / f"{match[2]}.json").read_bytes(), type=Result)
        if match[3]:
            result.tables = [
                table for table in (table.only(match[3]) for table in result.tables) if table.rows
            ]
        return "\n".join([match[1], *result.lines(), match[4]])

    return PLACE.sub(tables, text)


def write(page: Path = PAGE, folder: Path = FOLDER) -> None:
    """Write the tables into a page."""
    page.write_text(filled(page.read_text(encoding="utf-8"), folder), encoding="utf-8")


def as_markdown(tables: Sequence[Table]) -> str:
    """Return tables as one text."""
    return "\n".join(line for table in tables for line in table.lines())


if __name__ == "__main__":
    write()
