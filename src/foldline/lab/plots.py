"""Drawings of replays and of a session's composition: PNG, SVG, or SVG in an HTML page.

They need matplotlib: the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from foldline.errors import FoldlineError, InputError
from foldline.files import written
from foldline.lab.panels import Panel, colours, replay_panels, top_of
from foldline.lab.report import SessionReport

COLUMNS = 2
WIDTH, HEIGHT, DPI = 7.4, 4.2, 110  # inches of a panel, dots an inch
TICKS = 12
LEGEND = 6  # names in one line of a legend
LONGEST = 34  # characters of a bar's name
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
    """Draw one session under all its policies; the suffix of `target` selects the format."""
    title = f"{Path(report.session).name}, window {report.window:,} tokens"
    draw_panels(replay_panels(report), title, target)


def check_targets(targets: Sequence[Path]) -> None:
    """Raise InputError for a file whose suffix is not in `KINDS`; call this before any long work."""
    for target in targets:
        if target.suffix not in KINDS:
            raise InputError(f"{target}: a drawing must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}")


def draw_panels(panels: Sequence[Panel], title: str, target: Path) -> None:
    """Write panels to a file atomically.

    Raises InputError for a suffix not in `KINDS`, FoldlineError if the extra is not installed or
    the file cannot be written.
    """
    check_targets([target])
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


def picture(panels: Sequence[Panel], title: str, form: str) -> bytes:
    """Return panels as a picture in the format `png` or `svg`; no display is needed."""
    try:
        matplotlib: Any = import_module("matplotlib")
        figures: Any = import_module("matplotlib.figure")
    except ImportError as error:
        raise FoldlineError("drawing needs the extra `plots`: pip install 'foldline[plots]'") from error
    rows = -(-len(panels) // COLUMNS)
    figure = figures.Figure(figsize=(WIDTH * COLUMNS, HEIGHT * rows + 0.8), layout="constrained")
    figure.suptitle(title, fontsize=13)
    axes = figure.subplots(rows, COLUMNS, squeeze=False).flatten()
    palette = colours(panels)
    for panel, axis in zip(panels, axes, strict=False):
        axis.set_title(panel.title, fontsize=11)
        if panel.kind == "bars":
            _bars(axis, panel, palette)
        else:
            _over_turns(axis, panel, palette)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "foldline"}):
        raw = BytesIO()
        figure.savefig(raw, format=form, dpi=DPI, metadata={"Date": None} if form == "svg" else None)
    return raw.getvalue()


def _bars(axis: Any, panel: Panel, palette: dict[str, str]) -> None:
    line = panel.lines[0]
    names = [name if len(name) <= LONGEST else _shorten(name) for name in panel.x]
    places = range(len(names))
    bars = axis.barh(places, line.values, color=palette[line.name])
    axis.bar_label(bars, [_short(float(f"{value:.3g}")) for value in line.values], padding=3, fontsize=8)
    axis.margins(x=0.1)
    axis.set_yticks(places, names, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel(panel.unit)
    axis.xaxis.set_major_formatter(_short)


def _over_turns(axis: Any, panel: Panel, palette: dict[str, str]) -> None:
    places = list(range(len(panel.x)))
    if panel.kind == "areas":
        names = [line.name for line in panel.lines]
        values = [line.values for line in panel.lines]
        axis.stackplot(places, *values, labels=names, colors=[palette[name] for name in names])
    else:
        _lines(axis, panel, palette)
    if panel.limit is not None:
        axis.axhline(panel.limit, color="#b91c1c", linestyle="--", linewidth=1, label="window")
    step = max(1, -(-len(places) // TICKS))
    axis.set_xticks(places[::step], panel.x[::step])
    axis.set_xlabel(panel.x_title)
    axis.set_ylabel(panel.unit)
    axis.set_ylim(0, top_of(panel))
    axis.yaxis.set_major_formatter(_short)
    axis.set_axisbelow(True)
    axis.grid(visible=True, axis="y", color="#e5e7eb")
    names = axis.get_legend_handles_labels()[1]
    if len(names) > 1:
        columns = min(len(names), LEGEND)
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=columns, frameon=False)


def _lines(axis: Any, panel: Panel, palette: dict[str, str]) -> None:
    """Draw lines with their marks; earlier lines are wider, so that equal lines are all visible."""
    for offset, line in enumerate(reversed(panel.lines)):
        place = len(panel.lines) - offset
        axis.plot(line.values, color=palette[line.name], linewidth=1.6 + 0.7 * offset, zorder=2 + place / 100)
        values = [line.values[index] for index in line.marks]
        axis.scatter(line.marks, values, marker="v", s=45, color=palette[line.name], zorder=3)
    for line in panel.lines:
        axis.plot([], [], color=palette[line.name], label=line.name, linewidth=2)
    if any(line.marks for line in panel.lines):
        axis.scatter([], [], marker="v", s=45, color="#334155", label="a boundary")


def _shorten(name: str) -> str:
    """Return the end of a long path, from the start of a folder if possible."""
    short = name[1 - LONGEST :]
    folder = short.find("/")
    return "…" + (short[folder:] if 0 <= folder < LONGEST // 2 else short)


def _short(value: float, _place: int = 0) -> str:
    """Return a tick's number: 20k, 1.5M, 0.25."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1_000:g}k" if value >= 1_000 else f"{value:g}"
