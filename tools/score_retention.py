"""Score retention over recorded sessions. Nothing in a checkpoint is fitted to sessions, so none are left out.

    python -m tools.score_retention score SESSIONS METRIC       METRIC (a script) run on each source
    python -m tools.score_retention folds SESSIONS              the first, second and fifth fold of growing sessions

With --save the table goes into docs/results/README.md.

SESSIONS holds `SOURCE/*.jsonl.gz`, one message a line (role, text, calls, call_id). METRIC is called as
`METRIC eval DIR --chat --compactor tools.score_retention:fold --out FILE`; only the rows it writes are read.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.results import Table, save, shown

import foldline
from foldline.core.lab.retention import argument_texts
from foldline.core.ledger.text import names
from foldline.core.log.entries import Said
from foldline.dialects import get

BUDGETS = ("0.05", "0.1")
MEASURES = ("handle", "far", "far-bound", "far-rare", "steps")


def sessions(folder: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """Return each source's segments: what one context window held, as OpenAI chat messages."""
    found: dict[str, list[list[dict[str, Any]]]] = collections.defaultdict(list)
    for path in sorted(folder.glob("*/*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf8") as file:
            rows = [json.loads(line) for line in file][1:]
        segment: list[dict[str, Any]] = []
        for row in rows:
            if row["role"] == "boundary":
                continue
            if row["role"] == "summary" and segment:
                found[path.parent.name].append(segment)
                segment = []
            segment.append(_chat(row))
        found[path.parent.name].append(segment)
    return found


def _chat(row: dict[str, Any]) -> dict[str, Any]:
    if row["role"] == "tool":
        return {"role": "tool", "tool_call_id": row.get("call_id") or "", "content": row["text"]}
    message: dict[str, Any] = {"role": row["role"].replace("summary", "user"), "content": row["text"] or None}
    if row.get("calls"):
        message["tool_calls"] = [
            {
                "id": call["id"] or "",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False)},
            }
            for call in row["calls"]
        ]
    return message


def size(message: dict[str, Any]) -> int:
    """Return a message's size in tokens of four characters."""
    return len(json.dumps(message, ensure_ascii=False)) // 4


def cut_at(messages: list[dict[str, Any]], share: float) -> int:
    """Return the index before which about `share` of the tokens lie, no call left unanswered before it."""
    want, seen, waiting, best = share * sum(map(size, messages)), 0, set[str](), 0
    for index, message in enumerate(messages):
        if not waiting and message["role"] != "tool":
            best = index
            if seen >= want:
                break
        seen += size(message)
        waiting |= {call["id"] for call in message.get("tool_calls") or ()}
        waiting.discard(message.get("tool_call_id", ""))
    return best


def entries(messages: list[dict[str, Any]]) -> list[Said]:
    """Decode messages to entries."""
    dialect = get("openai-chat")
    return [Said(f"e{i}", None, dialect.decode(message), "") for i, message in enumerate(messages)]


def keys(texts: Iterable[str]) -> set[str]:
    """Return the keys of all names in texts."""
    return {name.key for text in texts for name in names.find(text)}


def needed(past: set[str], future: list[Said]) -> set[str]:
    """Return the names of the past that later calls address before anything but the assistant names them."""
    told: set[str] = set()
    used: set[str] = set()
    for entry in future:
        for call in entry.message.calls:
            for body, text in argument_texts(call.arguments):
                if not body:
                    used |= keys([text]) & past - told
        if entry.message.role != "assistant":
            told |= keys([entry.message.text, *(result.text for result in entry.message.results)])
    return used


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


def folds(folder: Path, budget: float = 0.1) -> Table:
    """Fold growing sessions one, two and five times: the share of needed far names that the view names."""
    plans = {1: (0.75,), 2: (0.45, 0.75), 5: (0.25, 0.4, 0.5, 0.6, 0.75)}
    means: dict[int, list[float]] = {times: [] for times in plans}
    rows: list[tuple[str, ...]] = []
    for source, segments in sessions(folder).items():
        shares: dict[int, list[float]] = {times: [] for times in plans}
        for segment in segments:
            if sum(map(size, segment)) >= 20_000:
                for times, share in grown(segment, plans, budget):
                    shares[times].append(share)
        if shares[1]:
            for times, found in shares.items():
                means[times].append(statistics.fmean(found))
            cells = (_cell(statistics.fmean(found)) for found in shares.values())
            rows.append((f"{source} ({len(shares[1])})", *cells))
    rows.append(("**mean**", *(f"**{_cell(statistics.fmean(found))}**" for found in means.values())))
    return Table(("source", "first", "second", "fifth"), rows)


def grown(
    segment: list[dict[str, Any]], plans: dict[int, tuple[float, ...]], budget: float
) -> list[tuple[int, float]]:
    """Return (number of folds, share of needed far names in the last view) of one segment."""
    last = cut_at(segment, 0.75)
    past = segment[:last]
    recent = keys(str(message) for message in past[cut_at(past, 0.9) :])
    wanted = needed(keys(map(str, past)), entries(segment[last:])) - recent
    found: list[tuple[int, float]] = []
    for times, shares in plans.items():
        view: list[dict[str, Any]] = []
        at = 0
        for share in shares:
            end = cut_at(segment, share)
            view = [*view, *segment[at:end]]
            at = end
            whole = sum(map(size, segment[:end]))
            view = foldline.compact(view, target=max(int(whole * budget), 600), policy="foldline").messages
        if wanted:
            held = keys(json.dumps(message, ensure_ascii=False).replace("\\n", "\n") for message in view)
            found.append((times, len(wanted & held) / len(wanted)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["score", "folds"])
    parser.add_argument("sessions", type=Path)
    parser.add_argument("metric", type=Path, nargs="?")
    parser.add_argument("--save", action="store_true", help="write the table into docs/results/README.md")
    given = parser.parse_args()
    if given.what == "folds":
        name, found = "retention-folds", folds(given.sessions)
    else:
        name, found = "retention", score(given.sessions, given.metric)
    if given.save:
        metric = " METRIC" if given.metric else ""
        save(name, f"python -m tools.score_retention {given.what} SESSIONS{metric} --save", [found])
    else:
        print(shown([found]))


if __name__ == "__main__":
    main()
