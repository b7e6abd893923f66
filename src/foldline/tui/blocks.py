"""The widgets of the transcript: prompts, replies, tool calls, boundaries, notes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.syntax import Syntax
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Collapsible, Markdown, Static
from textual.widgets.markdown import MarkdownStream

from foldline.core.compact.receipt import token_change
from foldline.core.log.entries import EXCLUDED, Receipt
from foldline.terminal import clean

LONGEST = 20_000  # characters of a tool's answer that are shown; the log has all of it
TITLE = 100  # characters of a call's arguments in its title
DEGRADES = 3  # compactions after which the marker warns about quality


class Block(Vertical):
    """A part of the transcript that belongs to an entry of the log; dimmed when that is folded."""

    DEFAULT_CSS = """
    Block { height: auto; margin: 0 0 1 0; }
    Block.folded { opacity: 55%; }
    """

    def __init__(self, entry: str = "") -> None:
        super().__init__()
        self.entry = entry


class PromptBlock(Block):
    """A prompt of the user."""

    DEFAULT_CSS = """
    PromptBlock { border-left: thick $accent; padding: 0 1; background: $boost; }
    """

    def __init__(self, text: str, entry: str = "") -> None:
        super().__init__(entry)
        self.text = text

    def compose(self) -> ComposeResult:
        """Show the text as it was typed."""
        yield Static(Text(clean(self.text)))


class ReplyBlock(Block):
    """A reply of the model, as Markdown; it grows while the reply streams in."""

    DEFAULT_CSS = """
    ReplyBlock { padding: 0 1; margin: 0; }
    ReplyBlock Markdown { margin: 0; padding: 0; }
    ReplyBlock .thinking {
        color: $text-muted; text-style: italic; text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self, text: str = "", entry: str = "") -> None:
        super().__init__(entry)
        self.text = text
        self.thinking = ""
        self._markdown = Markdown(clean(text), open_links=False)
        self._thought = Static(classes="thinking")
        self._stream: MarkdownStream | None = None

    def compose(self) -> ComposeResult:
        """Show thinking above the reply."""
        yield self._thought
        yield self._markdown

    def on_mount(self) -> None:
        """Hide the line for thinking until there is any."""
        self._thought.display = False

    async def write(self, piece: str) -> None:
        """Append a piece of the text."""
        self.text += piece
        if self._stream is None:
            self._stream = Markdown.get_stream(self._markdown)
        await self._stream.write(clean(piece))

    def think(self, piece: str) -> None:
        """Append a piece of the thinking, and show its newest line."""
        self.thinking += piece
        lines = self.thinking.strip().splitlines()
        self._thought.display = bool(lines)
        self._thought.update(Text(clean(lines[-1]) if lines else ""))

    async def finish(self, text: str) -> None:
        """Show the complete text, which may differ from the streamed pieces."""
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None
        self._thought.display = False
        if text != self.text:
            self.text = text
            await self._markdown.update(clean(text))


class CallBlock(Block):
    """A tool call, collapsed to its title until it is opened."""

    DEFAULT_CSS = """
    CallBlock { margin: 0 0 0 1; }
    CallBlock Collapsible { border: none; padding: 0; background: transparent; }
    CallBlock.failed CollapsibleTitle { color: $error; }
    """

    def __init__(self, tool: str, arguments: Mapping[str, Any], entry: str = "") -> None:
        super().__init__(entry)
        self.tool = tool
        self.arguments = arguments
        self._waits = True  # not `_running`, which Textual sets when the block is shown
        self._body = Static()
        self._fold = Collapsible(self._body, title=f"{self._title()} …", collapsed=True)

    def compose(self) -> ComposeResult:
        """Show only the title."""
        yield self._fold

    def show_answer(self, text: str, *, failed: bool) -> None:
        """Show the answer of the tool."""
        self._waits = False
        self.set_class(failed, "failed")
        lines = text.count("\n") + 1
        self._fold.title = f"{self._title()}  {'failed' if failed else f'{lines} lines'}"
        self._body.update(self._answer(text))

    def stop(self) -> None:
        """Mark it as stopped, unless it has an answer."""
        if self._waits:
            self.show_answer("Stopped by the user.", failed=True)
            self._fold.title = f"{self._title()}  stopped"

    def _answer(self, text: str) -> Syntax | Text:
        cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters"
        if self.tool == "edit" and "\n@@ " in cut:
            return Syntax(clean(cut), "diff", theme="ansi_dark", background_color="default")
        return Text(clean(cut))

    def _title(self) -> str:
        arguments = ", ".join(_value(value) for value in self.arguments.values())
        line = " ".join(clean(arguments).split())
        return _escape(f"{self.tool} {line[:TITLE]}{'…' if len(line) > TITLE else ''}".rstrip())

    def toggle(self, *, opened: bool) -> None:
        """Open or close it."""
        self._fold.collapsed = not opened


def _escape(text: str) -> str:
    """Escape brackets, which are Textual's markup in a title."""
    return text.replace("[", r"\[")


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class BoundaryBlock(Block):
    """A marker where older messages were folded; it opens to the summary."""

    DEFAULT_CSS = """
    BoundaryBlock { border-top: heavy $accent; border-bottom: heavy $accent; padding: 0 1; }
    BoundaryBlock Collapsible { border: none; padding: 0; background: transparent; }
    """

    def __init__(
        self, receipt: Receipt, summary: str, number: int, entry: str = "", *, lifted: bool = False
    ) -> None:
        super().__init__(entry)
        self.lifted = lifted
        self.receipt = receipt
        self.summary = summary
        self.number = number

    def compose(self) -> ComposeResult:
        """Show what was folded; the summary opens below."""
        note = self.receipt.notes[-1] if self._excludes else "Old tool results are cleared."
        body = Markdown(clean(self.summary)) if self.summary else Static(Text(clean(note)))
        yield Collapsible(body, title=_escape(self.title_line()), collapsed=True)

    @property
    def _excludes(self) -> bool:
        return not self.summary and EXCLUDED in self.receipt.dropped.get("edits", {})

    def title_line(self) -> str:
        """Return the text of the marker."""
        receipt = self.receipt
        what = "folded" if self.summary else "excluded" if self._excludes else "pruned"
        line = f"{what} above: {token_change(receipt)} ({receipt.reason})"
        if self.lifted:
            return f"undone: {line}; /redo brings it back"
        if self.number >= DEGRADES and self.summary:
            line += f"; compaction {self.number}, quality may degrade: /handoff starts fresh"
        return line


class SummaryBlock(Static):
    """The newest lines of a summary while a model writes it."""

    DEFAULT_CSS = """
    SummaryBlock {
        height: auto; max-height: 8; padding: 0 1; color: $text-muted; border-left: thick $accent;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def write(self, text: str) -> None:
        """Append a piece, and show the newest lines."""
        self._text += text
        lines = self._text[-8 * 500 :].splitlines()[-7:]
        self.update(Text(clean("\n".join(["The summary so far:", *lines]))))


class NoteBlock(Block):
    """A note of the program: the result of a command, a warning, an error."""

    DEFAULT_CSS = """
    NoteBlock { padding: 0 1; color: $text-muted; }
    NoteBlock.error { color: $error; border-left: thick $error; }
    NoteBlock.warning { color: $warning; border-left: thick $warning; }
    NoteBlock Markdown { margin: 0; padding: 0; }
    """

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__()
        self.text = text
        if kind:
            self.add_class(kind)
        self._literal = bool(kind)

    def compose(self) -> ComposeResult:
        """Show Markdown; warnings and errors literally."""
        yield (
            Static(Text(clean(self.text))) if self._literal else Markdown(clean(self.text), open_links=False)
        )
