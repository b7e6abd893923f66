"""Aider's chat history: user input after ####, Aider's own lines after >, replies unmarked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from foldline.core.log.messages import Usage
from foldline.transcripts import payloads
from foldline.transcripts.lines import moment
from foldline.transcripts.markdown_text import Fence, TextLine, text_lines
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import FactRecord, Record, WarningRecord

BEGINS = "# aider chat started at "  # the start of a chat's first line
_TYPED, _SHOWN = "#### ", "> "
_END = "  "  # Aider ends each line that it writes itself with two spaces
_TOKENS = re.compile(r"Tokens: ([\d.]+[kM]?) sent")
_COUNT = re.compile(r"(?<![\d.])([\d.]+)([kM]?) (sent|cache write|cache hit|received)")
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_PROMPTS = ("/ask", "/code", "/architect", "/context", "/help")  # commands that send text to the model
_RESETS = ("/clear", "/reset")
_SCALE = {"": 1, "k": 1_000, "M": 1_000_000}


def read_aider(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read an Aider chat history, all its chats in order; messages become `openai-chat` payloads.

    Aider's own lines are not messages: the model never saw them. All messages have the time of their chat.
    """
    history = _History()
    for item in text_lines(stream):
        if isinstance(item, WarningRecord):
            yield item
        else:
            yield from history.take(item)
    yield from history.flush()


class _History:
    """Collects a block of lines: the user's (####), Aider's (>) or a reply's ("")."""

    def __init__(self) -> None:
        self._kind = ""
        self._lines: list[str] = []
        self._line = 0
        self._fence = Fence()
        self._reply: tuple[str, int] | None = None  # waits for its token count
        self._at: float | None = None
        self._chats = 0
        self._asked = False  # whether the user wrote something in this chat
        self._ends = False  # whether Aider's lines still end in two spaces; editors often strip them
        self._model: str | None = None

    def take(self, line: TextLine) -> Iterator[Record]:
        if line.text.startswith(BEGINS):
            yield from self.flush()
            yield from self._begin(line)
            return
        kind = self._kind_of(line)
        if kind != self._kind:
            yield from self._block()
            self._kind, self._line = kind, line.number
        elif not self._lines:
            self._line = line.number
        if self._lines or line.text.strip():
            self._lines.append(line.text[len(kind) :].removesuffix(_END) if kind else line.text)

    def _kind_of(self, line: TextLine) -> str:
        """Return the mark of a line's author. Inside a code fence only Aider's line end marks the user's."""
        if self._fence.open:
            if line.text.startswith(_TYPED) and line.text.endswith(_END):
                self._fence.leave()
                return _TYPED
            self._fence.take(line)
            return ""
        if line.text.startswith(_TYPED):
            return _TYPED
        if line.text.startswith(_SHOWN) and not self._quotes(line.text):
            self._ends = self._ends or line.text.endswith(_END)
            return _SHOWN
        self._fence.take(line)
        return ""

    def _quotes(self, text: str) -> bool:
        """Return whether a > line is a quote in the reply: it lacks the line end of Aider's own lines."""
        return self._ends and not text.endswith(_END) and self._kind == "" and bool(self._lines)

    def _begin(self, line: TextLine) -> Iterator[Record]:
        """Begin a new chat, whose model does not see earlier chats."""
        when = line.text[len(BEGINS) :].strip()
        self._at = moment(when)
        if self._chats:
            yield FactRecord("boundary", {"reason": "a new chat"}, line.number)
        self._chats += 1
        self._asked = False
        yield FactRecord("session", {"started": when}, line.number)

    def flush(self) -> Iterator[Record]:
        """Yield the last block and reply."""
        self._fence.leave()
        yield from self._block()
        yield from self._end_reply(None)
        self._kind = ""

    def _block(self) -> Iterator[Record]:
        text, self._lines = "\n".join(self._lines).strip("\n"), []
        if not text.strip():
            return
        if self._kind == _SHOWN:
            yield from self._shown(text)
            return
        yield from self._end_reply(None)
        if self._kind == _TYPED:
            yield from self._typed(text)
        elif self._asked:
            self._reply = (text.strip("\n"), self._line)
        else:  # the rest of a long notice, such as the command line that started Aider
            yield FactRecord("notice", {"text": text}, self._line)

    def _shown(self, text: str) -> Iterator[Record]:
        """Yield the facts in Aider's own lines: the model, the last reply with its tokens, and notices."""
        if found := _MODEL.search(text):
            self._model = found[1]
            yield FactRecord("model", {"model": found[1]}, self._line)
        counted = next((line for line in text.split("\n") if _TOKENS.match(line)), None)
        if counted is not None:
            yield from self._end_reply(_usage(counted))
        yield FactRecord("notice", {"text": text}, self._line)

    def _typed(self, text: str) -> Iterator[Record]:
        command = text.split(maxsplit=1)[0]
        prompt = text[len(command) :].strip()
        if text == "<blank>":
            return
        self._asked = True
        if command in _RESETS:
            yield FactRecord("boundary", {"reason": command}, self._line)
        if command in _PROMPTS and prompt:
            text = prompt
        injected = command.startswith("/") and command not in _PROMPTS and "/" not in command[1:]
        yield message_record(payloads.user(text), self._line, at=self._at, injected=injected)

    def _end_reply(self, usage: Usage | None) -> Iterator[Record]:
        if self._reply is not None:
            (text, line), self._reply = self._reply, None
            payload = payloads.reply(text, "", [])
            yield message_record(payload, line, at=self._at, usage=usage, model=self._model, stop="end")


def _usage(text: str) -> Usage:
    """Read Aider's rounded token counts; the sent tokens include the cached ones."""
    counts = {kind: round(float(digits) * _SCALE[scale]) for digits, scale, kind in _COUNT.findall(text)}
    sent, written, read = (counts.get(kind, 0) for kind in ("sent", "cache write", "cache hit"))
    return Usage(max(sent - written - read, 0), read, written, counts.get("received", 0))
