"""Compare the ten systems over recorded sessions: the first tables of docs/results/README.md.

    python -m tools.compare SESSIONS --save                         60,000, 100,000 and 200,000, into the page
    python -m tools.compare SESSIONS --windows 100000 --every 10    every tenth session, printed

SESSIONS is a folder of session files. Each is replayed under `none` and the ten systems, as by `foldline batch replay`.
Results are kept in --store; a run that was killed resumes there unless the code of the replay has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tools.results import Table, as_markdown, save

from foldline.cli.batch_work import replay_one
from foldline.cli.common import NONE, TEN
from foldline.core.decide.presets import preset
from foldline.lab.batch import BatchFolder, Result
from foldline.lab.report import MEASURES, ReplaySums, SessionReport
from foldline.lab.run import ReplaySetup
from foldline.lab.runner import LocalPool
from foldline.lab.sources import sources

ROOT = Path(__file__).parents[1]
# the code of a replay, below src/foldline
REPLAY_CODE = (
    "catalogue",
    "core",
    "dialects",
    "executor.py",
    "folding.py",
    "lab",
    "loading.py",
    "summarizers",
    "transcripts",
)
IDLE = ("none", "amp")  # these never fold automatically
CUTS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Comparison(msgspec.Struct):
    """All sessions at one window: their sums by policy, and the retention at the cuts that all policies share."""

    window: int
    sums: ReplaySums
    cuts: dict[str, list[dict[str, Any]]]  # by policy
    failed: int = 0
    folded: int = 0  # sessions that a policy folded
    cut_sessions: int = 0

    def mean(self, policy: str, name: str) -> float | None:
        """Return the mean of a figure over the cuts; None for a policy that never folds."""
        values = [value for cut in self.cuts[policy] if (value := cut[name]) is not None]
        return statistics.fmean(values) if values and policy not in IDLE else None


# ---- replays


def code_version() -> str:
    """Return a hash of the code of a replay."""
    digest = hashlib.sha256()
    for name in REPLAY_CODE:
        place = ROOT / "src" / "foldline" / name
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.suffix in (".py", ".json", ".txt"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def replay(files: Sequence[str], window: int, store: Path, jobs: int | None) -> list[Result]:
    """Replay files under every policy; results are kept below `store`."""
    policies = (NONE, *(preset(name) for name in TEN))
    setup = ReplaySetup(policies, window=window, cuts=CUTS)
    folder, done = store / str(window), 0

    with BatchFolder(folder, {**msgspec.to_builtins(setup), "version": code_version()}) as batch:
        batch.add(sources(files), ".json")

        def tick(result: Result) -> None:
            nonlocal done
            done += 1
            print(
                f"window {window:,}: {done} of {len(batch.tasks)} {result.state} {result.error}",
                file=sys.stderr,
            )

        batch.run(replay_one, setup, runner=LocalPool(jobs), tick=tick)
        return list(batch.results())


# ---- sums


def add_up(results: Sequence[Result], window: int, store: Path) -> Comparison:
    """Add up the results at one window."""
    comparison = Comparison(window, ReplaySums(), defaultdict(list))
    for result in results:
        if result.state == "failed":
            comparison.failed += 1
            continue
        report = msgspec.json.decode((store / str(window) / result.output).read_bytes(), type=SessionReport)
        comparison.sums.add(report)
        totals = [policy.totals for policy in report.policies]
        comparison.folded += any(row["compactions"] + row["prunes"] for row in totals)
        shared = shared_cuts(report)
        comparison.cut_sessions += bool(shared)
        for policy in report.policies:
            comparison.cuts[policy.policy] += [policy.retention["cuts"][index] for index in shared]  # pyright: ignore
    return comparison


def shared_cuts(report: SessionReport) -> list[int]:
    """Return the indices of cuts before which every policy but the idle ones had folded, and whose views all fit."""
    retentions = [policy.retention for policy in report.policies if policy.policy not in IDLE]
    if None in retentions:
        return []
    columns = zip(*(retention["cuts"] for retention in retentions if retention), strict=True)
    return [n for n, column in enumerate(columns) if all(cut["folds"] and cut["fits"] for cut in column)]


# ---- the tables

COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "M tokens": lambda totals: f"{totals['input_tokens'] / 1e6:,.1f}",
    "less": lambda totals: f"{totals['less']:.0%}",
    "USD": lambda totals: f"{totals['price']:,.0f}",
    "USD net": lambda totals: f"{totals['net']:,.0f}",
    "compactions": lambda totals: f"{totals['compactions']:,}",
    "prunes": lambda totals: f"{totals['prunes']:,}",
    "overflows": lambda totals: f"{totals['overflows']:,}",
    "invalid": lambda totals: str(totals["invalid_views"]),
}
LEAST = {"M tokens": "input_tokens", "USD": "price", "USD net": "net", "overflows": "overflows"}  # in bold


def table(comparison: Comparison) -> Table:
    """Return the table of one window; the best of each column in bold."""
    totals = {name: sums.totals() for name, sums in comparison.sums.policies.items()}
    whole = totals["none"]["input_tokens"]
    for row in totals.values():
        row |= {name: row[name] or 0.0 for name in ("price", "price_cached", "price_summaries")}
        row["net"] = row["price_cached"] + row["price_summaries"]  # with prompt caching
        row["less"] = 1 - row["input_tokens"] / whole
    best: dict[str, Any] = {
        title: min(row[name] for policy, row in totals.items() if policy not in IDLE)
        for title, name in LEAST.items()
    }
    for name in MEASURES:
        best[name] = max(
            (v for policy in totals if (v := comparison.mean(policy, name)) is not None), default=None
        )
    rows: list[tuple[str, ...]] = []
    for policy, row in totals.items():
        cells = [f"`{policy}`"]
        for title, as_text in COLUMNS.items():
            first = policy not in IDLE and title in LEAST and row[LEAST[title]] == best[title]
            cells.append("" if title == "less" and policy == "none" else bold(as_text(row), first=first))
        for name in MEASURES:
            value = comparison.mean(policy, name)
            text = "" if value is None else f"{value:.3f}".removeprefix("0")
            cells.append(bold(text, first=value is not None and value == best[name]))
        view = comparison.mean(policy, "view_tokens")
        rows.append((*cells, "" if view is None else f"{view:,.0f}"))
    columns = ("policy", *COLUMNS, *MEASURES, "view")
    return Table(columns, rows, f"Window {comparison.window:,}", notes(comparison))


def bold(text: str, *, first: bool) -> str:
    return f"**{text}**" if first else text


def notes(comparison: Comparison) -> tuple[str, ...]:
    """Return lines with the numbers of sessions and cuts behind a table."""
    sums, cuts = comparison.sums, len(comparison.cuts["none"])
    return (
        f"{sums.sessions} sessions; {comparison.folded} are folded by at least one policy, the others fit.",
        f"Retention and `view`: the mean over {cuts} cuts in {comparison.cut_sessions} sessions.",
        *([f"Without a known price: {sums.unpriced} sessions."] if sums.unpriced else []),
        *([f"Failed: {comparison.failed}."] if comparison.failed else []),
    )


def main() -> None:
    """Replay, add up, print or save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sessions", type=Path)
    parser.add_argument(
        "--save", action="store_true", help="write docs/results/comparison.json and docs/results/README.md"
    )
    parser.add_argument("--windows", type=int, nargs="+", default=[60_000, 100_000, 200_000])
    parser.add_argument("--every", type=int, default=1, help="take every Nth session only")
    parser.add_argument("--store", type=Path, default=ROOT / ".compare", help="where results are kept")
    parser.add_argument("--jobs", type=int)
    args = parser.parse_args()
    files = [str(path) for path in sorted(args.sessions.rglob("*.jsonl*"))][:: args.every]
    every = f" --every {args.every}" if args.every > 1 else ""
    windows = " ".join(map(str, args.windows))
    tables = [
        table(add_up(replay(files, window, args.store, args.jobs), window, args.store))
        for window in args.windows
    ]
    if args.save:
        save("comparison", f"python -m tools.compare SESSIONS --windows {windows}{every} --save", tables)
    else:
        print(as_markdown(tables))


if __name__ == "__main__":
    main()
