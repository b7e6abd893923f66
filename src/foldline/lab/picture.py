"""Panels as a picture, PNG or SVG, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

from foldline.lab.panels import Panel, colours, top_of

matplotlib: Any = import_module("matplotlib")
figures: Any = import_module("matplotlib.figure")
tickers: Any = import_module("matplotlib.ticker")

COLUMNS = 2
WIDTH, HEIGHT, DPI = 7.4, 4.2, 110  # inches of a panel, dots an inch
TICKS = 12
LEGEND = 6  # names in one line of a legend
LONGEST = 34  # characters of a bar's name


def picture(panels: Sequence[Panel], title: str, form: str) -> bytes:
    """Return panels as a picture, `png` or `svg`; no display is needed."""
    rows = -(-len(panels) // COLUMNS)
    figure = figures.Figure(figsize=(WIDTH * COLUMNS, HEIGHT * rows + 0.8), layout="constrained")
    figure.suptitle(title, fontsize=13)
    axes = figure.subplots(rows, COLUMNS, squeeze=False).flatten()
    known = colours(panels)
    for panel, axis in zip(panels, axes, strict=False):
        axis.set_title(panel.title, fontsize=11)
        if panel.kind == "bars":
            _bars(axis, panel, known)
        else:
            _over_turns(axis, panel, known)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "foldline"}):
        raw = BytesIO()
        figure.savefig(raw, format=form, dpi=DPI, metadata={"Date": None} if form == "svg" else None)
    return raw.getvalue()


def _bars(axis: Any, panel: Panel, known: dict[str, str]) -> None:
    line = panel.lines[0]
    names = [name if len(name) <= LONGEST else _end(name) for name in panel.x]
    places = range(len(names))
    bars = axis.barh(places, line.values, color=known[line.name])
    axis.bar_label(bars, [_short(float(f"{value:.3g}")) for value in line.values], padding=3, fontsize=8)
    axis.margins(x=0.1)
    axis.set_yticks(places, names, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel(panel.unit)
    axis.xaxis.set_major_formatter(tickers.FuncFormatter(_short))


def _over_turns(axis: Any, panel: Panel, known: dict[str, str]) -> None:
    places = list(range(len(panel.x)))
    if panel.kind == "areas":
        names = [line.name for line in panel.lines]
        values = [line.values for line in panel.lines]
        axis.stackplot(places, *values, labels=names, colors=[known[name] for name in names])
    else:
        _lines(axis, panel, known)
    if panel.limit is not None:
        axis.axhline(panel.limit, color="#b91c1c", linestyle="--", linewidth=1, label="window")
    step = max(1, -(-len(places) // TICKS))
    axis.set_xticks(places[::step], panel.x[::step])
    axis.set_xlabel(panel.x_title)
    axis.set_ylabel(panel.unit)
    axis.set_ylim(0, top_of(panel))
    axis.yaxis.set_major_formatter(tickers.FuncFormatter(_short))
    axis.set_axisbelow(True)
    axis.grid(visible=True, axis="y", color="#e5e7eb")
    names = axis.get_legend_handles_labels()[1]
    if len(names) > 1:
        columns = min(len(names), LEGEND)
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=columns, frameon=False)


def _lines(axis: Any, panel: Panel, known: dict[str, str]) -> None:
    """Draw lines, the first ones wider, so that equal ones are seen beside each other; and their marks."""
    for behind, line in enumerate(reversed(panel.lines)):
        place = len(panel.lines) - behind
        axis.plot(line.values, color=known[line.name], linewidth=1.6 + 0.7 * behind, zorder=2 + place / 100)
        made = [line.values[index] for index in line.marks]
        axis.scatter(line.marks, made, marker="v", s=45, color=known[line.name], zorder=3)
    for line in panel.lines:
        axis.plot([], [], color=known[line.name], label=line.name, linewidth=2)
    if any(line.marks for line in panel.lines):
        axis.scatter([], [], marker="v", s=45, color="#334155", label="a boundary")


def _end(name: str) -> str:
    """Return the end of a long path, from the beginning of a folder on where there is one."""
    short = name[1 - LONGEST :]
    folder = short.find("/")
    return "…" + (short[folder:] if 0 <= folder < LONGEST // 2 else short)


def _short(value: float, _place: int = 0) -> str:
    """Return a tick's number: 20k, 1.5M, 0.25."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1_000:g}k" if value >= 1_000 else f"{value:g}"
