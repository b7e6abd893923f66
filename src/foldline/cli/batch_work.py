"""What a batch does with one file: fold it, or replay it, write the result, and say what it came to.

Both run in processes of their own, where nothing is printed.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

import msgspec

from foldline.catalogue import Catalogue
from foldline.cli.commands.compact import write_messages
from foldline.cli.common import load_session
from foldline.cli.output import write_whole
from foldline.core.decide.policy import Policy
from foldline.core.log.codec import encode
from foldline.core.log.entries import Receipt
from foldline.errors import SessionNotFound
from foldline.exports.base import line
from foldline.folding import FoldOptions, fold_now
from foldline.lab.manifest import Found
from foldline.lab.report import SessionReport, as_json
from foldline.lab.run import Wanted, replay_file
from foldline.lab.sources import is_stored, place_of
from foldline.stores import open_store
from foldline.transcripts import header_line


class FoldFiles(msgspec.Struct, frozen=True):
    """How to fold the files of an archive; `version` is Foldline's, on which a result depends too.

    `window` and `model` None: those of each file. `models` are the user's own limits and prices.
    """

    policy: Policy
    version: str
    target: int | None = None
    window: int | None = None
    model: str | None = None
    dialect: str | None = None
    from_start: bool = False
    models: dict[str, dict[str, Any]] = {}


class ReplayFiles(msgspec.Struct, frozen=True):
    """How to replay the files of an archive."""

    wanted: Wanted
    version: str


def fold_one(folding: FoldFiles, file: str, target: Path) -> Found:
    """Fold a file and write its messages as JSON lines."""
    started = time.perf_counter()
    with _as_file(file) as path:
        loaded = load_session(path, from_start=folding.from_start)
    info = Catalogue(folding.models).look_up(folding.model or loaded.model, folding.window)
    done = fold_now(loaded, FoldOptions(folding.policy, info, target=folding.target, dialect=folding.dialect))
    write_messages(done, loaded, target)
    receipt = done.receipt
    return {
        "tokens_before": receipt.tokens_before,
        "tokens_after": receipt.tokens_after,
        "messages_before": receipt.messages_before,
        "messages_after": receipt.messages_after,
        "folded": done.boundary is not None,
        "receipt": encode(_timeless(receipt)).decode(),
        "seconds": round(time.perf_counter() - started, 3),
        "warnings": list(done.warnings),
    }


def _timeless(receipt: Receipt) -> dict[str, Any]:
    """Return a receipt without its times, so that a batch gives the same bytes again."""
    found: dict[str, Any] = msgspec.to_builtins(receipt)
    return {name: value for name, value in found.items() if name not in ("created_at", "duration_ms")}


def replay_one(replaying: ReplayFiles, file: str, target: Path) -> Found:
    """Replay a file and write its report; kept of it are the totals and the means, without turns and cuts."""
    with _as_file(file) as path:
        report = msgspec.structs.replace(replay_file(path, replaying.wanted), session=file)
    beside = {"model": report.model, "note": report.note, "warnings": report.warnings}
    shown = as_json([report])["sessions"][0]
    for one in shown["policies"]:
        one["totals"] = {name: value for name, value in one["totals"].items() if name != "compaction_seconds"}
    written = encode({**shown, **beside}) + b"\n"

    def write(stream: BinaryIO) -> None:
        stream.write(written)

    write_whole(target, write)
    return {"report": msgspec.to_builtins(_in_short(report)), "warnings": list(report.warnings)}


def _in_short(report: SessionReport) -> SessionReport:
    """Return a report without what grows with the session."""
    policies = tuple(
        msgspec.structs.replace(
            one,
            turns=(),
            retention={**one.retention, "cuts": []} if one.retention is not None else None,
        )
        for one in report.policies
    )
    return msgspec.structs.replace(report, policies=policies)


@contextmanager
def _as_file(name: str) -> Generator[str]:
    """Give the path of a source: a file's own, or that of a copy in our own form, which is gone at the end.

    Raises SessionNotFound where the store does not have the session any more.
    """
    if not is_stored(name):
        yield name
        return
    with tempfile.NamedTemporaryFile(prefix="foldline-", suffix=".jsonl") as copy:
        asyncio.run(_copy(name, copy.file))
        yield copy.name


async def _copy(name: str, copy: IO[bytes]) -> None:
    url, session = place_of(name)
    store = open_store(url)
    try:
        leaf = await store.leaf(session)
        if leaf is None:
            raise SessionNotFound(f"{name}: this session is not in the store any more")
        copy.write(header_line(session=session, leaf=leaf))
        async for entry in store.all(session):
            copy.write(line(entry))
        copy.flush()
    finally:
        await store.close()
