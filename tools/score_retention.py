"""Score retention over recorded sessions with another implementation's script: a table of docs/results/README.md.

    python -m tools.score_retention SESSIONS METRIC [--save]

SESSIONS has files `SOURCE/*.jsonl.gz`. METRIC is run for each source, as
`METRIC eval DIR --chat --compactor tools.score_retention:fold --out FILE`, and writes rows to FILE. No session is held
out, because nothing in a checkpoint is fitted to sessions. `foldline bench --measures retention` is our implementation.
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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.results import Table, as_markdown, save

import foldline

BUDGETS = ("0.05", "0.1")
MEASURES = ("handle", "far", "far-bound", "far-rare", "steps")


def fold(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """Fold messages; for METRIC."""
    return foldline.compact(messages, target=budget, policy="foldline").messages


def score(folder: Path, metric: Path) -> Table:
    """Run METRIC for each source; return a table with a row for each source and budget."""
    sources = sorted(path.name for path in folder.iterdir() if path.is_dir())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda name: score_source(folder / name, metric), sources)
        cases_of = dict(zip(sources, results, strict=True))
    rows: list[tuple[str, ...]] = []
    for budget in BUDGETS:
        means: list[list[float]] = []
        share = f"{float(budget):.0%}"
        for source, cases in cases_of.items():
            values = [case[budget] for case in cases]
            means.append([_mean([row[i] for row in values]) for i in range(len(MEASURES))])
            rows.append((f"{source} ({len(cases)})", share, *map(_cell, means[-1])))
        overall = [_mean([row[i] for row in means]) for i in range(len(MEASURES))]
        rows.append(("**mean**", share, *(f"**{_cell(mean)}**" for mean in overall)))
    return Table(("source (cases)", "budget", *MEASURES), rows, left=2)


def score_source(folder: Path, metric: Path) -> list[dict[str, list[float | None]]]:
    """Run METRIC on one source's sessions; return the measures of each case by budget."""
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "rows.json"
        command = [sys.executable, str(metric), "eval", str(folder), "--chat", "--budgets", *BUDGETS]
        command += ["--compactor", "tools.score_retention:fold", "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows = [row["r"] for row in json.loads(out.read_text(encoding="utf8")) if row["r"]]
    return [{budget: row[f"tools.score_retention:fold@{budget}"] for budget in BUDGETS} for row in rows]


def _mean(values: Sequence[float | None]) -> float:
    """Return the mean of the values that there are; NaN, which is shown as a dash, of none."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan


def _cell(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}".removeprefix("0")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sessions", type=Path)
    parser.add_argument("metric", type=Path)
    parser.add_argument("--save", action="store_true", help="write the table into docs/results/README.md")
    args = parser.parse_args()
    table = score(args.sessions, args.metric)
    if args.save:
        save("retention", "python -m tools.score_retention SESSIONS METRIC --save", [table])
    else:
        print(as_markdown([table]))


if __name__ == "__main__":
    main()
