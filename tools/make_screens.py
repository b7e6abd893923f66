"""Draw docs/chat*.svg: screens of `foldline chat --demo` for docs/chat.md.

Usage: python -m tools.make_screens
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

from foldline.agent import demo
from foldline.agent.options import HostOptions
from foldline.tui.app import ChatApp

DOCS = Path(__file__).resolve().parent.parent / "docs"
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # removed: a page must not download fonts
SIZE = (96, 30)
PROMPTS = (
    "Look at the loans. Never change the limits.",
    "Now the holds.",
    "And the fines.",
    "And the members, please.",
    "And the shelves.",
    "The notices, too.",
)


async def main() -> None:
    """Run the demonstration and draw its screens."""
    demo.SPEED = 0.0
    with tempfile.TemporaryDirectory() as home:
        app = ChatApp(HostOptions(home=Path(home), allow=("*",)), demo=True)
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: app.talk is not None)
            for text in PROMPTS:
                await say(app, pilot, text)
            await send(app, pilot, "/preview the limits")
            await until(pilot, lambda: bool(getattr(app.screen, "_infos", ())))
            draw(app, "chat-preview")
            await pilot.press("ctrl+s")
            await until(pilot, lambda: len(app.screen_stack) == 1 and app.talk.quiet)
            await say(app, pilot, "What did I say about the limits?")
            draw(app, "chat")
            app.theme = "textual-light"
            await send(app, pilot, "/branch")
            await until(pilot, lambda: len(app.screen_stack) > 1)
            draw(app, "chat-branch")


async def send(app: ChatApp, pilot: Any, text: str) -> None:
    app.editor.put(text)
    await pilot.press("enter")
    await pilot.pause(0.1)


async def say(app: ChatApp, pilot: Any, text: str) -> None:
    await send(app, pilot, text)
    await until(pilot, lambda: app.talk is not None and app.talk.quiet)


async def until(pilot: Any, condition: Any) -> None:
    for _ in range(500):
        if condition():
            await pilot.pause(0.2)
            return
        await pilot.pause(0.02)
    raise TimeoutError


def draw(app: ChatApp, name: str) -> None:
    picture = FONT.sub("", app.export_screenshot(title="foldline chat"))
    (DOCS / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
