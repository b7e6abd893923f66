"""What Foldline did in a session of Claude Code, kept in a small file, and the line under its prompt.

Claude Code asks for the line after every reply: nothing is imported here that takes long.
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
_NAMED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class SessionRecord(NamedTuple):
    """How often a session was folded, the tokens that were saved, how many rules of the user's stand.

    `told` says that the newest checkpoint has the rules: they need not be put back behind it.
    """

    folds: int = 0
    saved: int = 0
    rules: int = 0
    told: bool = False


def record_of(session: Any) -> SessionRecord:
    """Return what is known of a session; nothing where its file is missing or not understood."""
    path = _path(session)
    if path is None:
        return SessionRecord()
    with suppress(Exception):  # the file is anybody's
        held = json.loads(files.content(path, LONGEST))
        folds, saved, rules = (int(held[name]) for name in ("folds", "saved", "rules"))
        return SessionRecord(folds, saved, rules, told=bool(held["told"]))
    return SessionRecord()


def keep(session: Any, record: SessionRecord) -> None:
    """Write down what is known of a session; one without a name has no file. Raises OSError."""
    path = _path(session)
    if path is not None:
        with files.written(path, mode=files.PRIVATE) as file:
            file.write(json.dumps(record._asdict()).encode())


def _path(session: Any) -> Path | None:
    if not isinstance(session, str) or not _NAMED.fullmatch(session):
        return None
    return Path(KEPT).expanduser() / f"{session}.json"


def status_line(shown: Mapping[str, Any]) -> str:
    """Return the line for what Claude Code says of a session: model, meter, folds, rules."""
    model, window = _table(shown.get("model")), _table(shown.get("context_window"))
    record = record_of(shown.get("session_id"))
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
    """Say how many rules stand."""
    return "1 rule held" if count == 1 else f"{count} rules held"


def _meter(window: Mapping[str, Any]) -> str:
    """Return how full the window is; before the first reply, and from older versions, nothing is known."""
    size, used = _number(window.get("context_window_size")), _number(window.get("total_input_tokens"))
    share = _number(window.get("used_percentage"))
    if share is None and size and used is not None:
        share = 100 * used / size
    if share is None:
        return ""
    filled = min(CELLS, max(0, round(share * CELLS / 100)))
    of = f" of {_short(size)}" if size else ""
    return f"{'█' * filled}{'░' * (CELLS - filled)} {share:.0f}%{of}"


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
