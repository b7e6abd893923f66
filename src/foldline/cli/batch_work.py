"""What a batch does with one session: fold or replay it, write the result, return what is recorded.

Both run in processes of their own, where nothing is printed.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from foldline.catalogue import Catalogue
from foldline.cli.commands.compact import tools_left_out, write_messages
from foldline.cli.common import load_session
from foldline.cli.output import write_whole
from foldline.cli.store import write_log
from foldline.core.decide.policy import Policy
from foldline.core.log.codec import encode
from foldline.errors import SessionNotFound
from foldline.folding import FoldOptions, fold_now
from foldline.lab.batch import Found
from foldline.lab.report import as_json
from foldline.lab.run import ReplaySetup, replay_file
from foldline.lab.sources import is_stored, place_of
from foldline.stores import open_store

SIZES = ("tokens_before", "tokens_after", "messages_before", "messages_after")


class FoldFiles(msgspec.Struct, frozen=True):
    """How to fold the sessions of an archive; `window` and `model` None: those of each.

    `models` are the user's own limits and prices.
    """

    policy: Policy
    target: int | None = None
    window: int | None = None
    model: str | None = None
    dialect: str | None = None
    from_start: bool = False
    models: dict[str, dict[str, Any]] = {}


def fold_one(folding: FoldFiles, file: str, target: Path) -> Found:
    """Fold a session and write its messages as JSON lines."""
    started = time.perf_counter()
    with _as_file(file) as path:
        loaded = load_session(path, from_start=folding.from_start)
    info = Catalogue(folding.models).look_up(folding.model or loaded.model, folding.window)
    done = fold_now(loaded, FoldOptions(folding.policy, info, target=folding.target, dialect=folding.dialect))
    write_messages(done, loaded, target)
    receipt: dict[str, Any] = msgspec.to_builtins(done.receipt)
    for name in ("created_at", "duration_ms"):  # so that a batch gives the same bytes again
        receipt.pop(name, None)
    return {
        **{name: receipt[name] for name in SIZES},
        "folded": done.boundary is not None,
        "receipt": encode(receipt).decode(),
        "seconds": round(time.perf_counter() - started, 3),
        "warnings": [*done.warnings, *tools_left_out(done, loaded)],
    }


def replay_one(setup: ReplaySetup, file: str, target: Path) -> Found:
    """Replay a session and write its report; the totals and the means alone are recorded."""
    with _as_file(file) as path:
        report = msgspec.structs.replace(replay_file(path, setup), session=file)
    (shown,) = as_json([report])["sessions"]
    for one in shown["policies"]:
        one["totals"] = {name: value for name, value in one["totals"].items() if name != "compaction_seconds"}
    beside = {"model": report.model, "note": report.note, "warnings": report.warnings}
    written = encode({**shown, **beside}) + b"\n"
    write_whole(target, lambda stream: stream.write(written))
    short = msgspec.to_builtins(report)
    for one in short["policies"]:
        one["turns"] = []
        if one["retention"] is not None:
            one["retention"]["cuts"] = []
    return {"report": short, "warnings": list(report.warnings)}


@contextmanager
def _as_file(name: str) -> Generator[str]:
    """Give the path of a session file, or of a copy of a stored session, which is removed at the end.

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
        if await store.leaf(session) is None:
            raise SessionNotFound(f"{name}: this session is not in the store any more")
        await write_log(store, session, copy.write)
        copy.flush()
    finally:
        await store.close()
