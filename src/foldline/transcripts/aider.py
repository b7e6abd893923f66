"""Aider's chat history: what the user typed behind ####, what Aider said behind >, replies as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from foldline.core.log.messages import Usage
from foldline.transcripts import chat
from foldline.transcripts.base import About, Record, Warned
from foldline.transcripts.prose import Fence, Words, prose
from foldline.transcripts.shapes import AIDER_BEGINS
from foldline.transcripts.values import moment

_TYPED, _SHOWN = "#### ", "> "
_END = "  "  # Aider ends each line that it writes itself with two spaces
_TOKENS = re.compile(r"Tokens: ([\d.]+[kM]?) sent")
_COUNT = re.compile(r"([\d.]+)([kM]?) (sent|cache write|cache hit|received)")
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_SAID = ("/ask", "/code", "/architect", "/context", "/help")  # commands with words for the model
_FORGETS = ("/clear", "/reset")
_SCALE = {"": 1, "k": 1_000, "M": 1_000_000}


def read_aider(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read an Aider chat history, all its chats in order; messages become `openai-chat` payloads.

    What Aider itself said is no message: the model never saw it. Times are those at which a chat began.
    """
    yield About("format", {"format": "aider", "dialect": "openai-chat"})
    history = _History()
    for item in prose(stream):
        if isinstance(item, Warned):
            yield item
        else:
            yield from history.take(item)
    yield from history.flush()


class _History:
    """The block of lines that is being read: of the user's (####), of Aider's (>) or of a reply ("")."""

    def __init__(self) -> None:
        self._kind = ""
        self._lines: list[str] = []
        self._line = 0
        self._fence = Fence()
        self._reply: tuple[str, int] | None = None  # waits for the count of its tokens
        self._at: float | None = None
        self._chats = 0
        self._asked = False  # whether the user said something in this chat
        self._ends = False  # whether Aider's lines still end in two spaces: editors like to strip them
        self._model: str | None = None

    def take(self, words: Words) -> Iterator[Record]:
        """Take the next line."""
        if words.text.startswith(AIDER_BEGINS):
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
        """Whose a line is. In a code fence only a line as Aider ends it is the user's: the reply was broken off."""
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
        """Whether a quoting line is the reply's own: it does not end as Aider's do in this file."""
        return self._ends and not text.endswith(_END) and self._kind == "" and bool(self._lines)

    def _begin(self, words: Words) -> Iterator[Record]:
        """A new chat: Aider begins it without what was said before."""
        when = words.text[len(AIDER_BEGINS) :].strip()
        self._at = moment(when)
        if self._chats:
            yield About("boundary", {"reason": "a new chat"}, words.number)
        self._chats += 1
        self._asked = False
        yield About("session", {"started": when}, words.number)

    def flush(self) -> Iterator[Record]:
        """Yield what is still waiting."""
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
        else:  # the rest of a notice of several lines, such as the command line that started Aider
            yield About("notice", {"text": text}, self._line)

    def _shown(self, text: str) -> Iterator[Record]:
        """What Aider said: the model that it uses, the tokens of the reply before, and notices."""
        if found := _MODEL.search(text):
            self._model = found[1]
            yield About("model", {"model": found[1]}, self._line)
        counted = next((line for line in text.split("\n") if _TOKENS.match(line)), None)
        if counted is not None:
            yield from self._answered(_usage(counted))
        yield About("notice", {"text": text}, self._line)

    def _typed(self, text: str) -> Iterator[Record]:
        command = text.split(maxsplit=1)[0]
        words = text[len(command) :].strip()
        if text == "<blank>":
            return
        self._asked = True
        if command in _FORGETS:
            yield About("boundary", {"reason": command}, self._line)
        if command in _SAID and words:
            text = words
        told = command.startswith("/") and command not in _SAID and "/" not in command[1:]
        payload = {"role": "user", "content": text}
        yield chat.heard(payload, self._line, at=self._at, injected=told)

    def _answered(self, usage: Usage | None) -> Iterator[Record]:
        """Yield the reply that waits."""
        if self._reply is not None:
            (text, line), self._reply = self._reply, None
            payload = chat.reply(text, "", [])
            yield chat.heard(payload, line, at=self._at, usage=usage, model=self._model, stop="end")


def _usage(text: str) -> Usage:
    """Aider's counts, rounded as it shows them; what was sent holds the cached part."""
    found = {kind: round(float(digits) * _SCALE[scale]) for digits, scale, kind in _COUNT.findall(text)}
    sent, written, read = (found.get(kind, 0) for kind in ("sent", "cache write", "cache hit"))
    return Usage(max(sent - written - read, 0), read, written, found.get("received", 0))
