"""What a page shows of a history: lines of messages, folded ones together, results with their calls."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
# all but a path's end
_FOLDERS: Final = re.compile(r"(?<![\w.@+~-])/?(?:[\w.@+~-]+/){2,}(?=[\w.@+~-]+/[\w.@+~-])")
_FAILED: Final = re.compile(" wrote no summary: | was rejected: ")  # in the notes of a receipt
_WORD: Final = re.compile(r"([^\W_]+)")

Item = ShownMessage | ShownBoundary
Place = tuple[str, int]  # of a call: its message, and which of the parts it is


class SentMessage(msgspec.Struct, frozen=True):
    """A message of the view: who says it, how it begins, and its JSON, broken where its texts break."""

    role: str
    start: str
    json: str


def who(message: ShownMessage) -> str:
    """Return who speaks: user, program, assistant, tool, system."""
    if message.parts and all(part.kind == "result" for part in message.parts):
        return "tool"
    if message.role == "developer":
        return "system"
    return "program" if message.injected else message.role


def start(message: ShownMessage) -> str:
    """Return how a message begins: its words, else the calls that it makes, else what came back."""
    return _start(message.parts) or "(empty)"


def _start(parts: Sequence[ShownPart]) -> str:
    kinds = ("text", "call", "result", "thinking", "media", "other")
    part = min(parts, key=lambda one: kinds.index(one.kind), default=None)
    if part is None:
        return ""
    return called(part) if part.kind == "call" else line(part.text or part.name)


def called(call: ShownPart) -> str:
    """Return a call as a line: the tool, and what it is given, long paths by their ends."""
    given = fields_of(call.text)
    values: list[Any] = [call.text] if given is None else list(given.values())
    words = " ".join(one if isinstance(one, str) else encode_utf8(one).decode() for one in values)
    return line(f"{call.name} {_FOLDERS.sub('…/', words[: 8 * LINE])}")


def sent(message: dict[str, Any], dialect: str) -> SentMessage:
    """Return a message of the view as it is sent."""
    parts = [shown_part(one) for one in get(dialect).decode(message).parts]
    role = str(message.get("role") or message.get("type") or "")
    answers = role == "user" and parts and all(one.kind == "result" for one in parts)  # as Anthropic has it
    words = _BREAK.sub(r"\1\\n\n", pretty(message).decode())
    begins = _start(parts) or "(thinking without words)"
    return SentMessage(f"{role}, results" if answers else role, begins, words)


def largest(messages: Iterable[ShownMessage], most: int) -> list[tuple[ShownMessage, str]]:
    """Return the largest of the messages that are sent, and a line of each: of a result, what was called."""
    found: list[tuple[ShownMessage, str]] = []
    newest = ""
    for one in messages:
        calls = [called(part) for part in one.parts if part.kind == "call"]
        newest = "; ".join(calls) or newest
        if one.how not in HIDDEN:
            found.append((one, line(newest) if who(one) == "tool" and newest else start(one)))
    return sorted(found, key=lambda pair: -pair[0].tokens)[:most]


def line(text: str, most: int = LINE) -> str:
    """Return a text as one line of so many characters."""
    whole = " ".join(text[: 8 * most].split())
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def marked(text: str, query: str) -> list[tuple[str, bool]]:
    """Return a text in pieces: those that a word of the query begins are marked."""
    asked = [term for word in search.words(query) for term in search.terms(word)]
    pieces = _WORD.split(text)
    return [
        (
            piece,
            number % 2 == 1 and any(term.startswith(one) for term in search.terms(piece) for one in asked),
        )
        for number, piece in enumerate(pieces)
        if piece
    ]


def summary_failure(receipt: Receipt) -> str:
    """Return why no model wrote the summary of a fold, and code did; "" if no model failed."""
    return "; ".join(filter(_FAILED.search, receipt.notes)) if receipt.summarizer == OFFLINE else ""


# ---- a history: folded messages together, folds at their cuts


class Group(msgspec.Struct, frozen=True):
    """Folded messages in a row, with the boundaries among them; or one item that is not folded.

    `fold` stands where what follows is sent: its summary is what the model reads instead.
    """

    folded: bool
    members: list[Item]
    fold: ShownBoundary | None = None

    @property
    def messages(self) -> list[ShownMessage]:
        """The messages of it."""
        return [one for one in self.members if isinstance(one, ShownMessage)]

    @property
    def tokens(self) -> int:
        """Their size."""
        return sum(one.tokens for one in self.messages)


def grouped(items: Sequence[Item], fold: ShownBoundary | None, *, newest: bool = True) -> list[Group]:
    """Return items with folded messages in a row put together, with boundaries and excluded ones between.

    `fold` is the newest fold that holds; unless `newest`, more messages follow, which may be folded as well.
    """
    items = _at_their_cuts(items, fold)
    inside = [isinstance(one, ShownMessage) and one.how == "folded" for one in items]
    places = [number for number, folded in enumerate(inside) if folded]
    for last, following in pairwise(places):
        between = range(last + 1, following)
        if all(_may_be_inside(items[number]) for number in between):
            for number in between:
                inside[number] = True
    found: list[Group] = []
    for one, folded in zip(items, inside, strict=True):
        if folded and found and found[-1].folded:
            found[-1].members.append(one)
        else:
            found.append(Group(folded, [one]))
    last = max((number for number, one in enumerate(found) if one.folded), default=len(found))
    if last < len(found) - (not newest):
        found[last] = msgspec.structs.replace(found[last], fold=fold)
    return found


def _at_their_cuts(items: Sequence[Item], fold: ShownBoundary | None) -> list[Item]:
    """Return items with each fold before the first message that it kept, if that is among them.

    The newest one that holds is left out where its messages are: it is shown behind them.
    """
    messages = [one for one in items if isinstance(one, ShownMessage)]
    known = {one.entry for one in messages}
    shown_behind = fold.entry if fold and any(one.how == "folded" for one in messages) else None
    at: dict[str, list[Item]] = defaultdict(list)
    rest: list[Item] = []
    for one in items:
        first = (
            one.receipt.first_kept if isinstance(one, ShownBoundary) and one.made == "compaction" else None
        )
        if isinstance(first, str) and first in known:
            at[first].append(one)
        else:
            rest.append(one)
    placed = [each for one in rest for each in (*at[one.entry], one)]
    return [one for one in placed if one.entry != shown_behind]


def _may_be_inside(one: Item) -> bool:
    return isinstance(one, ShownBoundary) or one.how == "excluded"


def newest_fold(boundaries: Sequence[ShownBoundary]) -> ShownBoundary | None:
    """Return the newest fold that was not undone."""
    made = (one for one in reversed(boundaries) if one.made == "compaction" and not one.undone)
    return next(made, None)


def state_of(items: Sequence[Item]) -> str:
    """Return a word that changes where an item that is shown has changed: by a fold, an undo, a pin."""
    looks = [
        [one.entry, *([one.how, one.pinned] if isinstance(one, ShownMessage) else [one.undone])]
        for one in items
    ]
    return digest(encode_utf8(looks))[:16]


# ---- what a call was answered


class PairedResult(msgspec.Struct, frozen=True):
    """A result, shown with its call; `first` of its message: there the message's own buttons are."""

    message: ShownMessage
    part: ShownPart
    first: bool


def answers(items: Sequence[Item]) -> dict[Place, PairedResult]:
    """Return what each call was answered, of the messages that hold nothing but results of these calls."""
    calls: dict[str, Place] = {}
    found: dict[Place, PairedResult] = {}
    for one in items:
        if not isinstance(one, ShownMessage):
            continue
        ids = {part.call for part in one.parts if part.kind == "result" and part.call in calls}
        if one.parts and len(ids) == len(one.parts):
            for number, part in enumerate(one.parts):
                found[calls.pop(part.call)] = PairedResult(one, part, first=not number)
        else:
            calls |= {part.call: (one.entry, n) for n, part in enumerate(one.parts) if part.kind == "call"}
    return found


def within(found: Mapping[Place, PairedResult]) -> set[str]:
    """Return the messages that are shown with calls, by their ids."""
    return {one.message.entry for one in found.values()}
