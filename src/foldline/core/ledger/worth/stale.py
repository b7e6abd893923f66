"""Quoted text in the light of later edits: reworded where the line was changed, left out where it is gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from foldline.core.ledger.facts.edits import FileEdit, introduced_values, replaced_values
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip
from foldline.core.ledger.worth.passages import TopicPassage

QUOTED = ("line", "hit", "outline")
SPOKEN = ("said", "asked", "told")
LONGEST = 110  # characters of a line that takes an older one's place
SHORTEST = 8  # characters of a line that can be told from others by its text alone
ALIKE = 0.5  # share of common words from which a new line is the old one reworded
_PLACED = re.compile(r"([^\s:]{3,200}):\d{1,6}[:-]\s*(\S.*)$")
MOST_EDITS = 200  # of one file, the newest, that a quoted line is held against


class Edits:
    """The edits of a range, to be asked what became of a quoted line."""

    def __init__(self, edits: Iterable[FileEdit], place: Mapping[str, int]) -> None:
        self._by_path: dict[str, list[tuple[int, FileEdit]]] = {}
        self._latest: dict[str, int] = {}  # where a file was edited last
        self._gone: dict[str, int] = {}  # a line that was taken out anywhere: where last
        made = tuple(edits)
        self._replaced = replaced_values(made)
        self._introduced = introduced_values(made)
        for edit in made:
            at = place.get(edit.entry, 0) + edit.shown  # what a result shows was so before it
            self._by_path.setdefault(edit.path, []).append((at, edit))
            self._latest[edit.path] = max(at, self._latest.get(edit.path, 0))
            for line in _taken(edit):
                if len(line) > SHORTEST:
                    self._gone[line] = at

    def current(self, passages: Iterable[TopicPassage]) -> list[TopicPassage]:
        """Return the passages as they read after the edits that followed them."""
        if not self._by_path:
            return list(passages)
        found: list[TopicPassage] = []
        newest: dict[tuple[str, str], TopicPassage] = {}
        for raw in passages:
            passage = self._placed(raw) if raw.kind == "line" and ":" in raw.text else raw
            now = self._after(passage) if passage.kind in QUOTED else passage
            if now is None or (now.kind in SPOKEN and self._outdated(now.text)):
                continue
            if now.kind == "outline":
                newest[now.topic, now.head] = now
            found.append(now)
        return [
            passage
            for passage in found
            if passage.kind != "outline" or newest[passage.topic, passage.head] is passage
        ]

    def _placed(self, passage: TopicPassage) -> TopicPassage:
        """Read a line that names its own place (`file.md:12: text`) as a hit in that file.

        A file whose name does not look like one (Makefile) is known by having been edited.
        """
        match = _PLACED.match(passage.text)
        found = names.find(match.group(1)) if match else []
        if match is None or len(found) > 1 or any(name.kind != "path" for name in found):
            return passage
        topic = found[0].key if found else names.path_key(match.group(1))
        if not found and topic not in self._by_path:
            return passage
        keys = (*(key for key in passage.names if key != passage.topic), topic)
        return msgspec.structs.replace(
            passage, text=match.group(2), kind="hit", topic=topic, names=tuple(dict.fromkeys(keys))
        )

    def _outdated(self, text: str) -> bool:
        """Whether words name a value that edits replaced, and none that took a place."""
        return names.mentions(text, self._replaced) and not names.mentions(text, self._introduced)

    def _after(self, passage: TopicPassage) -> TopicPassage | None:
        core = passage.text.strip("…").strip()
        if self._gone.get(core, -1) > passage.order and passage.topic not in self._by_path:
            return None
        if self._latest.get(passage.topic, 0) <= passage.order:
            return passage
        for at, edit in self._by_path[passage.topic][-MOST_EDITS:]:
            if at <= passage.order:
                continue
            text = outlined(passage, edit) if passage.kind == "outline" else after(passage.text, edit)
            if text is None:
                return None
            if text != passage.text:
                keys = tuple(dict.fromkeys(name.key for name in names.find(text)))
                passage = msgspec.structs.replace(
                    passage, text=text, entry=edit.entry, names=(*keys, passage.topic)
                )
        return passage


@lru_cache(maxsize=512)
def _lines(text: str) -> frozenset[str]:
    return frozenset(" ".join(line.split()) for line in text.split("\n"))


@lru_cache(maxsize=512)
def _taken(edit: FileEdit) -> frozenset[str]:
    """Return the lines that an edit takes out."""
    return _lines(edit.old) - _lines(edit.new)


@lru_cache(maxsize=64)
def _flat(text: str) -> str:
    return " ".join(text.split())


def after(text: str, edit: FileEdit) -> str | None:
    """Return a quoted line as it reads after an edit of its file; None where it stands there no more."""
    core = " ".join(text.strip("…").split())
    old = edit.old.strip()
    if edit.whole:
        return text if core in _flat(edit.new) else _reworded(core, _lines(edit.new))
    if "\n" not in old:
        if len(old) < 3 or old not in core or old in edit.new:
            return text
        new = edit.new.strip()
        return (
            clip(core.replace(old, new), LONGEST) if new and "\n" not in new else _reworded(core, _lines(new))
        )
    taken = _taken(edit)
    if (len(core) >= SHORTEST and core in "\n".join(taken)) or any(
        len(line) >= SHORTEST and line in core for line in taken
    ):
        return _reworded(core, _lines(edit.new) - _lines(edit.old))
    return text


def _reworded(line: str, others: Iterable[str]) -> str | None:
    """Return the line among `others` that has most words in common with `line`, if it has most of them."""
    mine = set(re.findall(r"\w+", line))
    best, share = "", 0.0
    for other in sorted(others):
        theirs = set(re.findall(r"\w+", other))
        common = len(mine & theirs) / max(1, len(mine | theirs))
        if common > share:
            best, share = other, common
    return clip(best, LONGEST) if share >= ALIKE else None


def outlined(passage: TopicPassage, edit: FileEdit) -> str | None:
    """Return a definition as it reads after an edit; None where what it defined is gone."""
    word = re.compile(rf"(?<!\w){re.escape(passage.head)}(?!\w)") if passage.head else None
    if word is None:
        return passage.text
    if edit.whole:
        return passage.text if word.search(edit.new) else None
    taken = [line for line in _taken(edit) if passage.head in line and word.search(line) and _defines(line)]
    if not taken or passage.text.startswith(f"`{passage.head}`"):
        return passage.text if not taken or word.search(edit.new) else None
    given = [line for line in sorted(_lines(edit.new)) if word.search(line) and _defines(line)]
    return f"`{clip(_signature(given[0]), 80)}`" if given else None


def _signature(line: str) -> str:
    """Write a definition without the types of its parameters."""
    for _ in range(3):
        line = re.sub(r"\[[^\[\]]*\]", "", line)
    line = re.sub(r"(?<=\w)\??:\s*[^,()=]+(?=[,)=])", "", line)
    return re.sub(r"\)\s*(?:->|:).*$", ")", line).rstrip("{:;=( ")


def _defines(line: str) -> bool:
    return bool(
        re.search(
            r"\b(?:func|def|class|interface|type|struct|enum|trait|fn|function|const|let|var|val)\s", line
        )
    )
