"""Choose what a fold carries over: instructions and earlier summaries, the newest of each kind, bounded.

The choice covers the whole view, whatever the cut: texts after the cut are still shown there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from foldline.core.carried.instructions import SEALED, kind_of, ridden_in
from foldline.core.carried.summaries import SERVER, earlier_summaries, text_of
from foldline.core.log.entries import Carried, Said
from foldline.core.log.messages import Part, Text

SUMMARY_SHARE = 0.4  # of the room, reserved for earlier summaries
A_BLOCK = 16  # tokens of the tags around a text
LEAST = 40  # tokens: a shorter beginning of a text is useless
NAMED = 80  # characters of a name in a receipt


class Dropped(NamedTuple):
    """What had no room, in part or whole: its kind, its name, and its entry."""

    kind: str
    name: str
    entry: str


class Carry(msgspec.Struct, frozen=True):
    """What is carried: the ids of messages that stay unchanged, the texts to quote, and their tokens.

    `replaces` maps a leading message to the newer one that replaces it; `dropped` is what had no room.
    """

    messages: tuple[str, ...] = ()
    texts: tuple[Carried, ...] = ()
    tokens: int = 0
    replaces: dict[str, str] = {}
    dropped: tuple[Dropped, ...] = ()


def carry(
    leading: Sequence[Said],
    entries: Sequence[Said],
    before: Iterable[Carried],
    room: int,
    count: Callable[[str], int],
    *,
    shown: Collection[str] = (),
    begun: bool = False,
) -> Carry:
    """Choose what to carry of `entries` (oldest first) and of what the checkpoint before carried.

    It takes at most `room` tokens, newest first; a text that is too large keeps its beginning, or is named in
    `dropped`. Entries whose ids are `shown` stay in any case, so their texts take no room. `begun`: the
    conversation began before `entries`.
    """
    newest = newest_messages(entries)
    texts = _newest_texts((*before, *ridden_in(entries), *earlier_summaries(entries, begun=begun)))
    summaries = [carried for carried in texts if carried.kind == "summary"]
    reserved = min(sum(count(carried.text) + A_BLOCK for carried in summaries), int(room * SUMMARY_SHARE))
    budget = _TokenBudget(room - reserved, count, frozenset(shown))
    kept_ids = {kind: entry.id for kind, entry in newest.items() if budget.take(entry)}
    chosen = [budget.fit(carried) for carried in texts if carried.kind != "summary"]
    budget.left += reserved
    chosen += [budget.fit(carried) for carried in summaries]
    return Carry(
        messages=tuple(kept_ids.values())[::-1],
        texts=tuple(carried for carried in chosen[::-1] if carried is not None),
        tokens=room - budget.left,
        replaces={old.id: kept_ids[kind] for old in leading if (kind := kind_of(old.message)) in kept_ids},
        dropped=tuple(budget.dropped),
    )


class _TokenBudget:
    """A budget of tokens, first come first served."""

    def __init__(self, left: int, count: Callable[[str], int], shown: frozenset[str]) -> None:
        self.left = left
        self.dropped: list[Dropped] = []
        self._count = count
        self._shown = shown

    def take(self, entry: Said) -> bool:
        """Take a message; return whether it had room."""
        if entry.id in self._shown:
            return True
        if entry.tokens > self.left:
            self.dropped.append(Dropped("instructions", name_of(entry), entry.id))
            return False
        self.left -= entry.tokens
        return True

    def fit(self, carried: Carried) -> Carried | None:
        """Return a text or its beginning, as there is room; None if there is none."""
        if carried.entry in self._shown:
            return carried
        name = ", ".join(carried.sources) if carried.kind == "instructions" else "an earlier summary"
        size = self._count(carried.text) + A_BLOCK
        if size > self.left:
            text = begun(carried.text, self.left - A_BLOCK, self._count) if self.left >= LEAST else ""
            name = f"{name} (all but its beginning)" if text else name
            self.dropped.append(Dropped(carried.kind, name, carried.entry))
            if not text:
                return None
            carried = msgspec.structs.replace(carried, text=text)
            size = self._count(text) + A_BLOCK
        self.left -= size
        return carried


def begun(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """Return the beginning of a text in at most `tokens` tokens, with the omitted length; "" if none fits."""
    length = len(text) * tokens // max(count(text), 1)
    while length > 0:
        shortened = f"{text[:length].rstrip()}\n[... {len(text) - length:,} more characters ...]"
        if count(shortened) <= tokens:
            return shortened
        length = length * 9 // 10
    return ""


def without_carried(entries: Iterable[Said], carried: Iterable[Carried]) -> list[Said]:
    """Return messages without the carried texts; messages with nothing else are left out."""
    texts: dict[str, list[Carried]] = {}
    for quote in carried:
        texts.setdefault(quote.entry, []).append(quote)
    rest = (_without(entry, texts[entry.id]) if entry.id in texts else entry for entry in entries)
    return [entry for entry in rest if entry.message.parts]


def _without(entry: Said, carried: Sequence[Carried]) -> Said:
    parts: list[Part] = list(entry.message.parts)
    for quote in carried:
        for index, part in enumerate(parts):
            if isinstance(part, Text) and quote.text in part.text:
                remainder = part.text.replace(quote.text, "") if quote.kind == "instructions" else ""
                parts[index] = Text(remainder)
    carried_texts = {quote.text for quote in carried}
    left = tuple(
        part
        for part in parts
        if (not isinstance(part, Text) or part.text.strip()) and text_of(part) not in carried_texts
    )
    message = msgspec.structs.replace(entry.message, parts=left, native=None)
    return msgspec.structs.replace(entry, message=message)


def newest_messages(entries: Sequence[Said]) -> dict[Hashable, Said]:
    """Return the newest message of each kind that always stays, newest first."""
    newest: dict[Hashable, Said] = {}
    for entry in reversed(entries):
        if (kind := kind_of(entry.message)) is not None:
            newest.setdefault(kind, entry)
    return newest


def _newest_texts(texts: Iterable[Carried]) -> list[Carried]:
    """Return the texts that no newer one replaces, newest first.

    Instructions replace those of the same files, a summary those of its form, a server's all before it.
    """
    newest: list[Carried] = []
    for quote in reversed(list(texts)):
        newer = (new for new in newest if new.kind == quote.kind)
        if not any(new.sources == (SERVER,) or set(quote.sources) <= set(new.sources) for new in newer):
            newest.append(quote)
    return newest


def name_of(entry: Said) -> str:
    """Return a name for a receipt of a message that stays: its first line, or what it holds."""
    if kind_of(entry.message) == SEALED:
        return "a compaction by the provider"
    return named(entry.message.text) or "tools"


def named(text: str) -> str:
    """Return a name for a receipt of a text: the beginning of its first line."""
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= NAMED else f"{line[: NAMED - 1]}…"
