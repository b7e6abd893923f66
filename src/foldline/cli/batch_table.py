"""The table of a batch: a row a session, or a row for each session and policy; JSON lines or Parquet.

Rows stand in the order of the sources, and hold nothing that depends on when or where the work ran: the same
sessions and options give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import msgspec

from foldline.cli.output import write_whole
from foldline.core.log.codec import encode_utf8
from foldline.errors import InputError
from foldline.lab.manifest import Result
from foldline.lab.report import PolicyReport, SessionReport

NAME: Final = "results"
FORMATS: Final = ("jsonl", "parquet")
GROUP: Final = 10_000  # rows that are written to Parquet at once


class FoldRow(msgspec.Struct, frozen=True):
    """A session that was folded, or failed; what is not known is null.

    `session` is its file, `output` its folded messages, a path below the folder, `error` why it failed. Sizes
    are in tokens (Foldline's own count) and in messages. `receipt` is a JSON document.
    """

    session: str
    state: Literal["ok", "failed"]
    error: str | None = None
    output: str | None = None
    folded: bool | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    messages_before: int | None = None
    messages_after: int | None = None
    receipt: str | None = None


class ReplayRow(msgspec.Struct, frozen=True):
    """A session under one policy, or a session that failed, without a policy; what is not known is null.

    `window`, `peak` and what ends in `_tokens` are in tokens, prices in USD, the measures of retention (the
    last five) shares between 0 and 1; all else are counts.
    """

    session: str
    policy: str | None
    state: Literal["ok", "failed"]
    error: str | None = None
    output: str | None = None
    model: str | None = None
    window: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    calls: int | None = None
    turns: int | None = None
    price: float | None = None
    price_cached: float | None = None
    price_summaries: float | None = None
    compactions: int | None = None
    prunes: int | None = None
    overflows: int | None = None
    fruitless: int | None = None
    refused: int | None = None
    invalid_views: int | None = None
    peak: int | None = None
    handle: float | None = None
    far: float | None = None
    far_bound: float | None = None
    far_rare: float | None = None
    steps: float | None = None


Row = FoldRow | ReplayRow


def check_format(form: str) -> None:
    """Raise InputError where a format needs an extra that is not installed."""
    if form == "parquet":
        _arrow("pyarrow.parquet")


def write_table(results: Iterable[Result], folder: Path, form: str, *, replays: bool) -> Path:
    """Write the table of a batch atomically and return its path; see `write_whole` for errors."""
    kind = ReplayRow if replays else FoldRow
    rows = (row for result in results for row in (replay_rows(result) if replays else [fold_row(result)]))
    target = folder / f"{NAME}.{form}"

    def write(stream: BinaryIO) -> None:
        if form == "parquet":
            _write_parquet(rows, kind, stream)
        else:
            stream.writelines(encode_utf8(row) + b"\n" for row in rows)

    write_whole(target, write)
    return target


def fold_row(result: Result) -> FoldRow:
    """Return the row of a session that was folded."""
    if result.state == "failed":
        return FoldRow(result.file, "failed", result.error)
    known: dict[str, Any] = {
        name: result.found[name] for name in FoldRow.__struct_fields__ if name in result.found
    }
    return FoldRow(result.file, "ok", None, result.output, **known)


def replay_rows(result: Result) -> Iterator[ReplayRow]:
    """Yield the rows of a session that was replayed, one a policy."""
    if result.state == "failed":
        yield ReplayRow(result.file, None, "failed", result.error)
        return
    report = msgspec.convert(result.found["report"], SessionReport)
    for one in report.policies:
        yield _replay_row(result, report, one)


def _replay_row(result: Result, report: SessionReport, one: PolicyReport) -> ReplayRow:
    measures = {name.replace("-", "_"): share for name, share in (one.retention or {}).items()}
    known: dict[str, Any] = {**one.totals, **measures, "model": report.model, "window": report.window}
    return ReplayRow(
        result.file,
        one.policy,
        "ok",
        output=result.output,
        **{name: known[name] for name in ReplayRow.__struct_fields__ if name in known},
    )


def _write_parquet(rows: Iterator[Row], kind: type[Row], stream: BinaryIO) -> None:
    arrow, parquet = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    schema = _schema(arrow, kind)
    with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        while group := [msgspec.structs.asdict(row) for row in islice(rows, GROUP)]:
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))


def _schema(arrow: Any, kind: type[Row]) -> Any:
    """Return the Arrow schema of a row: its fields, in their order."""
    types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64()}
    columns: list[Any] = []
    for field in msgspec.structs.fields(kind):
        asked: Sequence[Any] = getattr(field.type, "__args__", ())
        found = next((types[one] for one in asked if one in types), arrow.string())
        columns.append(arrow.field(field.name, found, nullable=not field.required or field.name == "policy"))
    return arrow.schema(columns)


def _arrow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError("--format parquet needs pyarrow: pip install 'foldline[parquet]'") from error
