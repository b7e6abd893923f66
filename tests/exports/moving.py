"""Read session files, export them, and compare the messages."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log.entries import Compacted, Entry, Said
from foldline.core.log.messages import Message, Text, Usage
from foldline.core.measure.tokens import OFFLINE
from foldline.exports import ExportRequest, ExportResult, export_entries
from foldline.loading import Loaded, from_records
from foldline.transcripts import read


def load(raw: bytes, *, from_start: bool = False) -> Loaded:
    return from_records(read(io.BytesIO(raw), name="session"), OFFLINE, from_start=from_start)


def as_loaded(path: Sequence[Entry]) -> Loaded:
    """The path as loaded, to compare with a loaded export."""
    return Loaded(list(path), {}, "anthropic", title="The parser")


def export(loaded: Loaded | Sequence[Entry], form: str, **request: Any) -> tuple[bytes, ExportResult]:
    entries = loaded.entries if isinstance(loaded, Loaded) else loaded
    known = {"title": loaded.title, "model": loaded.model} if isinstance(loaded, Loaded) else {}
    pieces: list[bytes] = []
    result = export_entries(
        entries, "here", ExportRequest(form, **{"cwd": "/project", **known, **request}), pieces.append
    )
    return b"".join(pieces), result


def reload(raw: bytes, result: ExportResult, folder: Path) -> Loaded:
    """Read an export with its further files."""
    file = folder / "events.jsonl"
    file.write_bytes(raw)
    for name, content in result.beside.items():
        (folder / (name[1:] if name.startswith("/") else f"events{name}")).write_bytes(content)
    return from_records(read(file), OFFLINE)


def parts_of(message: Message) -> list[Any]:
    """The parts of a message that every tool keeps: all but blank texts."""
    return [part for part in message.parts if not (isinstance(part, Text) and not part.text.strip())]


def content(loaded: Loaded) -> list[tuple[str, Any]]:
    """Role and part, part by part: tools differ in how many results one message has."""
    return [
        ("user" if entry.message.role == "tool" else entry.message.role, part)
        for entry in loaded.entries
        if isinstance(entry, Said)
        for part in parts_of(entry.message)
    ]


def replies(loaded: Loaded, *, stops: bool = True) -> list[tuple[Any, ...]]:
    """Model, usage, time and stop reason of each reply that is not empty.

    Without `stops` an aborted or failed reply counts as ended: not every format marks them.
    """
    return [
        (
            entry.message.model or loaded.model,
            entry.message.usage or Usage(),
            entry.at,
            _stop(entry.message, stops=stops),
        )
        for entry in loaded.entries
        if isinstance(entry, Said) and entry.message.role == "assistant" and parts_of(entry.message)
    ]


def _stop(message: Message, *, stops: bool) -> str:
    usual = "tools" if message.calls else "end"
    return usual if not stops and message.stop in ("aborted", "error") else message.stop or usual


def prompts(loaded: Loaded) -> list[tuple[str, bool, float | None]]:
    """Text, injected and time of each message in the user's name."""
    return [
        (entry.message.text, entry.message.injected, entry.at)
        for entry in loaded.entries
        if isinstance(entry, Said) and entry.message.role == "user" and entry.message.text
    ]


def boundaries(loaded: Loaded) -> list[tuple[Any, ...]]:
    """Summary, tokens before, time, the number of parts before it, and the first part that it kept.

    Results that an export adds for unanswered calls do not count.
    """
    parts: dict[str, int] = {}
    count = 0
    rows: list[tuple[Any, ...]] = []
    for entry in loaded.entries:
        if isinstance(entry, Said):
            parts[entry.id] = count
            count += sum(getattr(part, "text", "") != UNANSWERED for part in parts_of(entry.message))
        elif isinstance(entry, Compacted):
            kept = parts.get(entry.first_kept or "")
            rows.append((entry.checkpoint.summary, entry.receipt.tokens_before, entry.at, count, kept))
    return rows
