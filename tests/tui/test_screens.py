"""The main screens as they are seen, in two sizes and without colour; `FOLDLINE_DRAW=1` draws them anew."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest
from tests.tui.screen import open_chat, until

pytestmark = pytest.mark.slow

SCREENS = Path(__file__).parent / "screens"
SIZES = {"80x24": (80, 24), "200x50": (200, 50)}


def answers(asked):
    return f"Answer {asked.index}. " + "It is done as you said. " * 30


def seen(talk):
    """The screen without sizes: they depend on the length of the folder's path, and the meter with them."""
    words = re.sub(r"\d[\d,]{2,}", lambda found: "#" * len(found[0]), talk.text) + "\n"
    return re.sub(r"\d(?=\d*%)", "#", re.sub(r"[█░]{20}", "░" * 20, words))


async def check(talk, name):
    """Compare the screen, once all is drawn, with the file of that name."""
    file = SCREENS / f"{name}.txt"
    if os.environ.get("FOLDLINE_DRAW"):
        SCREENS.mkdir(exist_ok=True)
        await talk.pilot.pause(1)
        file.write_text(seen(talk), encoding="utf-8")
    drawn = file.read_text(encoding="utf-8")
    with contextlib.suppress(AssertionError):
        await until(talk.pilot, lambda: seen(talk) == drawn)
    assert seen(talk) == drawn


@pytest.mark.parametrize("size", SIZES)
async def test_meter_and_boundary(tmp_path, size):
    async with open_chat(tmp_path, answers, size=SIZES[size]) as talk:
        await talk.turns(8, "Turn {}. Never push to main.")
        await talk.say("/compact the rule")
        await check(talk, f"boundary-{size}")


@pytest.mark.parametrize("size", SIZES)
async def test_preview(tmp_path, size):
    async with open_chat(tmp_path, answers, size=SIZES[size]) as talk:
        await talk.turns(8, "Turn {}. Never push to main.")
        await talk.type("/preview")
        screen = await talk.opened("PreviewScreen")
        await until(talk.pilot, lambda: screen._infos)
        await check(talk, f"preview-{size}")


@pytest.mark.parametrize("size", SIZES)
async def test_tree(tmp_path, size):
    async with open_chat(tmp_path, answers, size=SIZES[size]) as talk:
        await talk.turns(3)
        await talk.say("/branch 2")
        await talk.say("Another way.")
        await talk.type("/tree")
        await talk.opened("Picker")
        await check(talk, f"tree-{size}")


@pytest.mark.parametrize("size", SIZES)
async def test_selector(tmp_path, size):
    async with open_chat(tmp_path, answers, size=SIZES[size]) as talk:
        await talk.type("/autocompact")
        await talk.opened("Picker")
        await check(talk, f"selector-{size}")


@pytest.mark.parametrize("theme", ["textual-light", "textual-dark", "ansi-dark"])
async def test_without_colour_and_in_light_and_dark_the_words_are_the_same(tmp_path, theme, monkeypatch):
    if theme == "ansi-dark":
        monkeypatch.setenv("NO_COLOR", "1")
        theme = "textual-dark"
    async with open_chat(tmp_path, answers, size=(80, 24)) as talk:
        talk.app.theme = theme
        await talk.type("/autocompact")
        await talk.opened("Picker")
        await check(talk, "selector-80x24")
