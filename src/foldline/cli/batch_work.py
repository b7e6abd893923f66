"""The work of a batch on one session: fold or replay it, write the result, return the record.

Both run in worker processes and print nothing.
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
from foldline.lab.batch import Details
from foldline.lab.report import as_json
from foldline.lab.run import ReplaySetup, replay_file
from foldline.lab.sources import is_stored, split_stored
from foldline.stores import open_store

SIZES = ("tokens_before", "tokens_after", "messages_before", "messages_after")


class FoldFiles(msgspec.Struct, frozen=True):
    """How to fold the sessions of an archive; `window` and `model` default to those of each session.

    `models` holds the limits and prices from the user's settings.
    """

    policy: Policy
    target: int | None = None
    window: int | None = None
    model: str | None = None
    dialect: str | None = None
    from_start: bool = False
    models: dict[str, dict[str, Any]] = {}


def fold_one(folding: FoldFiles, file: str, target: Path) -> Details:
    """Fold a session and write its messages as JSON lines."""
    started = time.perf_counter()
    with _as_file(file) as path:
        loaded = load_session(path, from_start=folding.from_start)
    info = Catalogue(folding.models).look_up(folding.model or loaded.model, folding.window)
    folded = fold_now(
        loaded, FoldOptions(folding.policy, info, target=folding.target, dialect=folding.dialect)
    )
    write_messages(folded, loaded, target)
    receipt: dict[str, Any] = msgspec.to_builtins(folded.receipt)
    for name in ("created_at", "duration_ms"):  # to write the same bytes in every run
        receipt.pop(name, None)
    return {
        **{name: receipt[name] for name in SIZES},
        "folded": folded.boundary is not None,
        "receipt": encode(receipt).decode(),
        "seconds": round(time.perf_counter() - started, 3),
        "warnings": [*folded.warnings, *tools_left_out(folded, loaded)],
    }


def replay_one(setup: ReplaySetup, file: str, target: Path) -> Details:
    """Replay a session and write its report; only totals and means are recorded."""
    with _as_file(file) as path:
        report = msgspec.structs.replace(replay_file(path, setup), session=file)
    (document,) = as_json([report])["sessions"]
    for policy in document["policies"]:
        totals: dict[str, Any] = policy["totals"]
        policy["totals"] = {name: value for name, value in totals.items() if name != "compaction_seconds"}
    document |= {"model": report.model, "note": report.note, "warnings": report.warnings}
    data = encode(document) + b"\n"
    write_whole(target, lambda stream: stream.write(data))
    record = msgspec.to_builtins(report)
    for policy in record["policies"]:
        policy["turns"] = []
        if policy["retention"] is not None:
            policy["retention"]["cuts"] = []
    return {"report": record, "warnings": list(report.warnings)}


@contextmanager
def _as_file(name: str) -> Generator[str]:
    """Yield the path of a session file, or of a temporary copy of a stored session.

    Raises SessionNotFound if the session is no longer in the store.
    """
    if not is_stored(name):
        yield name
        return
    with tempfile.NamedTemporaryFile(prefix="foldline-", suffix=".jsonl") as copy:
        asyncio.run(_copy(name, copy.file))
        yield copy.name


async def _copy(name: str, copy: IO[bytes]) -> None:
    url, session = split_stored(name)
    store = open_store(url)
    try:
        if await store.leaf(session) is None:
            raise SessionNotFound(f"{name}: this session is no longer in the store")
        await write_log(store, session, copy.write)
        copy.flush()
    finally:
        await store.close()
