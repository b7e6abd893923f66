"""Compare the ten systems over recorded sessions: the first tables of docs/results/README.md.

    python -m tools.compare SESSIONS --save                         60,000, 100,000 and 200,000, into the page
    python -m tools.compare SESSIONS --windows 100000 --every 10    every tenth session, printed

SESSIONS is a folder of session files. Each is replayed under `none` and the ten systems, as by `foldline batch replay`;
results are kept in --store, and a run that was killed goes on there as long as the code that replays is the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tools.results import Table, save, shown

from foldline.cli.batch_work import replay_one
from foldline.cli.commands.replay import NONE, TEN
from foldline.core.decide.presets import preset
from foldline.lab.batch import BatchFolder, Result
from foldline.lab.report import MEASURES
from foldline.lab.run import Wanted
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


class Row(msgspec.Struct):
    """One policy over all sessions; money in USD."""

    policy: str
    input_tokens: int = 0
    price: float = 0.0
    price_cached: float = 0.0
    price_summaries: float = 0.0
    compactions: int = 0
    prunes: int = 0
    overflows: int = 0
    invalid_views: int = 0
    scores: dict[str, float | None] = {}
    view_tokens: float | None = None

    @property
    def net(self) -> float:
        """What is paid with prompt caching, the summaries that a model would write included."""
        return self.price_cached + self.price_summaries


class Compared(msgspec.Struct):
    """All sessions at one window: how many there were, how many a policy folded, at how many cuts retention is told."""

    window: int
    rows: list[Row]
    sessions: int
    failed: list[str]
    folded: int
    unpriced: int
    cuts: int
    cut_sessions: int


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
    wanted = Wanted(policies, window=window, cuts=CUTS)
    folder, done = store / str(window), 0

    with BatchFolder(folder, {**msgspec.to_builtins(wanted), "version": code()}) as batch:
        batch.add(sources(files), ".json")

        def tick(result: Result) -> None:
            nonlocal done
            done += 1
            print(
                f"window {window:,}: {done} of {len(batch.tasks)} {result.state} {result.error}",
                file=sys.stderr,
            )

        batch.run(replay_one, wanted, runner=LocalPool(jobs), tick=tick)
        return list(batch.results())


# ---- what they come to


def compared(results: Sequence[Result], window: int, store: Path) -> Compared:
    """Add up the results at one window."""
    done = [
        json.loads((store / str(window) / one.output).read_bytes())
        for one in results
        if one.state != "failed"
    ]
    rows = {one["policy"]: Row(one["policy"]) for one in done[0]["policies"]}
    cuts: dict[str, list[dict[str, Any]]] = {name: [] for name in rows}
    cut_sessions = 0
    for report in done:
        for one in report["policies"]:
            add(rows[one["policy"]], one["totals"])
        found = shared_cuts(report)
        cut_sessions += bool(found)
        for at in found:
            for one in report["policies"]:
                cuts[one["policy"]].append(one["retention"]["cuts"][at])
    for name, row in rows.items():
        if name not in IDLE:
            row.scores = {measure: mean(cut[measure] for cut in cuts[name]) for measure in MEASURES}
            row.view_tokens = mean(cut["view_tokens"] for cut in cuts[name])
    return Compared(
        window,
        list(rows.values()),
        sessions=len(done),
        failed=[one.error for one in results if one.state == "failed"],
        folded=sum(any(folds(one) for one in report["policies"]) for report in done),
        unpriced=sum(report["policies"][0]["totals"]["price"] is None for report in done),
        cuts=len(cuts["none"]),
        cut_sessions=cut_sessions,
    )


def add(row: Row, totals: dict[str, Any]) -> None:
    """Add a session's totals to a row; what has no price adds none."""
    for name in ("input_tokens", "compactions", "prunes", "overflows", "invalid_views"):
        setattr(row, name, getattr(row, name) + totals[name])
    for name in ("price", "price_cached", "price_summaries"):
        setattr(row, name, getattr(row, name) + (totals[name] or 0.0))


def folds(one: dict[str, Any]) -> int:
    return one["totals"]["compactions"] + one["totals"]["prunes"]


def shared_cuts(report: dict[str, Any]) -> list[int]:
    """Return the cuts before which every policy that folds by itself had folded, and whose views all fit."""
    acting = [one["retention"] for one in report["policies"] if one["policy"] not in IDLE]
    if any(found is None for found in acting):
        return []
    columns = list(zip(*(found["cuts"] for found in acting), strict=True))
    return [at for at, column in enumerate(columns) if all(cut["folds"] and cut["fits"] for cut in column)]


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


# ---- the tables


def table(found: Compared) -> Table:
    """Return the table of one window; the best of each column in bold."""
    titles = ("policy", "M tokens", "less", "USD", "USD net", "compactions", "prunes", "overflows", "invalid")
    best = (
        {name: max(v for row in found.rows if (v := row.scores.get(name)) is not None) for name in MEASURES}
        if found.cuts
        else {}
    )
    acting = [row for row in found.rows if row.policy not in IDLE]
    least = {
        name: min(getattr(row, name) for row in acting)
        for name in ("input_tokens", "price", "net", "overflows")
    }
    whole = found.rows[0].input_tokens
    rows: list[tuple[str, ...]] = []
    for row in found.rows:

        def bold(text: str, name: str, row: Row = row) -> str:
            return f"**{text}**" if row in acting and getattr(row, name) == least[name] else text

        rows.append(
            (
                f"`{row.policy}`",
                bold(f"{row.input_tokens / 1e6:,.1f}", "input_tokens"),
                f"{100 * (1 - row.input_tokens / whole):.0f}%" if row is not found.rows[0] else "",
                bold(f"{row.price:,.0f}", "price"),
                bold(f"{row.net:,.0f}", "net"),
                f"{row.compactions:,}",
                f"{row.prunes:,}",
                bold(f"{row.overflows:,}", "overflows"),
                str(row.invalid_views),
                *(share(row.scores.get(name), best.get(name)) for name in MEASURES),
                f"{row.view_tokens:,.0f}" if row.view_tokens is not None else "",
            )
        )
    return Table((*titles, *MEASURES, "view"), rows, f"Window {found.window:,}", notes(found))


def notes(found: Compared) -> tuple[str, ...]:
    """Return what one window's table is over."""
    return (
        f"{found.sessions} sessions; {found.folded} are folded by at least one policy, the others fit.",
        f"Retention and `view`: the mean over {found.cuts} cuts in {found.cut_sessions} sessions.",
        *([f"Without a known price: {found.unpriced} sessions."] if found.unpriced else []),
        *([f"Failed: {len(found.failed)}."] if found.failed else []),
    )


def share(value: float | None, best: float | None) -> str:
    if value is None:
        return ""
    text = f"{value:.3f}".removeprefix("0")
    return f"**{text}**" if value == best else text


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
