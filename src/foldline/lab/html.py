"""Panels as one HTML page, by plotly."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from foldline.lab.panels import Panel, PlotLine, colours, top_of

graphs: Any = import_module("plotly.graph_objects")
subplots: Any = import_module("plotly.subplots")

COLUMNS = 2
DOTTED = 80  # points of a line which are drawn as dots
HEIGHT = 400  # pixels of a row of panels


def write_html(panels: Sequence[Panel], title: str, target: Path, *, linked: bool = False) -> None:
    """Write panels as a page; a click in the legend hides a line in all panels.

    It holds plotly's script (about 5 MB), or loads it from plotly's own host with `linked`.
    """
    rows = -(-len(panels) // COLUMNS)
    figure = subplots.make_subplots(
        rows=rows, cols=COLUMNS, subplot_titles=[panel.title for panel in panels], vertical_spacing=0.3 / rows
    )
    known, shown = colours(panels), set[str]()
    for number, panel in enumerate(panels):
        row, column = number // COLUMNS + 1, number % COLUMNS + 1
        for place, line in enumerate(panel.lines):
            trace = _trace(panel, line, known[line.name], new=line.name not in shown, number=number)
            if panel.kind == "lines":  # the first ones wider, so that equal ones are seen beside each other
                trace.line.width = 1.6 + 0.7 * (len(panel.lines) - 1 - place)
            figure.add_trace(trace, row=row, col=column)
            shown.add(line.name)
        _axes(figure, panel, row, column)
    figure.update_layout(
        title={"text": title},
        template="plotly_white",
        height=HEIGHT * rows + 120,
        hovermode="closest",
        legend={"orientation": "h", "y": 1.0 + 60 / (HEIGHT * rows), "x": 0},
        margin={"l": 70, "r": 30, "t": 150, "b": 60},
    )
    target.write_text(
        figure.to_html(include_plotlyjs="cdn" if linked else True, full_html=True), encoding="utf-8"
    )


def _trace(panel: Panel, line: PlotLine, colour: str, *, new: bool, number: int) -> Any:
    """Return a line with its boundaries as larger marks, an area, or bars."""
    if panel.kind == "bars":
        return graphs.Bar(
            x=line.values[::-1],
            y=panel.x[::-1],
            orientation="h",
            marker={"color": colour},
            showlegend=False,
            hovertemplate="%{y}: %{x:,.0f} " + panel.unit + "<extra></extra>",
        )
    hover = f"{line.name}, {panel.x_title} %{{x}}: %{{y:,.2f}} {panel.unit}<extra></extra>"
    common = {"name": line.name, "legendgroup": line.name, "showlegend": new, "hovertemplate": hover}
    if panel.kind == "areas":
        return graphs.Scatter(
            x=panel.x,
            y=line.values,
            mode="lines",
            stackgroup=f"panel{number}",
            line={"color": colour, "width": 0.5},
            **common,
        )
    point = 5 if len(line.values) <= DOTTED else 0
    sizes = [11 if index in line.marks else point for index in range(len(line.values))]
    symbols = ["triangle-down" if index in line.marks else "circle" for index in range(len(line.values))]
    return graphs.Scatter(
        x=panel.x,
        y=line.values,
        mode="lines+markers",
        line={"color": colour},
        marker={"size": sizes, "symbol": symbols, "color": colour},
        **common,
    )


def _axes(figure: Any, panel: Panel, row: int, column: int) -> None:
    if panel.kind == "bars":
        figure.update_xaxes(title_text=panel.unit, row=row, col=column)
        figure.update_yaxes(automargin=True, row=row, col=column)
        return
    figure.update_xaxes(title_text=panel.x_title, type="category", nticks=20, row=row, col=column)
    figure.update_yaxes(
        title_text=panel.unit, range=[0, top_of(panel)], rangemode="tozero", row=row, col=column
    )
    if panel.limit is not None:
        figure.add_hline(
            y=panel.limit,
            line={"color": "#b91c1c", "dash": "dash", "width": 1},
            annotation_text="window",
            annotation_position="top left",
            row=row,
            col=column,
        )
