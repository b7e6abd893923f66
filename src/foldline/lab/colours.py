"""Line colours that colour-blind people can tell apart too (Okabe and Ito, 2008, and greys)."""

from __future__ import annotations

from collections.abc import Iterable

from foldline.lab.panels import Panel

GREY = "#8a8f98"  # for `none`, the policy to compare with
_PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7a5cff",
    "#a0522d",
    "#b5a700",
    "#334155",
    "#e11d48",
    "#64748b",
)
_OF_CATEGORY = {  # those of the web page, too
    "system prompt and tools": GREY,
    "system": GREY,
    "checkpoint": "#cc79a7",
    "user": "#0072b2",
    "assistant": "#009e73",
    "tool results": "#e69f00",
    "unanswered": "#a0522d",
}


def colours(panels: Iterable[Panel]) -> dict[str, str]:
    """Return a colour for every line name, the same in all panels; a category has its own in all drawings."""
    known = {"none": GREY, **_OF_CATEGORY}
    names = dict.fromkeys(line.name for panel in panels for line in panel.lines if line.name not in known)
    found = {name: _PALETTE[index % len(_PALETTE)] for index, name in enumerate(names)}
    return {**found, **known}
