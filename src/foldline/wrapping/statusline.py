"""A record of the folds of each Claude Code session in a small file, and the status line made from it.

Claude Code asks for the line after every reply: modules that load slowly must not be imported here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from foldline import files
from foldline.terminal import clean

KEPT: Final = "~/.foldline/claude-code"  # the folder with a file for each session
LONGEST: Final = 64 * 1024  # bytes of such a file
CELLS: Final = 10
_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class SessionRecord(NamedTuple):
    """The folds of a session, the tokens they saved, and the number of the user's rules in force.

    `told`: the newest checkpoint has the rules, so they need not be added after it.
    """

    folds: int = 0
    saved: int = 0
    rules: int = 0
    told: bool = False


def record_of(session: Any) -> SessionRecord:
    """Return the record of a session; an empty one if its file is missing or invalid."""
    path = _path(session)
    if path is None:
        return SessionRecord()
    with suppress(Exception):  # others may have written the file
        fields = json.loads(files.content(path, LONGEST))
        folds, saved, rules = (int(fields[name]) for name in ("folds", "saved", "rules"))
        return SessionRecord(folds, saved, rules, told=bool(fields["told"]))
    return SessionRecord()


def keep(session: Any, record: SessionRecord) -> None:
    """Store the record of a session with an id, if its file can be written: folds do not depend on it."""
    path = _path(session)
    if path is not None:
        with suppress(OSError), files.written(path, mode=files.PRIVATE) as file:
            file.write(json.dumps(record._asdict()).encode())


def _path(session: Any) -> Path | None:
    if not isinstance(session, str) or not _SESSION_ID.fullmatch(session):
        return None
    return files.expanded(KEPT) / f"{session}.json"


def status_line(status: Mapping[str, Any]) -> str:
    """Return the line for the session that Claude Code describes: model, meter, folds, rules."""
    model, window = _table(status.get("model")), _table(status.get("context_window"))
    record = record_of(status.get("session_id"))
    name = model.get("display_name") or model.get("id")
    parts = [name] if isinstance(name, str) else []
    parts += [_meter(window)]
    if record.folds:
        folds = "1 fold" if record.folds == 1 else f"{record.folds} folds"
        parts.append(f"{folds} saved {_short(record.saved)} tokens")
    if record.rules:
        parts.append(rules_held(record.rules))
    return clean(" · ".join(part for part in parts if part)).replace("\n", " ")


def rules_held(count: int) -> str:
    """Return the number of rules in words."""
    return "1 rule held" if count == 1 else f"{count} rules held"


def _meter(window: Mapping[str, Any]) -> str:
    """Return how full the window is; "" before the first reply and from older versions."""
    size, used = _number(window.get("context_window_size")), _number(window.get("total_input_tokens"))
    share = _number(window.get("used_percentage"))
    if share is None and size and used is not None:
        share = 100 * used / size
    if share is None:
        return ""
    filled = min(CELLS, max(0, round(share * CELLS / 100)))
    total = f" of {_short(size)}" if size else ""
    return f"{'█' * filled}{'░' * (CELLS - filled)} {share:.0f}%{total}"


def _short(tokens: float) -> str:
    """Return a number of tokens in few characters: 940, 34.8k, 128k, 1M."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= unit:
            count = tokens / unit
            return f"{count:.1f}".removesuffix(".0") + name if count < 100 else f"{count:.0f}{name}"
    return f"{tokens:.0f}"


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value
