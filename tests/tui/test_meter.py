"""The meter: used of usable, its colours, price, model, and the words for auto-compaction switched off."""

from __future__ import annotations

import pytest

from foldline import Window
from foldline.session.view import Stats
from foldline.tui.meter import meter_text


def stats(used, usable=100_000):
    sizes = {"tool results": used * 3 // 4, "user": used // 4}
    return Stats(10, 8, 1, 0.8, used, used, usable, Window(context=128_000), sizes)


def line(used, **more):
    given = {"model": "openai:gpt-5.2", "usd": 0.0123, "autocompact": True, "width": 120}
    return meter_text(stats(used), **{**given, **more})


@pytest.mark.parametrize(
    ("used", "style"),
    [
        (69_000, "green"),
        (70_000, "yellow"),
        (84_999, "yellow"),
        (85_000, "red"),
        (95_000, "bold red"),
        (140_000, "bold red"),
    ],
)
def test_the_colour_follows_the_share(used, style):
    assert str(line(used).spans[0].style) == style


def test_it_says_all_in_one_line():
    text = line(42_000).plain
    assert "42,000 / 100,000 (42%)" in text
    assert "openai:gpt-5.2" in text
    assert "$0.0123" in text
    assert "tool results 75%" in text
    assert "auto-compact off" not in text
    assert "auto-compact off" in line(42_000, autocompact=False).plain


def test_categories_need_width_and_the_bar_never_overflows():
    assert "tool results" not in line(42_000, width=80).plain
    assert line(990_000).plain.startswith("█" * 20 + " ")
