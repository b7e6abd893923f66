"""Drawings: replays over the turns of a session, and where a session's tokens are. Needs the extra `plots`.

Interactive, self-contained HTML by plotly; PNG by matplotlib. Both draw the same panels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from foldline.errors import FoldlineError, InputError
from foldline.lab.panels import Panel, replay_panels
from foldline.lab.report import SessionReport

KINDS = (".html", ".png")
MISSING = "drawing needs the extra `plots`: pip install 'foldline[plots]'"


def draw(report: SessionReport, target: Path) -> None:
    """Draw one session under all its policies; the suffix of `target` chooses the form."""
    draw_panels(
        replay_panels(report), f"{Path(report.session).name}, window {report.window:,} tokens", target
    )


def check_targets(targets: Sequence[Path]) -> None:
    """Raise InputError for a file whose suffix is not in `KINDS`, before any long work begins."""
    for target in targets:
        if target.suffix not in KINDS:
            raise InputError(f"{target}: a drawing is written as {' or '.join(KINDS)}")


def draw_panels(panels: Sequence[Panel], title: str, target: Path) -> None:
    """Write panels to a file atomically.

    Raises InputError for a suffix not in `KINDS`, FoldlineError if the extra is not installed or
    the file cannot be written.
    """
    check_targets([target])
    write = _writer(target.suffix)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".plot-") as folder:
            part = Path(folder) / f"plot{target.suffix}"
            write(panels, title, part)
            part.replace(target)
    except OSError as error:
        raise FoldlineError(f"{target}: cannot be written: {error.strerror or error}") from error


def _writer(suffix: str) -> Callable[[Sequence[Panel], str, Path], None]:
    try:
        if suffix == ".html":
            from foldline.lab.html import write_html  # noqa: PLC0415 - an optional extra

            return write_html
        from foldline.lab.png import write_png  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise FoldlineError(MISSING) from error
    return write_png
