"""A home with transcripts where agents keep them, for tests of what reads them there."""

from __future__ import annotations

import os
from pathlib import Path

from tests.exports.moving import export
from tests.exports.sessions import entries

from foldline.loading import Loaded

AGENTS = ("claude-code", "codex", "pi", "klaude-code")


def write_transcript(
    home: Path, folder: Path, agent: str, loaded: Loaded | list | None = None, *, at: float = 0
) -> Path:
    """Write a session where its agent looks for those of a folder; `at` is when it was written."""
    raw, told = export(loaded or entries(fold_at=6), agent, cwd=str(folder.resolve()))
    path = Path(told.place.replace("~", str(home), 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    if at:
        os.utime(path, (at, at))
    return path
