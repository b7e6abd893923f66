"""Cut entries into passages: short pieces that each say something about names, with the topic they concern.

A passage is a user's line, an assistant's sentence, a definition with its comment, a search hit, a line of a
listing, or a call with its reason. Which of them are carried on is decided by `excerpts.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.cut.notes import is_note
from foldline.core.ledger.facts.commands import is_notable
from foldline.core.ledger.text import names
from foldline.core.ledger.text.names import Name
from foldline.core.ledger.text.origin import spans
from foldline.core.ledger.text.pasted import is_pasted, typed
from foldline.core.ledger.text.sentences import clip, last_sentence, sentences, uncoloured
from foldline.core.ledger.text.words import words
from foldline.core.ledger.worth.call_topic import describe
from foldline.core.ledger.worth.survey import DEFINES, is_file
from foldline.core.log.entries import Said
from foldline.core.log.messages import Text, ToolCall, ToolResult

MENTIONS = 4  # files of one line that are also carried by themselves
QUOTE = 110  # characters of a quoted line of code or output
LONG_QUOTE = 300  # and where there is little to quote from
SIGNATURE = 80  # characters of a definition without a comment
LONGEST = 240  # characters of one passage
ENOUGH_WORDS = 3  # plain words that let a line of a request stand alone
REASON_LASTS = 4  # calls that one sentence before them explains
PASTED = "what the user pasted"
RESULT_LINES = 4_000  # lines of one result that are read

_HIT = re.compile(r"^([^\s:]{3,200}?)[:-](\d{1,6})[:-](.*)$")
_DEFINED = re.compile(
    r"(?:\bfunc\s*\([^)]*\)\s*|\b(?:func|def|class|interface|type|struct|enum|trait|fn|function|const|let|"
    r"var|val)\s+)(\w+)"
)
_GROUPED = re.compile(r"\s*L?\d{1,6}[-:]")
_DIFF_OF = re.compile(r"diff --git a/\S+ b/(\S+)$|\+\+\+ b/(\S+)$")
_CHANGED = re.compile(r"[-+ @\\]|index |(?:new|deleted|old) (?:file )?mode |similarity |rename |Binary |$")
_DIFF_INDEX = re.compile(r"index [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}\b")
_VARIABLE = re.compile(r"\s*(?:const|let|var|val)\b")  # a local one, where it is indented
_BRACKETS = re.compile(r"\[[^\[\]]*\]|<[^<>]*>")
_PARAMETERS = re.compile(r"(\w+)\(([^()]*)\).*$")
_COMMENT = re.compile(r"^\s*(?://+|#+|\*+|--|;+|/\*+|\"\"\"|''')\s?(.*?)(?:\*/|\"\"\")?\s*$")
_COMMENTS = frozenset("/#*-;\"'")
_HEADING = re.compile(r"^\s{0,3}(#{1,6}\s+|\*\*)(.{2,120}?)(?:\*\*)?:?\s*$")
_MARKS = re.compile(r"^(?:\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>|\[[ xX]\]|\|))+\s*|(?<!\s)\s*+\|\s*+$")


_NUMBERED = re.compile(r"\s*\d{1,6}[:→|]")
"""A line of a file that a program put beside a request: the file can be read again."""
_ITEMS = frozenset("-*+•")
_MARKED = frozenset("-*+•#>[|")  # characters that a list item, a heading or a row of a table begins with


class TopicPassage(msgspec.Struct, frozen=True, gc=False):
    """A piece of an entry: its words, its kind, the topic (a path's key or a heading), and the names in it.

    `order` counts the messages; `head` is the name that the passage defines or is about, if any; `note` is
    why the call that showed it was made.
    """

    text: str
    kind: str
    topic: str
    entry: str
    order: int
    names: tuple[str, ...]
    head: str = ""
    note: str = ""


class _Call(msgspec.Struct):
    """What is known of a call while its result is awaited."""

    reason: str
    topic: str
    pattern: str

    @property
    def search(self) -> str:
        """What was looked for when a listing showed."""
        return (
            f"looking for `{clip(self.pattern, 70)}`"
            if self.pattern
            else self.reason.replace("`", "'").rstrip(".:")
        )

    @property
    def note(self) -> str:
        """Why the call was made, in words."""
        return self.reason or (f"found when searching for `{clip(self.pattern, 60)}`" if self.pattern else "")


class Reader:
    """Reads entries in order and yields their passages; lines that were read before are passed over."""

    def __init__(self, lines: names.Lines | None = None, quote: int = QUOTE) -> None:
        self._quote = quote
        self._read = lines or names.Lines()
        self._calls: dict[str, _Call] = {}
        self._lines: set[tuple[str, str]] = set()
        self._reason = ""
        self._said_for = 0
        self._order = 0
        self._entry = ""

    def read(self, entries: Sequence[Said]) -> Iterator[TopicPassage]:
        """Yield the passages of the entries."""
        for entry in entries:
            self._order += 1
            self._entry = entry.id
            message = entry.message
            for part in message.parts:
                if isinstance(part, ToolCall):
                    yield from self._call(part)
                elif isinstance(part, ToolResult):
                    yield from self._result(part)
                elif isinstance(part, Text) and message.role == "assistant":
                    yield from self._said(part.text)
                elif isinstance(part, Text) and message.role == "user":
                    own = spans(part.text) if message.is_prompt else ()
                    for span in own or (part.text,):
                        yield from self._asked(span, "asked" if own else "told")
                    self._reason = ""

    def _make(
        self, text: str, kind: str, topic: str, found: Sequence[Name], *, head: str = "", note: str = ""
    ) -> TopicPassage:
        shown = f"{text} {topic}"
        keys = tuple(dict.fromkeys([name.key for name in found if name.text in shown or name.key == topic]))
        return TopicPassage(text, kind, topic, self._entry, self._order, keys, head, note)

    def _fresh(self, topic: str, line: str) -> bool:
        key = (topic, line)
        if key in self._lines:
            return False
        self._lines.add(key)
        return True

    def _asked(self, text: str, kind: str) -> Iterator[TopicPassage]:
        """User's words, line by line, under the heading they stand below."""
        heading = lead = ""
        kept = frozenset(typed(text).split("\n")) if kind == "asked" else None
        listed = False  # whether `lead` is an item of a list, which introduces no other
        for line in text.split("\n")[:RESULT_LINES]:
            stripped = line.strip()
            if len(stripped) < 4 or stripped.startswith(("```", "---", "|--", "|:-")):
                continue
            if is_pasted(line) or (kind == "told" and _NUMBERED.match(line)):
                continue
            if kept is not None and line not in kept:
                yield from self._pasted(stripped)
                continue
            title = _HEADING.match(line)
            plain = _MARKS.sub("", stripped).replace("**", "")
            if title and title.group(1).startswith("#"):
                yield from self._piece(lead, kind, heading)
                lead, heading = "", clip(plain, 100)
                continue
            if lead and listed and stripped[0] in _ITEMS:
                yield from self._piece(lead, kind, heading)
                lead = ""
            listed = stripped[0] in _ITEMS
            lead = f"{lead} {plain}" if lead else plain
            if len(lead) < LONGEST // 2 and len(words(lead)) < ENOUGH_WORDS:
                continue  # too little to stand alone: it introduces the next line
            for piece in (lead,) if len(lead) <= LONGEST else sentences(lead):
                yield from self._piece(piece, kind, heading)
            lead = ""
        yield from self._piece(lead, kind, heading)

    def _pasted(self, line: str) -> Iterator[TopicPassage]:
        """A line of a program's output that the user pasted: as if a call had shown it."""
        found = self._read.names(line[: names.MAX_LINE])
        if found and self._fresh("", line):
            yield self._make(_around(line, found, self._quote), "line", "", found, note=PASTED)

    def _piece(self, text: str, kind: str, heading: str) -> Iterator[TopicPassage]:
        short = clip(text, LONGEST)
        if short and self._fresh("asked", short):
            yield self._make(short, kind, heading, names.find(f"{short} {heading}"))

    def _said(self, text: str) -> Iterator[TopicPassage]:
        for sentence in sentences(text):
            short = clip(sentence, LONGEST).replace("**", "")
            found = names.find(short)
            if found and self._fresh("said", short):
                yield self._make(short, "said", _first_path(found), found)
        reason = last_sentence(text)
        if reason:
            self._reason, self._said_for = reason, 0

    def _call(self, call: ToolCall) -> Iterator[TopicPassage]:
        """A call with its reason: what was run, searched, read or changed, and why."""
        topic = describe(call, self._reason if self._said_for < REASON_LASTS else "")
        self._said_for += 1
        self._calls[call.id] = _Call(topic.reason, topic.topic, topic.pattern)
        if topic.command:
            text = f"{topic.tool} `{clip(topic.command, 200)}`"
            kind = "ran" if is_notable(topic.command) else "looked"
            yield self._make(text, kind, topic.reason, names.find(text + " " + topic.reason))
        elif topic.pattern:
            text = f"{topic.tool} pattern `{clip(topic.pattern, 120)}`"
            text += f" in `{topic.place}`" if topic.place else ""
            yield self._make(text, "searched", topic.reason, names.find(text + " " + topic.reason))
        elif topic.topic and topic.reason:
            known = names.find(topic.place + " " + topic.reason)
            yield self._make(topic.reason, "changed" if topic.changes else "opened", topic.topic, known)

    def _result(self, result: ToolResult) -> Iterator[TopicPassage]:
        """Definitions, hits, listings and telling lines of a result."""
        call = self._calls.get(result.call_id) or _Call("", "", "")
        comment: list[str] = []
        under, changed = "", False  # the file whose numbered hits, or changed lines, stand below
        for raw in uncoloured(result.text).split("\n")[:RESULT_LINES]:
            line = names.unnumbered(raw[: names.MAX_LINE])
            if (
                len(line) < 4
                or is_note(line)
                or (line.startswith("index ") and _DIFF_INDEX.match(line))
                or not self._fresh(call.topic, line)
            ):
                comment = []
                continue
            said = _COMMENT.match(line) if line.lstrip()[:1] in _COMMENTS else None
            if said:
                comment.append(said.group(1))
            found = self._read.names(line)
            if raw[:1] in ("d", "+") and (header := _DIFF_OF.match(raw)) is not None:
                under, changed = names.path_key(header[1] or header[2]), True
            elif (under or len(found) == 1) and not (_CHANGED if changed else _GROUPED).match(raw):
                under, changed = _file_above(line, found), False
            if found:
                passage = self._line(line, found, call, comment, under)
                yield passage
                yield from self._shown(passage, found, call)
            if not said:
                comment = []

    def _shown(self, passage: TopicPassage, found: Sequence[Name], call: _Call) -> Iterator[TopicPassage]:
        """Files that a line names among other things, by themselves: what the search or listing showed."""
        if passage.kind == "listing":
            return
        for name in found[:MENTIONS]:
            other = (
                name.kind == "path"
                and is_file(name.key)
                and name.key != passage.topic
                and "..." not in name.text
            )
            if other and self._fresh("path", name.key):
                yield self._make(name.text, "listing", call.search, [name])

    def _line(
        self, line: str, found: Sequence[Name], call: _Call, comment: list[str], under: str
    ) -> TopicPassage:
        hit = _HIT.match(line) if found[0].kind == "path" else None
        if hit and found[0].text in hit.group(1):
            inner = [name for name in found if name.text in hit.group(3)]
            text = _around(hit.group(3), inner, self._quote)
            topic = found[0].key
            head = inner[0].key if inner and DEFINES.match(hit.group(3)) else ""
            return self._make(text, "hit", topic, [found[0], *inner], head=head, note=call.note)
        defined = _DEFINED.search(line) if call.topic and DEFINES.match(line) else None
        if defined and line[0].isspace() and _VARIABLE.match(line):
            defined = None
        if defined:
            text = _definition(defined.group(1), line, comment)
            return self._make(
                text, "outline", call.topic, names.find(text), head=defined.group(1), note=call.note
            )
        stripped = line.strip()
        place = found[0].kind == "path" and (is_file(found[0].key) or found[0].text.count("/") > 1)
        if place and len(found) == 1 and len(stripped) - len(found[0].text) < 12:
            return self._make(found[0].text, "listing", call.search, found)
        marked = stripped[0] in _MARKED or stripped[0].isdigit() or stripped[-1] == "|"
        plain = _MARKS.sub("", stripped) if marked else stripped
        topic = call.topic or under
        return self._make(_around(plain, found, self._quote), "line", topic, found, note=call.note)


def _file_above(line: str, found: Sequence[Name]) -> str:
    """Return the file that a line names and nothing else, "" where it says more: hits stand below it."""
    if len(found) != 1 or found[0].kind != "path" or not is_file(found[0].key):
        return ""
    return found[0].key if line.strip(": ").removeprefix("File: ") == found[0].text else ""


def _first_path(found: Sequence[Name]) -> str:
    return next((name.key for name in found if name.kind == "path" and "." in name.key), "")


def _definition(name: str, line: str, comment: list[str]) -> str:
    """A definition as a reader wants it: its name, and what its comment says of it."""
    words = clip(" ".join(comment), 140) if comment else ""
    words = re.split(r"(?<=[.!?])\s", words, maxsplit=1)[0].strip(" .")
    if words.startswith(name):
        return f"`{name}`{words[len(name) :]}"
    if words and not words.startswith(("eslint", "nolint", "!")):
        return f"`{name}`: {words}"
    signature = _PARAMETERS.sub(_short_parameters, line.strip(), count=1)
    return f"`{clip(signature.rstrip('{:;=( '), SIGNATURE)}`"


def _short_parameters(match: re.Match[str]) -> str:
    """Keep the names of parameters, not their types."""
    plain = match.group(2)
    for _ in range(3):  # a comma inside brackets parts no parameters
        plain = _BRACKETS.sub("", plain)
    inner = [part.strip(" *&./").split(" ")[0].split(":")[0].split("=")[0] for part in plain.split(",")]
    return f"{match.group(1)}({', '.join(filter(None, inner))})"


def _around(line: str, found: Sequence[Name], most: int = QUOTE) -> str:
    """Cut a long line down to what stands around its first name, whole words or, of JSON, whole pairs."""
    line = " ".join(line.split())
    if len(line) <= most:
        return line
    at = line.find(found[0].text) if found else 0
    start = max(0, min(at - most // 3, len(line) - most))
    at -= start
    piece, mark = line[start : start + most - 2], ", " if '": ' in line else " "
    end = piece.rfind(mark)
    if start + len(piece) < len(line) and end > at + len(found[0].text if found else ""):
        piece = piece[:end]
    begin = piece.find(mark) + len(mark) if start and mark in piece[:at] else 0
    return ("…" if start else "") + piece[begin:] + ("…" if start + len(piece) < len(line) else "")
