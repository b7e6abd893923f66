"""The report of a run: the columns in which Foldline is not first, a table for each measure, the setup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from foldline.bench.folds import Figure
from foldline.bench.measures import MEASURES, Column, Measure
from foldline.bench.run import Bench, SystemRow
from foldline.bench.systems import FIRST

NEAR = 0.005  # relative difference from the best value that counts as equal
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>foldline bench</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }}
section {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }}
th, td {{ padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap; }}
th:first-child, td:first-child, td.text {{ text-align: left; }}
tr.preset td:first-child {{ font-weight: 600; }}
td.best {{ font-weight: 700; background: #009e7326; }}
td.over {{ opacity: .55; }}
td.problem {{ text-align: left; white-space: normal; opacity: .75; }}
code {{ font-size: 13px; }}
:root {{ color-scheme: light dark; }}
</style>
</head>
<body>
<h1>foldline bench</h1>
{body}
</body>
</html>
"""


class Lead(NamedTuple):
    """A column in which another row is ahead of Foldline's default."""

    title: str
    ours: str
    others: tuple[str, ...]  # each with its figure, the best first

    def __str__(self) -> str:
        return f"{self.title}: {FIRST} {self.ours}; {', '.join(self.others)}"


def filled_columns(bench: Bench, measure: Measure) -> list[Column]:
    """Return the columns of a measure that are not empty."""
    cells = [row.cells[measure.name].figures for row in bench.rows]
    return [
        column for column in measure.columns if any(cell.get(column.key) not in (None, "") for cell in cells)
    ]


def best(bench: Bench, measure: Measure, column: Column) -> float | None:
    """Return the best comparable figure of a column."""
    figures = [value for row in bench.rows if (value := comparable(row, measure, column)) is not None]
    if not figures or not column.better:
        return None
    return max(figures) if column.better == "more" else min(figures)


def comparable(row: SystemRow, measure: Measure, column: Column) -> float | None:
    """Return a figure for comparisons; None for a row with views that were too large, or that failed."""
    figures = row.cells[measure.name].figures
    value = figures.get(column.key)
    excluded = figures.get("over") or figures.get("note")
    if not isinstance(value, int | float) or (excluded and column.better):
        return None
    live = ("overflows", "raised") if "overflows" in figures else ()  # a request that raises sends nothing
    return None if any(figures.get(key) and key != column.key for key in live) else value


def leads(bench: Bench) -> tuple[list[Lead], int]:
    """Return the columns in which Foldline's default is not first, and the number of compared columns."""
    found: list[Lead] = []
    compared = 0
    ours = next((row for row in bench.rows if row.name == FIRST), None)
    for name in bench.measures if ours is not None else ():
        measure = MEASURES[name]
        for column in measure.columns:
            top = best(bench, measure, column)
            if ours is None or top is None:
                continue
            compared += 1
            value = comparable(ours, measure, column)
            if value is not None and not _is_ahead(top, value, column):
                continue
            rows = [(comparable(row, measure, column), row) for row in bench.rows if row is not ours]
            ahead = [
                (figure, row)
                for figure, row in rows
                if figure is not None and (value is None or _is_ahead(figure, value, column))
            ]
            ahead.sort(key=lambda pair: pair[0], reverse=column.better == "more")
            others = tuple(f"{row.label} {as_text(figure, column)}" for figure, row in ahead[:3])
            figure = ours.cells[name].figures.get(column.key)
            found.append(Lead(f"{name}, {column.title}", as_text(figure, column) or "none", others))
    return found, compared


def _is_ahead(figure: float, other: float, column: Column) -> bool:
    margin = NEAR * max(abs(figure), abs(other))
    return figure > other + margin if column.better == "more" else figure < other - margin


def headline(bench: Bench) -> list[str]:
    """Return the first lines: the columns in which Foldline's default is not first."""
    if all(row.name != FIRST for row in bench.rows):
        return [f"{FIRST} is not among these rows."]
    found, compared = leads(bench)
    if not compared:
        return ["Nothing could be compared: no row has a figure."]
    if not found:
        return [f"{FIRST} is first, alone or with others, in all {compared} columns that are compared."]
    count = f"in {compared - len(found)} of {compared} columns"
    return [f"{FIRST} is first, alone or with others, {count}. It is not first in:", *map(str, found)]


def as_text(value: Figure, column: Column) -> str:
    """Return a figure as text."""
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return value
    if column.form == "share":
        return f"{100 * value:.0f}%"
    if column.form == "number":
        return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
    return f"{value:,.0f}"


class TableLine(NamedTuple):
    """One row of a table: the system, its cells (text, CSS class), and a note or the reason for no cells."""

    row: SystemRow
    cells: tuple[tuple[str, str], ...]
    problem: str


def table_lines(bench: Bench, measure: Measure, columns: Sequence[Column]) -> Iterator[TableLine]:
    """Yield the rows of one table; a cell's class is `best`, `over` (not compared), `text` or none."""
    tops = {column.key: best(bench, measure, column) for column in columns}
    for row in bench.rows:
        cell = row.cells[measure.name]
        cells: list[tuple[str, str]] = []
        for column in columns:
            value, top = comparable(row, measure, column), tops[column.key]
            kind = "text" if column.form == "text" else ""
            if column.better and top is not None:
                kind = "over" if value is None else "" if _is_ahead(top, value, column) else "best"
            cells.append((as_text(cell.figures.get(column.key), column), kind))
        note = cell.problem or str(cell.figures.get("note") or "")
        yield TableLine(row, tuple(cells) if cell.figures else (), note)


def run_details(bench: Bench) -> list[str]:
    """Return lines with the command, the machine and the sizes of a run."""
    setup = bench.setup
    sizes = (
        f"window {setup.window:,}, logs of {setup.messages:,} messages, sessions of {setup.context:,} tokens "
        f"(characters / 4), seed {setup.seed}"
    )
    return [bench.command, f"{bench.date}; Foldline {bench.foldline}; {bench.machine}", sizes]


def page(bench: Bench) -> str:
    """Return the report as one self-contained HTML page."""
    first, *others = map(escape, headline(bench))
    command, *details = map(escape, run_details(bench))
    body = [f"<p><strong>{first}</strong></p>"]
    body += ["<ul>", *(f"<li>{lead}</li>" for lead in others), "</ul>"] if others else []
    body += [f"<p><code>{command}</code><br>{'<br>'.join(details)}</p>"]
    for name in bench.measures:
        measure = MEASURES[name]
        body += [
            f"<h2 id={name}>{name.title()}</h2>",
            f"<p>{escape(measure.about)}</p>",
            *_table(bench, measure),
        ]
    body += ["<h2 id=systems>Systems</h2>", "<p>The call of each system, and its version.</p>"]
    entries = (
        f"<tr><td>{escape(row.name)}</td>"
        f"<td class=text>{escape(row.package)} {row.version or 'not installed'}</td>"
        f"<td class=text><code>{escape(row.entry)}</code></td></tr>"
        for row in bench.rows
    )
    body += ["<section><table>", *entries, "</table></section>"]
    return PAGE.format(body="\n".join(body))


def _table(bench: Bench, measure: Measure) -> Iterator[str]:
    columns = filled_columns(bench, measure)
    yield "<section><table><thead><tr><th>system</th>"
    yield "".join(f"<th>{escape(column.title)}</th>" for column in columns) + "<th></th></tr></thead>"
    for line in table_lines(bench, measure, columns):
        cells = "".join(f'<td class="{kind}">{escape(text)}</td>' for text, kind in line.cells)
        span = len(columns) if not line.cells else 0
        note = f'<td class=problem colspan="{span + 1}">{escape(line.problem)}</td>'
        yield f"<tr class={line.row.kind}><td>{escape(line.row.label)}</td>{cells}{note}</tr>"
    yield "</table></section>"
