"""Where every name of a range was met: what its worth is judged by."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from foldline.core.cut.notes import is_note
from foldline.core.ledger.facts.calls import argument_texts
from foldline.core.ledger.text import names
from foldline.core.ledger.text.names import Name
from foldline.core.ledger.text.origin import spans
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, ToolCall

DEFINES = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|unsafe|override|"
    r"inline)"
    r"(?:\(\w+\))?\s+)*(?:func|def|class|interface|type|struct|enum|trait|impl|fn|function|const|let|var|val|"
    r"module|mod|object|record|protocol|macro_rules!)\b"
)
_SUMMARY = re.compile(
    r"(?i)\bsummar|continued from|compact|hand-?off|checkpoint"
)  # of what was folded before
RECENT = 0.12  # share of the range that counts as what is being worked on
_TEST_MARKS = re.compile(r"^test_|[-_]?tests?$|[-_]spec$")
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Seen:
    """Where one name was met. Positions are characters from the start of the range.

    `home` is the key of the file it was met in, `crowd` the number of names in the text where it had least
    company.
    """

    __slots__ = (
        "addressed", "body", "count", "crowd", "defined", "first", "home", "key", "kind", "last",
        "last_addressed", "messages", "modified", "pieces", "prompt", "results", "said", "text",
        "told", "user", "where",
    )  # fmt: skip

    def __init__(self, name: Name, at: int) -> None:
        self.kind = name.kind
        self.key = name.key
        self.text = name.text
        self.pieces = tuple(dict.fromkeys(pieces(name.key)))
        self.first = self.last = at
        self.last_addressed = -1
        self.messages = self.addressed = self.body = self.user = self.said = self.results = 0
        self.count = self.told = self.defined = self.modified = self.prompt = 0
        self.crowd = 1_000_000
        self.where = -1
        self.home = ""


class NameSurvey:
    """Every name of a range of entries, the range's size in characters, and what was worked on last.

    `asked` and `recent` map the words of the newest request and of the newest part of the range to 1;
    `rarity` maps a word of names to how few names hold it.
    """

    def __init__(self) -> None:
        self.names: dict[str, Seen] = {}
        self.size = 0
        self.directories: dict[str, tuple[int, int]] = {}  # directory: times addressed, and where last
        self.absolute: dict[str, int] = {}  # directory with its last slash: paths addressed below it
        self.stems: dict[str, int] = {}  # a file's name without test marks and suffix: times addressed
        self.asked: set[str] = set()
        self.recent: set[str] = set()
        self.rarity: dict[str, float] = {}
        self.lines = names.Lines()
        self._homes: dict[str, str] = {}
        self._spoken: list[tuple[int, str]] = []

    def read(self, entries: Iterable[Said]) -> None:
        """Meet every name of the entries, in order."""
        for number, entry in enumerate(entries):
            self._message(entry.message, number)
        self._settle()

    def _message(self, message: Message, number: int) -> None:
        if message.text:
            if message.role == "assistant":
                self._text("said", message.text, number)
            elif message.is_prompt and (own := spans(message.text)):
                self._text("user", "\n".join(own), number)
            else:
                self._text("told" if _SUMMARY.search(message.text[:600]) else "results", message.text, number)
        for call in message.calls:
            self._call(call, number)
        for result in message.results:
            self._text("results", result.text, number, self._homes.get(result.call_id, ""))

    def _call(self, call: ToolCall, number: int) -> None:
        texts = list(argument_texts(call.arguments))
        channel = "changed" if any(body for body, _ in texts) else "addressed"
        for body, text in texts:
            self._text("body" if body else channel, text, number)
        files = {
            name.key for body, text in texts if not body for name in names.find(text) if is_file(name.key)
        }
        if len(files) == 1:
            self._homes[call.id] = files.pop()

    def _text(self, channel: str, text: str, number: int, home: str = "") -> None:
        met: dict[str, Seen] = {}
        at = self.size
        addressing = channel in ("addressed", "changed")
        for line in text.split("\n"):
            if not is_note(line):
                self._line(line, at, met, home, addressing)
            at += len(line) + 1
        for seen in met.values():
            seen.messages += seen.where != number
            seen.where = number
            seen.crowd = min(seen.crowd, len(met))
            self._count(seen, channel, number)
        if channel not in ("results", "body"):
            self._spoken.append((self.size, text))
            if channel == "user":
                self.asked = set(pieces(text[:20_000]))
        self.size += len(text) + 12

    def _line(self, line: str, at: int, met: dict[str, Seen], home: str, addressing: bool) -> None:
        defines = None
        line = names.unnumbered(line[: names.MAX_LINE])
        for name in self.lines.names(line):
            seen = self.names.get(name.key)
            if seen is None:
                seen = self.names[name.key] = Seen(name, at)
            if name.kind == "identifier":
                if defines is None:
                    defines = DEFINES.match(line) is not None
                    seen.defined += defines
                seen.home = home or seen.home
            elif name.kind == "path":
                home = name.key if is_file(name.key) else home
                if addressing:
                    seen.text = name.text
                    self._directories(name.text)
            seen.last = at
            seen.count += 1
            met[name.key] = seen

    def _directories(self, path: str) -> None:
        parts = path.split("/")
        times, _ = self.directories.get("/".join(parts[:-1])[-60:], (0, 0))
        self.directories["/".join(parts[:-1])[-60:]] = (times + 1, self.size)
        for depth in range(2, min(len(parts), 12)) if path.startswith("/") else ():
            directory = "/".join(parts[:depth]) + "/"
            self.absolute[directory] = self.absolute.get(directory, 0) + 1

    def _count(self, seen: Seen, channel: str, number: int) -> None:
        if channel == "user":
            seen.user += 1
            seen.prompt = number + 1
        elif channel == "told":
            seen.told += 1
        elif channel == "said":
            seen.said += 1
        elif channel == "results":
            seen.results += 1
        elif channel == "body":
            seen.body += 1
        else:
            seen.addressed += 1
            seen.last_addressed = self.size
            seen.modified += channel == "changed"
            if is_file(seen.key):
                self.stems[stem(seen.key)] = self.stems.get(stem(seen.key), 0) + 1

    def _settle(self) -> None:
        """Work out what needs the whole range."""
        last = max((seen.prompt for seen in self.names.values()), default=0)
        holders: dict[str, int] = {}
        for seen in self.names.values():
            seen.prompt = int(seen.prompt == last and last > 0)
            for piece in seen.pieces:
                holders[piece] = holders.get(piece, 0) + 1
        total = len(self.names) + 1
        self.rarity = {piece: math.log(total / count) for piece, count in holders.items()}
        floor = self.size * (1 - RECENT)
        for at, text in self._spoken:
            if at >= floor:
                self.recent.update(pieces(text[:20_000]))
        self._spoken.clear()
        self._homes.clear()


def survey(entries: Iterable[Said]) -> NameSurvey:
    """Meet every name of the entries, in order."""
    found = NameSurvey()
    found.read(entries)
    return found


def root(found: NameSurvey) -> str:
    """Find the directory that most absolute paths share, with its last slash; "" where there is none."""
    most = max(found.absolute.values(), default=0)
    return max(
        (place for place, count in found.absolute.items() if count >= 0.95 * most), key=len, default=""
    )


def is_file(key: str) -> bool:
    """Whether a path's key names a file, as its suffix says."""
    base = key.rpartition("/")[2]
    return "." in base[1:-1]


def stem(key: str) -> str:
    """Return what a file and its test share: the name without directory, suffix and test marks."""
    base = key.rpartition("/")[2].split(".", 1)[0].lower()
    return _TEST_MARKS.sub("", base)


def pieces(text: str) -> list[str]:
    """Split a text into the words that its names are made of, lower case, three letters and more."""
    return [piece.lower() for piece in _PIECES.findall(text) if len(piece) > 2]
