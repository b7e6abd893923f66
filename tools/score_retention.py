"""Score retention over recorded sessions with a script of another implementation: a table of docs/results/README.md.

    python -m tools.score_retention SESSIONS METRIC [--save]

SESSIONS holds `SOURCE/*.jsonl.gz`. METRIC is run on each source, as
`METRIC eval DIR --chat --compactor tools.score_retention:fold --out FILE`; only the rows it writes are read. Nothing in a
checkpoint is fitted to sessions, so none are left out. `foldline bench --measure retention` measures the same with ours.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.results import Table, save, shown

import foldline

BUDGETS = ("0.05", "0.1")
MEASURES = ("handle", "far", "far-bound", "far-rare", "steps")


def fold(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """Fold messages; for METRIC."""
    return foldline.compact(messages, target=budget, policy="foldline").messages


def score(folder: Path, metric: Path) -> Table:
    """Run METRIC on each source; a row a source and budget."""
    sources = sorted(path.name for path in folder.iterdir() if path.is_dir())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows_of_each = pool.map(lambda name: scored(folder / name, metric), sources)
        found = dict(zip(sources, rows_of_each, strict=True))
    rows: list[tuple[str, ...]] = []
    for budget in BUDGETS:
        means: list[list[float]] = []
        share = f"{float(budget):.0%}"
        for source, cases in found.items():
            values = [row[budget] for row in cases]
            columns = [[one[j] for one in values if one[j] is not None] for j in range(len(MEASURES))]
            means.append([statistics.fmean(column) if column else math.nan for column in columns])
            rows.append((f"{source} ({len(values)})", share, *map(_cell, means[-1])))
        columns = [[one[j] for one in means if not math.isnan(one[j])] for j in range(len(MEASURES))]
        rows.append(("**mean**", share, *(f"**{_cell(statistics.fmean(column))}**" for column in columns)))
    return Table(("source (cases)", "budget", *MEASURES), rows, left=2)


def scored(folder: Path, metric: Path) -> list[dict[str, list[float | None]]]:
    """Run METRIC on one source's sessions: a row a case, its measures by budget."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "rows.json"
        command = [sys.executable, str(metric), "eval", str(folder), "--chat", "--budgets", *BUDGETS]
        command += ["--compactor", "tools.score_retention:fold", "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows = [row["r"] for row in json.loads(out.read_text(encoding="utf8")) if row["r"]]
    return [{budget: row[f"tools.score_retention:fold@{budget}"] for budget in BUDGETS} for row in rows]


def _cell(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}".removeprefix("0")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sessions", type=Path)
    parser.add_argument("metric", type=Path)
    parser.add_argument("--save", action="store_true", help="write the table into docs/results/README.md")
    given = parser.parse_args()
    found = score(given.sessions, given.metric)
    if given.save:
        save("retention", "python -m tools.score_retention SESSIONS METRIC --save", [found])
    else:
        print(shown([found]))


if __name__ == "__main__":
    main()
