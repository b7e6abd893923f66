"""The report of a run: the columns in which Foldline is not first, a table per measure, and the setup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from foldline.bench.measures import MEASURES, Column, Figure, Measure
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


def columns(bench: Bench, measure: Measure) -> list[Column]:
    """Return the columns of a measure that are not empty."""
    cells = [row.cells[measure.name].figures for row in bench.rows]
    return [one for one in measure.columns if any(cell.get(one.key) not in (None, "") for cell in cells)]


def best(bench: Bench, measure: Measure, column: Column) -> float | None:
    """Return the best figure of a column; a row over its budget, or stopped early, has none."""
    figures = [value for row in bench.rows if (value := counted(row, measure, column)) is not None]
    if not figures or not column.better:
        return None
    return max(figures) if column.better == "more" else min(figures)


def counted(row: SystemRow, measure: Measure, column: Column) -> float | None:
    """Return a figure for comparisons; None for a row whose views were too large, or that failed."""
    figures = row.cells[measure.name].figures
    value = figures.get(column.key)
    out = figures.get("over") or figures.get("note")
    if not isinstance(value, int | float) or (out and column.better):
        return None
    live = ("overflows", "raised") if "overflows" in figures else ()  # a request that raises sends nothing
    return None if any(figures.get(key) and key != column.key for key in live) else value


def leads(bench: Bench) -> tuple[list[Lead], int]:
    """Return the columns in which Foldline's default is not first, and how many are compared."""
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
            value = counted(ours, measure, column)
            if value is not None and not _ahead(top, value, column):
                continue
            rows = [(counted(row, measure, column), row) for row in bench.rows if row is not ours]
            ahead = [
                (one, row)
                for one, row in rows
                if one is not None and (value is None or _ahead(one, value, column))
            ]
            ahead.sort(key=lambda pair: pair[0], reverse=column.better == "more")
            others = tuple(f"{row.label} {shown(one, column)}" for one, row in ahead[:3])
            figure = ours.cells[name].figures.get(column.key)
            found.append(Lead(f"{name}, {column.title}", shown(figure, column) or "none", others))
    return found, compared


def _ahead(one: float, other: float, column: Column) -> bool:
    margin = NEAR * max(abs(one), abs(other))
    return one > other + margin if column.better == "more" else one < other - margin


def headline(bench: Bench) -> list[str]:
    """Return the first lines: where Foldline's default is not first."""
    if all(row.name != FIRST for row in bench.rows):
        return [f"{FIRST} is not among these rows."]
    found, compared = leads(bench)
    if not compared:
        return ["Nothing could be compared: no row has a figure."]
    if not found:
        return [f"{FIRST} is first, alone or with others, in all {compared} columns that are compared."]
    most = f"in {compared - len(found)} of {compared} columns"
    return [f"{FIRST} is first, alone or with others, {most}. It is not in:", *map(str, found)]


def shown(value: Figure, column: Column) -> str:
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
    """One row of a table: its name, its cells (text, class), or why it has none."""

    row: SystemRow
    cells: tuple[tuple[str, str], ...]
    problem: str


def lines(bench: Bench, measure: Measure, shown_columns: Sequence[Column]) -> Iterator[TableLine]:
    """Yield the rows of one table; cells are `best`, `over` (not compared), `text` or nothing."""
    tops = {column.key: best(bench, measure, column) for column in shown_columns}
    for row in bench.rows:
        cell = row.cells[measure.name]
        found: list[tuple[str, str]] = []
        for column in shown_columns:
            value, top = counted(row, measure, column), tops[column.key]
            kind = "text" if column.form == "text" else ""
            if column.better and top is not None:
                kind = "over" if value is None else "" if _ahead(top, value, column) else "best"
            found.append((shown(cell.figures.get(column.key), column), kind))
        note = cell.problem or str(cell.figures.get("note") or "")
        yield TableLine(row, tuple(found) if cell.figures else (), note)


def made(bench: Bench) -> list[str]:
    """Return how the figures were measured."""
    setup = bench.setup
    sizes = (
        f"window {setup.window:,}, logs of {setup.messages:,} messages, sessions of {setup.context:,} tokens "
        f"(characters / 4), seed {setup.seed}"
    )
    return [bench.command, f"{bench.date}; Foldline {bench.foldline}; {bench.machine}", sizes]


def page(bench: Bench) -> str:
    """Return the report as one self-contained HTML page."""
    first, *others = map(escape, headline(bench))
    command, *rest = map(escape, made(bench))
    body = [f"<p><strong>{first}</strong></p>"]
    body += ["<ul>", *(f"<li>{one}</li>" for one in others), "</ul>"] if others else []
    body += [f"<p><code>{command}</code><br>{'<br>'.join(rest)}</p>"]
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
    some = columns(bench, measure)
    yield "<section><table><thead><tr><th>system</th>"
    yield "".join(f"<th>{escape(column.title)}</th>" for column in some) + "<th></th></tr></thead>"
    for line in lines(bench, measure, some):
        cells = "".join(f'<td class="{kind}">{escape(text)}</td>' for text, kind in line.cells)
        span = len(some) if not line.cells else 0
        note = f'<td class=problem colspan="{span + 1}">{escape(line.problem)}</td>'
        yield f"<tr class={line.row.kind}><td>{escape(line.row.label)}</td>{cells}{note}</tr>"
    yield "</table></section>"
