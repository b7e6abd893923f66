"""The app under its pilot, and its screen as text."""

from __future__ import annotations

import html
import re
from contextlib import asynccontextmanager

from foldline.agent.options import HostOptions
from foldline.testing import Scripted
from foldline.tui.app import ChatApp

TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', re.DOTALL)
CELL = 12.2  # the width of a character in Textual's pictures


def shown(app):
    """The screen as lines of text."""
    rows = {}
    for x, y, text in TEXT.findall(app.export_screenshot()):
        rows.setdefault(round(float(y)), []).append(
            (round(float(x) / CELL), html.unescape(text).replace("\xa0", " "))
        )
    lines = []
    for _, pieces in sorted(rows.items()):
        line = ""
        for column, text in sorted(pieces):
            line = line.ljust(column) + text
        lines.append(line.rstrip())
    return "\n".join(lines)


@asynccontextmanager
async def open_chat(folder, answers=(), *, size=(100, 40), window=60_000, **options):
    """Open the app on a scripted model; `chat.say(text)` types and waits for the end."""
    for name in ("work", "home"):
        (folder / name).mkdir(exist_ok=True)
    model = answers if isinstance(answers, Scripted) else Scripted(answers, window=window)
    host_options = HostOptions(
        folder=folder / "work",
        home=folder / "home",
        window=model.window,
        store=f"sqlite:///{folder / 'sessions.db'}",
        **{"allow": ("*",), "provider": model, **options},
    )
    app = ChatApp(host_options)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.talk is not None and app.transcript.children)
        yield ChatUser(app, pilot, model)


async def until(pilot, condition):
    """Wait until something holds."""
    for _ in range(3_000):  # a minute at least
        if condition():
            await pilot.pause()
            return
        await pilot.pause(0.02)
    raise AssertionError(f"the condition never held: {shown(pilot.app)}")


class ChatUser:
    """A user at the screen."""

    def __init__(self, app, pilot, model):
        self.app, self.pilot, self.model = app, pilot, model
        self.sent = []
        send = app.talk.send
        app.talk.send = lambda text: (self.sent.append(text), send(text))

    @property
    def text(self):
        return shown(self.app)

    async def type(self, text):
        """Put a text into the editor and send it."""
        before = len(self.sent)
        self.app.editor.put(text)
        await self.pilot.press("enter")
        await until(self.pilot, lambda: len(self.sent) > before)

    async def say(self, text):
        """Send a text, and wait until the turn ends."""
        await self.type(text)
        await until(self.pilot, self.quiet)

    async def turns(self, count, text="Turn {}."):
        """Say a text several times, each with its number."""
        for turn in range(count):
            await self.say(text.format(turn))

    async def sees(self, *words):
        """Wait until these words are on the screen: what a key or a message does is drawn some time later."""
        await until(self.pilot, lambda: all(word in self.text for word in words))

    async def written(self, text):
        """Wait until this is what stands in the editor."""
        await until(self.pilot, lambda: self.app.editor.text == text)

    @property
    def host(self):
        return self.app.talk.host

    def quiet(self):
        return self.app.talk.quiet

    async def opened(self, kind):
        """Wait for a screen of that class, until it takes keys."""
        await until(self.pilot, lambda: type(self.app.screen).__name__ == kind and self.app.screen.focused)
        return self.app.screen

    def asked(self):
        """Whether a screen over the conversation takes keys."""
        return len(self.app.screen_stack) > 1 and self.app.screen.focused is not None

    async def closed(self):
        """Wait until the conversation is the screen again, and nothing goes on."""
        await until(self.pilot, lambda: len(self.app.screen_stack) == 1 and self.quiet())
