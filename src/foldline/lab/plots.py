"""Drawings: replays over the turns of a session, and where a session's tokens are. Needs the extra `plots`.

Interactive HTML by plotly; PNG and SVG by matplotlib. All draw the same panels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from foldline.errors import FoldlineError, InputError
from foldline.lab.panels import Panel, replay_panels
from foldline.lab.report import SessionReport

KINDS = (".html", ".png", ".svg")
MISSING = "drawing needs the extra `plots`: pip install 'foldline[plots]'"


def draw(report: SessionReport, target: Path, *, linked: bool = False) -> None:
    """Draw one session under all its policies; the suffix of `target` chooses the form."""
    title = f"{Path(report.session).name}, window {report.window:,} tokens"
    draw_panels(replay_panels(report), title, target, linked=linked)


def check_targets(targets: Sequence[Path]) -> None:
    """Raise InputError for a file whose suffix is not in `KINDS`, before any long work begins."""
    for target in targets:
        if target.suffix not in KINDS:
            raise InputError(f"{target}: a drawing is written as {', '.join(KINDS[:-1])} or {KINDS[-1]}")


def draw_panels(panels: Sequence[Panel], title: str, target: Path, *, linked: bool = False) -> None:
    """Write panels to a file atomically; with `linked`, HTML loads its script from the network.

    Raises InputError for a suffix not in `KINDS`, FoldlineError if the extra is not installed or
    the file cannot be written.
    """
    check_targets([target])
    write = _writer(target.suffix, linked=linked)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".plot-") as folder:
            part = Path(folder) / f"plot{target.suffix}"
            write(panels, title, part)
            part.replace(target)
    except OSError as error:
        raise FoldlineError(f"{target}: cannot be written: {error.strerror or error}") from error


def _writer(suffix: str, *, linked: bool) -> Callable[[Sequence[Panel], str, Path], None]:
    try:
        if suffix == ".html":
            from foldline.lab.html import write_html  # noqa: PLC0415 - an optional extra

            return partial(write_html, linked=linked)
        from foldline.lab.picture import write_picture  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise FoldlineError(MISSING) from error
    return write_picture
