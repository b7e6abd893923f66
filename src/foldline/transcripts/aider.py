"""Aider's chat history: user input after ####, Aider's own lines after >, replies as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from foldline.core.log.messages import Usage
from foldline.transcripts import payloads
from foldline.transcripts.lines import moment
from foldline.transcripts.markdown_text import Fence, Words, prose
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import FactRecord, Record, WarningRecord

BEGINS = "# aider chat started at "
"""How a chat begins."""

_TYPED, _SHOWN = "#### ", "> "
_END = "  "  # Aider ends each line that it writes itself with two spaces
_TOKENS = re.compile(r"Tokens: ([\d.]+[kM]?) sent")
_COUNT = re.compile(r"(?<![\d.])([\d.]+)([kM]?) (sent|cache write|cache hit|received)")
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_SAID = ("/ask", "/code", "/architect", "/context", "/help")  # commands that send text to the model
_FORGETS = ("/clear", "/reset")
_SCALE = {"": 1, "k": 1_000, "M": 1_000_000}


def read_aider(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read an Aider chat history, all its chats in order; messages become `openai-chat` payloads.

    Aider's own lines are not messages: the model never saw them. Times are those at which a chat began.
    """
    history = _History()
    for item in prose(stream):
        if isinstance(item, WarningRecord):
            yield item
        else:
            yield from history.take(item)
    yield from history.flush()


class _History:
    """The block of lines being read: the user's (####), Aider's (>) or a reply's ("")."""

    def __init__(self) -> None:
        self._kind = ""
        self._lines: list[str] = []
        self._line = 0
        self._fence = Fence()
        self._reply: tuple[str, int] | None = None  # waits for its token count
        self._at: float | None = None
        self._chats = 0
        self._asked = False  # whether the user said something in this chat
        self._ends = False  # whether Aider's lines still end in two spaces; editors often strip them
        self._model: str | None = None

    def take(self, words: Words) -> Iterator[Record]:
        """Take the next line."""
        if words.text.startswith(BEGINS):
            yield from self.flush()
            yield from self._begin(words)
            return
        kind = self._kind_of(words)
        if kind != self._kind:
            yield from self._block()
            self._kind, self._line = kind, words.number
        elif not self._lines:
            self._line = words.number
        if self._lines or words.text.strip():
            self._lines.append(words.text[len(kind) :].removesuffix(_END) if kind else words.text)

    def _kind_of(self, words: Words) -> str:
        """Return who wrote a line. Inside a code fence only a line with Aider's line end is the user's."""
        if self._fence.open:
            if words.text.startswith(_TYPED) and words.text.endswith(_END):
                self._fence.leave()
                return _TYPED
            self._fence.take(words)
            return ""
        if words.text.startswith(_TYPED):
            return _TYPED
        if words.text.startswith(_SHOWN) and not self._quotes(words.text):
            self._ends = self._ends or words.text.endswith(_END)
            return _SHOWN
        self._fence.take(words)
        return ""

    def _quotes(self, text: str) -> bool:
        """Return whether a > line belongs to the reply: it lacks the line end of Aider's own lines."""
        return self._ends and not text.endswith(_END) and self._kind == "" and bool(self._lines)

    def _begin(self, words: Words) -> Iterator[Record]:
        """Begin a new chat, which does not see what was said before."""
        when = words.text[len(BEGINS) :].strip()
        self._at = moment(when)
        if self._chats:
            yield FactRecord("boundary", {"reason": "a new chat"}, words.number)
        self._chats += 1
        self._asked = False
        yield FactRecord("session", {"started": when}, words.number)

    def flush(self) -> Iterator[Record]:
        """Yield what was held back."""
        self._fence.leave()
        yield from self._block()
        yield from self._answered(None)
        self._kind = ""

    def _block(self) -> Iterator[Record]:
        """Yield the block that ends here."""
        text, self._lines = "\n".join(self._lines).strip("\n"), []
        if not text.strip():
            return
        if self._kind == _SHOWN:
            yield from self._shown(text)
            return
        yield from self._answered(None)
        if self._kind == _TYPED:
            yield from self._typed(text)
        elif self._asked:
            self._reply = (text.strip("\n"), self._line)
        else:  # the rest of a longer notice, such as the command line that started Aider
            yield FactRecord("notice", {"text": text}, self._line)

    def _shown(self, text: str) -> Iterator[Record]:
        """Yield what Aider's own lines say: the model, the tokens of the last reply, and notices."""
        if found := _MODEL.search(text):
            self._model = found[1]
            yield FactRecord("model", {"model": found[1]}, self._line)
        counted = next((line for line in text.split("\n") if _TOKENS.match(line)), None)
        if counted is not None:
            yield from self._answered(_usage(counted))
        yield FactRecord("notice", {"text": text}, self._line)

    def _typed(self, text: str) -> Iterator[Record]:
        command = text.split(maxsplit=1)[0]
        words = text[len(command) :].strip()
        if text == "<blank>":
            return
        self._asked = True
        if command in _FORGETS:
            yield FactRecord("boundary", {"reason": command}, self._line)
        if command in _SAID and words:
            text = words
        told = command.startswith("/") and command not in _SAID and "/" not in command[1:]
        yield message_record(payloads.user(text), self._line, at=self._at, injected=told)

    def _answered(self, usage: Usage | None) -> Iterator[Record]:
        """Yield the reply that was held back."""
        if self._reply is not None:
            (text, line), self._reply = self._reply, None
            payload = payloads.reply(text, "", [])
            yield message_record(payload, line, at=self._at, usage=usage, model=self._model, stop="end")


def _usage(text: str) -> Usage:
    """Read Aider's rounded token counts; the sent tokens include the cached ones."""
    found = {kind: round(float(digits) * _SCALE[scale]) for digits, scale, kind in _COUNT.findall(text)}
    sent, written, read = (found.get(kind, 0) for kind in ("sent", "cache write", "cache hit"))
    return Usage(max(sent - written - read, 0), read, written, found.get("received", 0))
