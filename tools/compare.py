"""Compare the ten systems over recorded sessions: the first tables of docs/results/README.md.

    python -m tools.compare SESSIONS --save                         60,000, 100,000 and 200,000, into the page
    python -m tools.compare SESSIONS --windows 100000 --every 10    every tenth session, printed

SESSIONS is a folder of session files. Each is replayed under `none` and the ten systems, as by `foldline batch replay`;
results are kept in --store, and a run that was killed goes on there as long as the code that replays is the same.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tools.results import Table, save, shown

from foldline.cli.batch_work import replay_one
from foldline.cli.common import NONE, TEN
from foldline.core.decide.presets import preset
from foldline.lab.batch import BatchFolder, Result
from foldline.lab.report import MEASURES, ReplaySums, SessionReport
from foldline.lab.run import ReplaySetup
from foldline.lab.runner import LocalPool
from foldline.lab.sources import sources

ROOT = Path(__file__).parents[1]
# what a replay runs, below src/foldline
REPLAYING = (
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
IDLE = ("none", "amp")  # never fold by themselves
CUTS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Compared(msgspec.Struct):
    """All sessions at one window: their sums by policy, and the retention at the cuts that all policies share."""

    window: int
    sums: ReplaySums
    cuts: dict[str, list[dict[str, Any]]]  # by policy
    failed: int = 0
    folded: int = 0  # sessions that a policy folded
    cut_sessions: int = 0

    def mean(self, policy: str, name: str) -> float | None:
        """Return the mean of a figure over the cuts; None for a policy that never folds."""
        known = [value for cut in self.cuts[policy] if (value := cut[name]) is not None]
        return sum(known) / len(known) if known and policy not in IDLE else None


# ---- replays


def code() -> str:
    """Return a hash of the code that replays."""
    digest = hashlib.sha256()
    for name in REPLAYING:
        place = ROOT / "src" / "foldline" / name
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.suffix in (".py", ".json", ".txt"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def replayed(files: Sequence[str], window: int, store: Path, jobs: int | None) -> list[Result]:
    """Replay files under every policy; results are kept below `store`."""
    policies = (NONE, *(preset(name) for name in TEN))
    setup = ReplaySetup(policies, window=window, cuts=CUTS)
    folder, done = store / str(window), 0

    with BatchFolder(folder, {**msgspec.to_builtins(setup), "version": code()}) as batch:
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


# ---- what they come to


def compared(results: Sequence[Result], window: int, store: Path) -> Compared:
    """Add up the results at one window."""
    found = Compared(window, ReplaySums(), defaultdict(list))
    for one in results:
        if one.state == "failed":
            found.failed += 1
            continue
        report = msgspec.json.decode((store / str(window) / one.output).read_bytes(), type=SessionReport)
        found.sums.add(report)
        found.folded += any(one.totals["compactions"] + one.totals["prunes"] for one in report.policies)
        places = shared_cuts(report)
        found.cut_sessions += bool(places)
        for policy in report.policies:
            found.cuts[policy.policy] += [policy.retention["cuts"][at] for at in places]  # pyright: ignore
    return found


def shared_cuts(report: SessionReport) -> list[int]:
    """Return the cuts before which every policy that folds by itself had folded, and whose views all fit."""
    cuts = [one.retention and one.retention["cuts"] for one in report.policies if one.policy not in IDLE]
    if None in cuts:
        return []
    columns = zip(*cuts, strict=True)
    return [at for at, column in enumerate(columns) if all(cut["folds"] and cut["fits"] for cut in column)]


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


def table(found: Compared) -> Table:
    """Return the table of one window; the best of each column in bold."""
    totals = {name: one.totals() for name, one in found.sums.policies.items()}
    whole = totals["none"]["input_tokens"]
    for one in totals.values():
        one |= {name: one[name] or 0.0 for name in ("price", "price_cached", "price_summaries")}
        one["net"] = one["price_cached"] + one["price_summaries"]  # with prompt caching
        one["less"] = 1 - one["input_tokens"] / whole
    best: dict[str, Any] = {
        title: min(one[name] for policy, one in totals.items() if policy not in IDLE)
        for title, name in LEAST.items()
    }
    for name in MEASURES:
        best[name] = max(
            (v for policy in totals if (v := found.mean(policy, name)) is not None), default=None
        )
    rows: list[tuple[str, ...]] = []
    for policy, one in totals.items():
        cells = [f"`{policy}`"]
        for title, written in COLUMNS.items():
            first = policy not in IDLE and title in LEAST and one[LEAST[title]] == best[title]
            cells.append("" if title == "less" and policy == "none" else bold(written(one), first=first))
        for name in MEASURES:
            value = found.mean(policy, name)
            text = "" if value is None else f"{value:.3f}".removeprefix("0")
            cells.append(bold(text, first=value is not None and value == best[name]))
        view = found.mean(policy, "view_tokens")
        rows.append((*cells, "" if view is None else f"{view:,.0f}"))
    return Table(("policy", *COLUMNS, *MEASURES, "view"), rows, f"Window {found.window:,}", notes(found))


def bold(text: str, *, first: bool) -> str:
    return f"**{text}**" if first else text


def notes(found: Compared) -> tuple[str, ...]:
    """Return what one window's table is over."""
    sums, cuts = found.sums, len(found.cuts["none"])
    return (
        f"{sums.sessions} sessions; {found.folded} are folded by at least one policy, the others fit.",
        f"Retention and `view`: the mean over {cuts} cuts in {found.cut_sessions} sessions.",
        *([f"Without a known price: {sums.unpriced} sessions."] if sums.unpriced else []),
        *([f"Failed: {found.failed}."] if found.failed else []),
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
        table(compared(replayed(files, window, args.store, args.jobs), window, args.store))
        for window in args.windows
    ]
    if args.save:
        save("comparison", f"python -m tools.compare SESSIONS --windows {windows}{every} --save", tables)
    else:
        print(shown(tables))


if __name__ == "__main__":
    main()
