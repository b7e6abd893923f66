"""The editor: several lines, a history, and completion of commands and files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from os.path import commonprefix
from pathlib import Path

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from foldline.files import append_private

NEWLINE = frozenset(("ctrl+j", "shift+enter", "alt+enter"))
WORD = re.compile(r"(?:^|(?<=\s))(@\"[^\"]*|[@/][^\s]*)$")
REMEMBERED = 500  # prompts


class History:
    """Earlier prompts, stored in a file, oldest first."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines = self._read()
        self._position = len(self._lines)
        self._draft = ""  # typed before the user went back

    def _read(self) -> list[str]:
        try:
            rows = self._file.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return []
        lines: list[str] = []
        for row in rows[-REMEMBERED:]:
            with suppress(ValueError):  # only a broken row is lost
                lines += [text] if isinstance(text := json.loads(row), str) else []
        return lines

    def add(self, text: str) -> None:
        """Store a prompt; ignores a file that cannot be written."""
        if not self._lines or self._lines[-1] != text:
            self._lines.append(text)
            try:
                with append_private(self._file) as file:
                    file.write(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
                self._file.chmod(0o600)
            except OSError:
                pass
        self._position = len(self._lines)

    def older(self, shown: str) -> str | None:
        """Return the prompt before the one shown, None at the first; `shown` is stored as the draft."""
        if self._position == 0:
            return None
        if self._position == len(self._lines):
            self._draft = shown
        self._position -= 1
        return self._lines[self._position]

    def newer(self) -> str | None:
        """Return the prompt after the one shown, then the draft, then None."""
        if self._position >= len(self._lines):
            return None
        self._position += 1
        return self._lines[self._position] if self._position < len(self._lines) else self._draft


class Editor(TextArea):
    """The editor. Enter sends, Ctrl-J breaks the line, Tab completes, up and down walk the history."""

    DEFAULT_CSS = """
    Editor { height: auto; max-height: 10; min-height: 3; border: round $accent; }
    Editor:focus { border: round $accent; }
    """

    class Sent(Message):
        """The user sent a text."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Typing(Message):
        """The text changed; `candidates` complete the command or reference at the cursor."""

        def __init__(self, candidates: Sequence[str]) -> None:
            super().__init__()
            self.candidates = candidates

    def __init__(self, history: History, complete: Callable[[str, bool], Sequence[str]]) -> None:
        super().__init__(show_line_numbers=False, soft_wrap=True, tab_behavior="focus")
        self._history = history
        self._complete = complete

    async def _on_key(self, event: events.Key) -> None:
        if event.key in NEWLINE:
            self._take(event)
            self.insert("\n")
        elif event.key == "enter":
            self._take(event)
            if text := self.text.strip():
                self._history.add(text)
                self.clear()
                self.post_message(self.Sent(text))
        elif event.key == "tab":
            self._take(event)
            self._complete_word()
        elif event.key == "up" and self.cursor_location[0] == 0:
            self._walk(event, self._history.older(self.text))
        elif event.key == "down" and self.cursor_location[0] == self.document.line_count - 1:
            self._walk(event, self._history.newer())
        else:
            await super()._on_key(event)

    def _take(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()

    def _walk(self, event: events.Key, text: str | None) -> None:
        self._take(event)
        if text is not None:
            self.put(text)

    def put(self, text: str) -> None:
        """Replace the text, and move the cursor to its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def _word(self) -> tuple[str, bool]:
        """Return the word before the cursor if it starts with / or @, and whether it is the first."""
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        match = WORD.search(before)
        return (match.group(1), row == 0 and match.start(1) == 0) if match else ("", False)

    def candidates(self) -> Sequence[str]:
        """Return completions of the word before the cursor."""
        word, first = self._word()
        return self._complete(word, first) if word else ()

    def _complete_word(self) -> None:
        word, _ = self._word()
        candidates = self.candidates()
        if not candidates:
            return
        row, column = self.cursor_location
        prefix = commonprefix(candidates)  # noqa: RUF071 - by characters, not by path parts
        completed = prefix if len(prefix) > len(word) else candidates[0]
        if len(candidates) == 1:
            completed = f"{candidates[0]} "
        self.replace(completed, (row, column - len(word)), (row, column))

    def on_text_area_changed(self) -> None:
        """Post the completions of the word at the cursor."""
        self.post_message(self.Typing(self.candidates()))
