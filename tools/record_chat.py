"""Record `foldline chat` in tmux: its screens over time, as text in docs/results/recordings/.

Records a slow reply, a fold, an undo, and a model server that does not answer. Needs tmux.

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
INTERVAL = 0.25  # seconds between two captures of the screen
REPEAT = 4.0  # seconds after which a screen is kept though only its clock has changed
TIMEOUT = 120.0  # seconds
SPINNER = re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")
CLOCK = re.compile(r" · \d+ s")
TEXT = "It is done as you said. " * 20


class Screen:
    """`foldline chat` in a terminal of tmux; `frames` are its screens after each change, with the seconds."""

    def __init__(self, home: str, model: str) -> None:
        self.frames: list[str] = []
        self._started = self._last_time = time.monotonic()
        self._socket, self._last_screen = f"foldline-{os.getpid()}", ""
        program = str(Path(sys.executable).with_name("foldline"))
        words = [program, "chat", "--model", model, "--window", "60000", "--no-tools"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", SIZE[0], "-y", SIZE[1], "-c", home,
                  f"-eHOME={home}", "-eLANG=C.UTF-8", shlex.join(words))  # fmt: skip
        self.wait_until(lambda screen: "Ctrl-Q leaves" in screen)
        self._started, self.frames = time.monotonic(), []

    def tmux(self, *words: str) -> str:
        return subprocess.check_output(["tmux", "-L", self._socket, *words], text=True)

    def say(self, text: str, until: Callable[[str], bool]) -> None:
        self.tmux("send-keys", "-l", text, ";", "send-keys", "Enter")
        self.wait_until(until)

    def wait_until(self, condition: Callable[[str], bool], key: str = "") -> None:
        """Wait until a screen fulfils a condition, and press a key in the meantime."""
        end = time.monotonic() + TIMEOUT
        while not condition(screen := self.capture()):
            if time.monotonic() > end:
                raise TimeoutError(screen)
            self.tmux("send-keys", *filter(None, [key]))
            time.sleep(4 * INTERVAL if key else INTERVAL)

    def capture(self) -> str:
        """Return the screen, and keep it in `frames` if more than its clock has changed."""
        lines = [line.rstrip() for line in self.tmux("capture-pane", "-p").splitlines()]
        screen = "\n".join(line for line in lines if line and line[0] not in "╭╰" and line != f"│{' ' * 78}│")
        stable, now = CLOCK.sub("", SPINNER.sub("", screen)), time.monotonic()
        is_old = now - self._last_time > REPEAT
        if stable != self._last_screen or (screen and is_old and " s · Esc stops" in screen):
            self._last_screen, self._last_time = stable, now
            self.frames.append(f"── {now - self._started:.1f} s\n{screen}\n")
        return screen


def idle(*words: str) -> Callable[[str], bool]:
    return lambda screen: "· Esc stops" not in screen and all(word in screen for word in words)


def reply(request: Asked) -> Answer:
    slow = "slowly" in str(request.messages[-1]["content"])
    return Answer(text=f"{TEXT}\n\nThat is answer {request.index + 1}.", wait=10.0 if slow else 0.0)


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


def play_fold(screen: Screen) -> None:
    for turn in range(1, 5):
        screen.say(f"Step {turn}. Never push to main.", idle(f"answer {turn}."))
    screen.frames.clear()
    screen.say("/compact the rule", idle("Folded"))
    screen.wait_until(lambda text: "folded above" in text, "PageUp")


def play_undo(screen: Screen) -> None:
    play_fold(screen)
    screen.frames.clear()
    screen.say("/undo", idle("is undone"))
    screen.wait_until(lambda text: "undone: folded" in text, "PageUp")


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        sys.exit("nothing is recorded: tmux is not installed (apt install tmux)")
    for name, play in (
        ("slow-reply", lambda screen: screen.say("Tell me slowly.", idle("That is answer"))),
        ("fold", play_fold),
        ("undo", play_undo),
    ):
        with serve_in_thread(Scripted(reply, window=60_000)) as url:
            record(name, f"openai-compatible:scripted@{url}/v1", play)
    silent = "openai-compatible:scripted@http://127.0.0.1:9/v1"
    record("dead-server", silent, lambda screen: screen.say("Hello.", idle("is it running")))
