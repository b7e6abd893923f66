"""Find the instructions of systems, developers and projects, in any message.

A fold keeps them whole. System and developer messages stay unchanged; project instructions inside user
messages (CLAUDE.md, AGENTS.md) are quoted. Tool results never count as instructions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from hashlib import sha256
from typing import Any, cast

from foldline.core.carried.summaries import is_summary, sealed_place
from foldline.core.log.codec import encode
from foldline.core.log.entries import Carried, Said
from foldline.core.log.messages import Message, Opaque, Text

VALUE_WORDS = (
    3  # most words of the value after a label: "MODE: read-only" replaces a mode, a sentence does not
)
SEALED = "sealed"  # the kind of a reply with a sealed compaction, which only its provider can read
TRIGGER = "compaction_trigger"  # an item that asks for something once and has no later effect

_FILE = re.compile(
    r"^Contents of (?P<path>[^\n]{1,1000}?) \([^()\n]{0,200}instructions[^()\n]{0,200}\):[ \t]*$",
    re.MULTILINE,
)
_CLAUDE = re.compile(r"^# claudeMd[ \t]*$", re.MULTILINE)
_TAG = r"(?i:(?:\w{1,40}[_-])?(?:instructions|rules))"
# A fixed set of first letters makes the search fast.
_OPENING = re.compile(
    r"[<#C](?:"
    r"(?<=<)(?P<reminder>system[-_]reminder)>"
    r"|(?<=#) (?P<name>[\w.-]{1,100}\.md) instructions(?: for (?P<dir>[^\n]{0,1000}))?\n\s*"
    r"<(?P<agents>INSTRUCTIONS)>"
    rf"|(?<=<)(?P<tagged>{_TAG})>"
    r"|(?<=^C)(?=ontents of ))",
    re.MULTILINE,
)
_CLOSING = re.compile(rf"</(system[-_]reminder|{_TAG})>")
_GUIDE = re.compile(r"\s*# (?P<name>[\w.-]+\.md)[ \t]*\n\s*This file provides guidance to ")
_OPENING_TAG = re.compile(r"<[^<>\n]{1,200}>")
_HEADING = re.compile(r"(?P<level>#{1,6})[ \t]+(?P<title>[^\n]*?)[ \t:#]*")
_COMPACT_HEADING = "compact instructions"  # a heading that Claude Code also reads in CLAUDE.md
_LABELLED = re.compile(r"(?P<label>[^\n:.!?]{1,40}):[ \t]++(?P<value>[^\n]+)")


def kind_of(message: Message) -> Hashable | None:
    """Return the kind of a message that always stays; None for one that may be folded.

    System and developer messages and sealed compactions stay. A newer message replaces an older one of the
    same kind: the role and the tag, heading or line that it begins with, ignoring numbers. Messages with
    other blocks (tools given in the input) have the same kind only if they are equal.
    """
    if sealed_place(message) is not None:
        return SEALED
    if message.role not in ("system", "developer") or is_summary(message):
        return None
    opaque = [part for part in message.parts if not isinstance(part, Text)]
    if any(isinstance(part, Opaque) and part.kind == TRIGGER for part in opaque):
        return None
    if opaque:
        return (message.role, sha256(encode([_content(part) for part in message.parts])).hexdigest())
    text = message.text.strip()
    return (message.role, _shape_of(text)) if text else None


def _content(part: object) -> object:
    """Return a part without the id from its server."""
    if isinstance(part, Opaque) and isinstance(part.data, dict):
        data = cast("dict[str, Any]", part.data)
        return [part.kind, {key: value for key, value in data.items() if key != "id"}]
    return part


def _shape_of(text: str) -> str:
    """Return the tag, heading or label that a text begins with, else its first line; digits become 0."""
    first_line = text.split("\n", 1)[0].strip()
    if tag := _OPENING_TAG.match(first_line):
        return tag[0]
    label = _LABELLED.fullmatch(text)
    if label is not None and len(label["value"].split()) <= VALUE_WORDS:
        first_line = f"{label['label']}:"
    return re.sub(r"\d+", "0", first_line)


def ridden_in(entries: Iterable[Said]) -> Iterator[Carried]:
    """Yield the blocks of instructions in user messages, oldest first."""
    for entry in entries:
        if entry.message.role != "user":
            continue
        for part in entry.message.parts:
            if isinstance(part, Text):
                for sources, text in instructions_in(part.text):
                    yield Carried("instructions", sources, text, entry.id)


def instructions_in(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the blocks of instructions in a text of a user message, each with the files that it quotes."""
    if _GUIDE.match(text):
        yield (text.split("\n", 1)[0].strip("# "),), text.strip()
        return
    for start, end, opening in _blocks(text):
        if sources := _sources(text[start:end], opening):
            yield sources, text[start:end].strip()


def _blocks(text: str) -> Iterator[tuple[int, int, re.Match[str]]]:
    """Yield start, end and opening of each closed block; a file without tags runs to the end.

    The closings are collected first, so that an opening without one costs little.
    """
    closings: dict[str, list[re.Match[str]]] = {}
    for closing in _CLOSING.finditer(text):
        closings.setdefault(closing[1], []).append(closing)
    position = 0
    for opening in _OPENING.finditer(text):
        if opening.start() < position:
            continue
        tag = opening["reminder"] or opening["agents"] or opening["tagged"]
        if tag is None:
            if _FILE.match(text, opening.start()):
                yield opening.start(), len(text), opening
                return
            continue
        candidates = closings.get(tag, [])
        first = bisect_left(candidates, opening.end(), key=lambda closing: closing.start())
        if first < len(candidates):
            position = candidates[first].end()
            yield opening.start(), position, opening


def _sources(block: str, opening: re.Match[str]) -> tuple[str, ...]:
    """Return the sources that a block quotes; empty if it holds no instructions."""
    if opening["agents"]:
        return (f"{opening['name']} for {opening['dir'].strip()}" if opening["dir"] else opening["name"],)
    if opening["tagged"]:
        return (f"<{opening['tagged'].lower()}>",)
    files = tuple(dict.fromkeys(match["path"] for match in _FILE.finditer(block)))
    return files or (("# claudeMd",) if _CLAUDE.search(block) else ())


def on_compacting(text: str) -> str:
    """Return what instructions say about summaries: the sections with the heading `Compact instructions`.

    The heading may have any level. A section ends at the next heading of its level or above, at the closing
    tag of its block, or where the next file begins.
    """
    body_lines: list[str] = []
    level, in_code = 0, False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        in_code ^= fence
        heading = None if in_code or fence else _HEADING.fullmatch(line.rstrip())
        if heading and (not level or len(heading["level"]) <= level):
            level = len(heading["level"]) if heading["title"].lower() == _COMPACT_HEADING else 0
        elif level and not in_code and (_CLOSING.match(line) or _FILE.match(line)):
            level = 0
        elif level:
            body_lines.append(line)
    return "\n".join(body_lines).strip()
