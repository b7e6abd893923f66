"""Drawings: replays over the turns of a session, and where a session's tokens are. Needs the extra `plots`.

PNG and SVG by matplotlib; an HTML page holds the SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from foldline.errors import FoldlineError, InputError
from foldline.files import written
from foldline.lab.panels import Panel, replay_panels
from foldline.lab.report import SessionReport

KINDS = (".html", ".png", ".svg")
PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>svg {{ width: 100%; height: auto }}</style></head>
<body>
{drawing}
</body>
</html>
"""


def draw(report: SessionReport, target: Path) -> None:
    """Draw one session under all its policies; the suffix of `target` chooses the form."""
    title = f"{Path(report.session).name}, window {report.window:,} tokens"
    draw_panels(replay_panels(report), title, target)


def check_targets(targets: Sequence[Path]) -> None:
    """Raise InputError for a file whose suffix is not in `KINDS`, before any long work begins."""
    for target in targets:
        if target.suffix not in KINDS:
            raise InputError(f"{target}: a drawing is written as {', '.join(KINDS[:-1])} or {KINDS[-1]}")


def draw_panels(panels: Sequence[Panel], title: str, target: Path) -> None:
    """Write panels to a file atomically.

    Raises InputError for a suffix not in `KINDS`, FoldlineError if the extra is not installed or
    the file cannot be written.
    """
    check_targets([target])
    try:
        from foldline.lab.picture import picture  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise FoldlineError("drawing needs the extra `plots`: pip install 'foldline[plots]'") from error
    page = target.suffix == ".html"
    raw = picture(panels, title, "svg" if page else target.suffix[1:])
    if page:
        drawing = raw.decode()
        raw = PAGE.format(title=escape(title), drawing=drawing[drawing.index("<svg") :]).encode()
    try:
        with written(target) as file:
            file.write(raw)
    except OSError as error:
        raise FoldlineError(f"{target}: cannot be written: {error.strerror or error}") from error
