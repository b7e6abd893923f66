"""Sidecar files: small JSON files next to a session file, with a title, a model or the last compaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foldline.errors import FormatError
from foldline.transcripts.records import WarningRecord
from foldline.transcripts.shared.lines import read_document
from foldline.transcripts.shared.values import mapping


def stem_of(path: Path) -> str:
    """Return the name of a session file without `.jsonl`, gzipped or not: its sidecar is named after it."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def read_sidecar(path: Path) -> dict[str, Any] | WarningRecord:
    """Read the JSON object in a file ({} if there is no such file); return a warning if it cannot be read."""
    try:
        with path.open("rb") as stream:
            value, note = read_document(stream, str(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        return WarningRecord(0, f"{path} next to it cannot be read: {error.strerror or error}")
    except FormatError as error:
        return WarningRecord(0, f"next to it, {error} (left out)")
    if note:
        return WarningRecord(0, f"{path} next to it is damaged: {note} (left out)")
    if not isinstance(value, dict):
        return WarningRecord(0, f"{path} next to it is not a JSON object (left out)")
    return mapping(value)
