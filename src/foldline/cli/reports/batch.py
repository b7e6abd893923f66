"""The output of a batch: a line for each session while it runs, its table, and the results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from foldline.cli.batch_work import SIZES
from foldline.cli.options import Shown
from foldline.cli.output import err, escape, out, progress, share, tell, warn, write_whole
from foldline.cli.reports.replay import print_totals
from foldline.core.log.codec import encode_utf8
from foldline.errors import InputError
from foldline.lab.batch import MANIFEST, TABLES, BatchFolder, Result
from foldline.lab.report import MEASURES, ReplaySums, SessionReport

FOLDED: Final = ("folded", *SIZES, "receipt")
TOTALS: Final = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "calls", "turns"),
    *("price", "price_cached", "price_summaries"),
    *("compactions", "prunes", "overflows", "fruitless", "refused", "invalid_views", "peak"),
)
_SHARES: Final = tuple(name.replace("-", "_") for name in MEASURES)
STATES: Final = {"done": "done now", "earlier": "done before", "failed": "failed"}


@contextmanager
def ticking(verb: str, count: int) -> Generator[Callable[[Result], None]]:
    """Show a batch's progress on standard error: a bar on a terminal, else a line for each session."""
    finished, console = 0, err()

    with progress(f"{verb} {count:,} sessions", count) as bar:

        def tick(result: Result) -> None:
            nonlocal finished
            finished += 1
            bar(finished)
            if result.state == "failed":
                console.print(f"[red]failed:[/] {escape(result.error)}", soft_wrap=True)
            elif result.state == "done" and not console.is_terminal:
                tell(f"{finished:,} of {count:,}: {result.file}")

        try:
            yield tick
        except KeyboardInterrupt:
            tell(f"{finished:,} of {count:,} files are done; run the same command again to continue")
            raise


def check_format(form: str) -> None:
    """Raise InputError if a format needs an extra that is not installed."""
    if form == "parquet":
        _arrow("pyarrow.parquet")


def write_table(batch: BatchFolder, folder: Path, form: str, *, replays: bool) -> None:
    """Write the table of a batch atomically, as JSON lines or Parquet; see `write_whole` for errors.

    Rows are in the order of the sources, and do not depend on when or where the work ran.
    """
    rows = (row for result in batch.results() for row in _rows(result, replays=replays))

    def write(stream: BinaryIO) -> None:
        if form == "parquet":
            _write_parquet(list(rows), stream)
        else:
            stream.writelines(encode_utf8(row) + b"\n" for row in rows)

    write_whole(folder / TABLES[form], write)


def _write_parquet(rows: list[dict[str, Any]], stream: BinaryIO) -> None:
    """Write rows with an explicit schema, since a column may be null in all of them."""
    arrow = _arrow("pyarrow")
    types = {
        **dict.fromkeys(
            ("session", "state", "error", "output", "receipt", "policy", "model"), arrow.string()
        ),
        **dict.fromkeys(("price", "price_cached", "price_summaries", *_SHARES), arrow.float64()),
        "folded": arrow.bool_(),
    }
    schema = arrow.schema([(name, types.get(name, arrow.int64())) for name in rows[0]])
    table = arrow.Table.from_pylist(rows, schema=schema)
    _arrow("pyarrow.parquet").write_table(table, stream, compression="zstd")


def _arrow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError("--format parquet needs pyarrow: pip install 'foldline[parquet]'") from error


def _rows(result: Result, *, replays: bool) -> Iterator[dict[str, Any]]:
    """Yield the row of a session, or for a replay a row for each policy; unknown values are null."""
    failed = result.state == "failed"
    common = {
        "session": result.file,
        "state": "failed" if failed else "ok",
        "error": result.error if failed else None,
        "output": None if failed else result.output,
    }
    if not replays:
        yield {**common, **{name: result.details.get(name) for name in FOLDED}}
        return
    nothing: dict[str, Any] = {"policies": [{"policy": None, "totals": {}, "retention": None}]}
    report: dict[str, Any] = nothing if failed else result.details["report"]
    for policy in report["policies"]:
        retention: dict[str, Any] = policy["retention"] or {}
        yield {
            **common,
            "policy": policy["policy"],
            **{name: report.get(name) for name in ("model", "window")},
            **{name: policy["totals"].get(name) for name in TOTALS},
            **{name.replace("-", "_"): retention.get(name) for name in MEASURES},
        }


def shown_results(results: Sequence[Result], folder: Path) -> Shown:
    """Return the results of all sessions, with exit code 1 if one failed."""
    replays = ReplaySums()
    for result in results:
        if "report" in result.details:
            replays.add(msgspec.convert(result.details["report"], SessionReport))
    totals = _totals(results)
    if failed := totals["failed"]:
        text = f"{failed:,} of {totals['files']:,} files failed; run the same command again to retry them"
        err().print(f"[red]error:[/] {text}", soft_wrap=True)

    def document() -> dict[str, Any]:
        policies = [
            {"policy": name, "totals": sums.totals(), "retention": sums.retention()}
            for name, sums in replays.policies.items()
        ]
        document = {"files": list(map(_file, results)), "totals": totals}
        return {**document, "policies": policies} if policies else document

    def show() -> None:
        done = [result for result in results if result.state == "done"]
        warn((f"{result.file}: {text}" for result in done for text in result.details["warnings"]), most=5)
        if replays.sessions:
            print_totals(replays, out())
        _print_totals(totals, folder)

    return Shown(document, show, 1 if failed else 0)


def _totals(results: Sequence[Result]) -> dict[str, int]:
    """Return the number of sessions in each state, and the sums of the folds."""
    states = {state: sum(result.state == state for result in results) for state in STATES}
    folds = [result.details for result in results if "folded" in result.details]
    names = ("tokens_before", "tokens_after", "folded") if folds else ()
    return {"files": len(results), **states, **{name: sum(fold[name] for fold in folds) for name in names}}


def _file(result: Result) -> dict[str, Any]:
    """Return a session as --json prints it."""
    found = {key: value for key, value in result.details.items() if key != "report"}
    error = {"error": result.error} if result.state == "failed" else {}
    return {"file": result.file, "output": result.output, "state": result.state, **found, **error}


def _print_totals(totals: dict[str, int], folder: Path) -> None:
    console = out()
    counts = [f"{totals[state]:,} {text}" for state, text in STATES.items() if totals[state]]
    files = "1 file" if totals["files"] == 1 else f"{totals['files']:,} files"
    console.print(f"{files}: {', '.join(counts)}", soft_wrap=True)
    if "folded" in totals:
        before, after = totals["tokens_before"], totals["tokens_after"]
        less = f"{before:,} tokens -> {after:,} ({share(before - after, before)} less)"
        console.print(f"{less}; {totals['folded']:,} folded, the others already fit", soft_wrap=True)
    console.print(f"[dim]results and {MANIFEST} are in {escape(str(folder))}[/]", soft_wrap=True)
