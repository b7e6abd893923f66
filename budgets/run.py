"""Measure the budgets: one module a question; its rows as soon as they are known, one table at the end. `make bench`, or `python -m budgets.run NAME...`.

--full measures sessions of 200,000 messages where the quick run takes 20,000; --save writes docs/results/budgets.json
and its table into docs/results/README.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

from budgets.table import HEADER, Row, cells
from tools.results import Table, save

from foldline.bench.system import machine

QUESTIONS = (
    "turn",
    "opening",
    "planning",
    "append",
    "startup",
    "memory",
    "counting",
    "rendering",
    "gencode",
    "waiting",
    "gateway",
    "web_page",
    "size_attacks",
)


def main(names: list[str], *, full: bool, keep: bool = False) -> int:
    """Answer the questions of these names (none: all), print the table; returns how many budgets were missed."""
    print(machine(), flush=True)
    rows: list[Row] = []
    for name in names or QUESTIONS:
        start = time.perf_counter()
        found = import_module(f"budgets.{name}").main(full=full)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        print("\n".join(f"    {'  '.join(filter(None, cells(row)))}" for row in found), flush=True)
        rows += found
    table = Table(HEADER, [*map(cells, rows)])
    print("\n".join(["", *table.lines()]), flush=True)
    if keep:
        command = " ".join(["python -m budgets.run", *names, *["--full"] * full, "--save"])
        save("budgets", command, [table])
    missed = sum(row.verdict == "MISSED" for row in rows)
    print(f"{missed} budgets missed" if missed else "all budgets met")
    return missed


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m budgets.run",
        description="Measure the budgets.",
        epilog=f"The questions: {', '.join(QUESTIONS)}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a question; without one all")
    parser.add_argument(
        "--full", action="store_true", help="sessions of 200,000 messages where a quick run takes 20,000"
    )
    parser.add_argument("--save", action="store_true", help="write docs/results/budgets.json and its table")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in QUESTIONS]:
        parser.error(f"no such question: {', '.join(unknown)}")
    return given


if __name__ == "__main__":
    asked = arguments()
    main(asked.names, full=asked.full, keep=asked.save)
