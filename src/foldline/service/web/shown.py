"""A history for display: one-line texts, folded messages in groups, results next to their calls."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from foldline.core.checkpoint.obtain import OFFLINE
from foldline.core.log.codec import encode_utf8, pretty
from foldline.core.log.entries import Receipt
from foldline.core.log.log import digest
from foldline.dialects import get
from foldline.service.api.history import ShownBoundary, ShownMessage, ShownPart, shown_part
from foldline.service.web.prose import fields_of
from foldline.session.recall import HIDDEN
from foldline.stores import search

LINE: Final = 160  # characters of a line
_BREAK: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\n")  # an escaped line break in JSON
# all folders of a path but the last
_FOLDERS: Final = re.compile(r"(?<![\w.@+~-])/?(?:[\w.@+~-]+/){2,}(?=[\w.@+~-]+/[\w.@+~-])")
_FAILED: Final = re.compile(" wrote no summary: | was rejected: ")  # in the notes of a receipt
_WORD: Final = re.compile(r"([^\W_]+)")

Item = ShownMessage | ShownBoundary
Place = tuple[str, int]  # of a call: its message and the number of its part


class SentMessage(msgspec.Struct, frozen=True):
    """A message of the view: its role, its first words, and its JSON with line breaks in texts."""

    role: str
    start: str
    json: str


def who(message: ShownMessage) -> str:
    """Return the speaker: user, program, assistant, tool or system."""
    if message.parts and all(part.kind == "result" for part in message.parts):
        return "tool"
    if message.role == "developer":
        return "system"
    return "program" if message.injected else message.role


def start(message: ShownMessage) -> str:
    """Return the first words of a message: of its text, else of its calls, else of its results."""
    return _start(message.parts) or "(empty)"


def _start(parts: Sequence[ShownPart]) -> str:
    kinds = ("text", "call", "result", "thinking", "media", "other")
    part = min(parts, key=lambda part: kinds.index(part.kind), default=None)
    if part is None:
        return ""
    return called(part) if part.kind == "call" else line(part.text or part.name)


def called(call: ShownPart) -> str:
    """Return a call on one line: the tool and its arguments, long paths shortened."""
    fields = fields_of(call.text)
    values: list[Any] = [call.text] if fields is None else list(fields.values())
    words = " ".join(value if isinstance(value, str) else encode_utf8(value).decode() for value in values)
    return line(f"{call.name} {_FOLDERS.sub('…/', words[: 8 * LINE])}")


def sent(message: dict[str, Any], dialect: str) -> SentMessage:
    """Return a message of the view for display."""
    parts = [shown_part(part) for part in get(dialect).decode(message).parts]
    role = str(message.get("role") or message.get("type") or "")
    answers = role == "user" and parts and all(part.kind == "result" for part in parts)  # Anthropic's form
    text = _BREAK.sub(r"\1\\n\n", pretty(message).decode())
    begins = _start(parts) or "(thinking without text)"
    return SentMessage(f"{role}, results" if answers else role, begins, text)


def largest(messages: Iterable[ShownMessage], most: int) -> list[tuple[ShownMessage, str]]:
    """Return the largest messages that are sent, each with a line: for a result, its call."""
    lines: list[tuple[ShownMessage, str]] = []
    newest = ""
    for message in messages:
        calls = [called(part) for part in message.parts if part.kind == "call"]
        newest = "; ".join(calls) or newest
        if message.how not in HIDDEN:
            is_result = who(message) == "tool" and newest
            lines.append((message, line(newest) if is_result else start(message)))
    return sorted(lines, key=lambda pair: -pair[0].tokens)[:most]


def line(text: str, most: int = LINE) -> str:
    """Return the beginning of a text on one line of at most so many characters."""
    words = " ".join(text[: 8 * most].split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def marked(text: str, query: str) -> list[tuple[str, bool]]:
    """Split a text into pieces, and mark those that start with a word of the query."""
    query_terms = [term for word in search.words(query) for term in search.terms(word)]
    pieces = _WORD.split(text)
    return [
        (
            piece,
            number % 2 == 1
            and any(term.startswith(start) for term in search.terms(piece) for start in query_terms),
        )
        for number, piece in enumerate(pieces)
        if piece
    ]


def summary_failure(receipt: Receipt) -> str:
    """Return why no model wrote the summary of a fold, and code did; "" if no model failed."""
    return "; ".join(filter(_FAILED.search, receipt.notes)) if receipt.summarizer == OFFLINE else ""


# ---- grouping: folded messages together, folds at their cuts


class Group(msgspec.Struct, frozen=True):
    """Consecutive folded messages with the boundaries between them, or one item that is not folded.

    `fold` is the fold whose summary replaces the group in the view.
    """

    folded: bool
    members: list[Item]
    fold: ShownBoundary | None = None

    @property
    def messages(self) -> list[ShownMessage]:
        """The messages of the group."""
        return [item for item in self.members if isinstance(item, ShownMessage)]

    @property
    def tokens(self) -> int:
        """The size of its messages."""
        return sum(message.tokens for message in self.messages)


def grouped(items: Sequence[Item], fold: ShownBoundary | None, *, newest: bool = True) -> list[Group]:
    """Group consecutive folded messages, with the boundaries and excluded messages between them.

    `fold` is the newest fold in effect; unless `newest`, more messages follow, which may be folded too.
    """
    items = _at_their_cuts(items, fold)
    inside = [isinstance(item, ShownMessage) and item.how == "folded" for item in items]
    places = [number for number, folded in enumerate(inside) if folded]
    for last, following in pairwise(places):
        between = items[last + 1 : following]
        if all(isinstance(item, ShownBoundary) or item.how == "excluded" for item in between):
            inside[last + 1 : following] = [True] * len(between)
    groups: list[Group] = []
    for item, folded in zip(items, inside, strict=True):
        if folded and groups and groups[-1].folded:
            groups[-1].members.append(item)
        else:
            groups.append(Group(folded, [item]))
    last = max((number for number, group in enumerate(groups) if group.folded), default=len(groups))
    if last < len(groups) - (not newest):
        groups[last] = msgspec.structs.replace(groups[last], fold=fold)
    return groups


def _at_their_cuts(items: Sequence[Item], fold: ShownBoundary | None) -> list[Item]:
    """Move each fold before the first message that it kept, if that is among the items.

    The newest fold in effect is left out if folded messages are shown: their group shows it.
    """
    messages = [item for item in items if isinstance(item, ShownMessage)]
    known = {message.entry for message in messages}
    in_group = fold.entry if fold and any(message.how == "folded" for message in messages) else None
    at: dict[str, list[Item]] = defaultdict(list)
    rest: list[Item] = []
    for item in items:
        first = None
        if isinstance(item, ShownBoundary) and item.made == "compaction":
            first = item.receipt.first_kept
        if isinstance(first, str) and first in known:
            at[first].append(item)
        else:
            rest.append(item)
    ordered = [item for following in rest for item in (*at[following.entry], following)]
    return [item for item in ordered if item.entry != in_group]


def newest_fold(boundaries: Sequence[ShownBoundary]) -> ShownBoundary | None:
    """Return the newest fold that was not undone."""
    folds = (item for item in reversed(boundaries) if item.made == "compaction" and not item.undone)
    return next(folds, None)


def state_of(items: Sequence[Item]) -> str:
    """Return a hash that changes when a shown item does: by a fold, an undo, a pin."""
    states = [
        [item.entry, *([item.how, item.pinned] if isinstance(item, ShownMessage) else [item.undone])]
        for item in items
    ]
    return digest(encode_utf8(states))[:16]


# ---- calls and their results


class PairedResult(msgspec.Struct, frozen=True):
    """A result shown with its call; the `first` one of a message has the message's buttons."""

    message: ShownMessage
    part: ShownPart
    first: bool


def answers(items: Sequence[Item]) -> dict[Place, PairedResult]:
    """Return the result of each call, from messages that contain nothing but results of these calls."""
    calls: dict[str, Place] = {}
    results: dict[Place, PairedResult] = {}
    for item in items:
        if not isinstance(item, ShownMessage):
            continue
        ids = {part.call for part in item.parts if part.kind == "result" and part.call in calls}
        if item.parts and len(ids) == len(item.parts):
            for number, part in enumerate(item.parts):
                results[calls.pop(part.call)] = PairedResult(item, part, first=not number)
        else:
            calls |= {part.call: (item.entry, n) for n, part in enumerate(item.parts) if part.kind == "call"}
    return results
