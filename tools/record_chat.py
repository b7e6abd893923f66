"""Record `foldline chat` in tmux: what its screen shows over time, as text in docs/results/recordings/.

A slow reply, a fold, an undo and a server that is not there; without tmux nothing is recorded, and it says so.

Usage: python -m tools.record_chat
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from foldline.testing import Answer, Asked, Scripted, serve_in_thread

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "results" / "recordings"
SIZE = ("80", "16")
EVERY = 0.25  # seconds between two looks at the screen
STILL = 4.0  # seconds after which a screen is shown again of which the seconds alone are new
PATIENCE = 120.0  # seconds for what is waited for
SPINS = re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")
SECONDS = re.compile(r" · \d+ s")
SAID = "It is done as you said. " * 20


class Screen:
    """A terminal in tmux with `foldline chat` in it; `frames` are the moments at which it looked different."""

    def __init__(self, home: str, model: str) -> None:
        self.frames: list[str] = []
        self._begun = self._at = time.monotonic()
        self._socket, self._last = f"foldline-{os.getpid()}", ""
        program = str(Path(sys.executable).with_name("foldline"))
        words = [program, "chat", "--model", model, "--window", "60000", "--no-tools"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", SIZE[0], "-y", SIZE[1], "-c", home,
                  f"-eHOME={home}", "-eLANG=C.UTF-8", shlex.join(words))  # fmt: skip
        self.until(lambda shown: "Ctrl-Q leaves" in shown)
        self._begun, self.frames = time.monotonic(), []

    def tmux(self, *words: str) -> str:
        return subprocess.check_output(["tmux", "-L", self._socket, *words], text=True)

    def say(self, text: str, until: Callable[[str], bool]) -> None:
        self.tmux("send-keys", "-l", text, ";", "send-keys", "Enter")
        self.until(until)

    def until(self, seen: Callable[[str], bool], key: str = "") -> None:
        end = time.monotonic() + PATIENCE
        while not seen(shown := self.look()):
            if time.monotonic() > end:
                raise TimeoutError(shown)
            self.tmux("send-keys", *filter(None, [key]))
            time.sleep(4 * EVERY if key else EVERY)

    def look(self) -> str:
        """Return the screen, and keep it where more than the seconds is new."""
        lines = [line.rstrip() for line in self.tmux("capture-pane", "-p").splitlines()]
        shown = "\n".join(line for line in lines if line and line[0] not in "╭╰" and line != f"│{' ' * 78}│")
        still, now = SECONDS.sub("", SPINS.sub("", shown)), time.monotonic()
        if still != self._last or (shown and now - self._at > STILL and " s · Esc stops" in shown):
            self._last, self._at = still, now
            self.frames.append(f"── {now - self._begun:.1f} s\n{shown}\n")
        return shown


def idle(*words: str) -> Callable[[str], bool]:
    return lambda shown: "· Esc stops" not in shown and all(word in shown for word in words)


def reply(asked: Asked) -> Answer:
    slow = "slowly" in str(asked.messages[-1]["content"])
    return Answer(text=f"{SAID}\n\nThat is answer {asked.index + 1}.", wait=10.0 if slow else 0.0)


def record(name: str, model: str, play: Callable[[Screen], None]) -> None:
    with tempfile.TemporaryDirectory() as home:
        screen = Screen(home, model)
        try:
            play(screen)
        finally:
            screen.tmux("kill-server")
    text = "\n".join(screen.frames)
    (FOLDER / f"chat-{name}.txt").write_text(re.sub(r"127\.0\.0\.1:\d{2,}", "127.0.0.1:8080", text), "utf-8")
    print(f"{name}: {len(screen.frames)} frames, {text.count(chr(10))} lines")


def folded(screen: Screen) -> None:
    for turn in range(1, 5):
        screen.say(f"Step {turn}. Never push to main.", idle(f"answer {turn}."))
    screen.frames.clear()
    screen.say("/compact the rule", idle("Folded"))
    screen.until(lambda shown: "folded above" in shown, "PageUp")


def undone(screen: Screen) -> None:
    folded(screen)
    screen.frames.clear()
    screen.say("/undo", idle("is undone"))
    screen.until(lambda shown: "undone: folded" in shown, "PageUp")


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        sys.exit("nothing is recorded: tmux is not installed (apt install tmux)")
    for name, play in (
        ("slow-reply", lambda screen: screen.say("Tell me slowly.", idle("That is answer"))),
        ("fold", folded),
        ("undo", undone),
    ):
        with serve_in_thread(Scripted(reply, window=60_000)) as url:
            record(name, f"openai-compatible:scripted@{url}/v1", play)
    silent = "openai-compatible:scripted@http://127.0.0.1:9/v1"
    record("dead-server", silent, lambda screen: screen.say("Hello.", idle("is it running")))
