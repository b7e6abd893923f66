"""What of a range is carried over a fold: instructions and earlier summaries, the newest of a kind, bounded.

The choice is made for all of a view at once, whatever the cut: what stands behind it is shown there anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from foldline.core.carried.instructions import SEALED, kind_of, ridden_in
from foldline.core.carried.summaries import SERVER, earlier_summaries, text_of
from foldline.core.log.entries import Carried, Said
from foldline.core.log.messages import Part, Text

SUMMARY_SHARE = 0.4  # of the room that an earlier summary may have at least
A_BLOCK = 16  # tokens of the tags around a text
LEAST = 40  # tokens below which the beginning of a text says nothing
NAMED = 80  # characters by which a receipt names what had no room


class Dropped(NamedTuple):
    """What had no room, in part or whole: its kind, its name, and the entry that it stands in."""

    kind: str
    name: str
    entry: str


class Carry(msgspec.Struct, frozen=True):
    """What is carried: the ids of messages that stay as they are, the texts to quote, and their tokens.

    `replaces` maps a leading message to the newer one that takes its place; `dropped` is what had no room.
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
    whole: Collection[str] = (),
    begun: bool = False,
) -> Carry:
    """Choose what to carry of `entries` (oldest first) and of what the checkpoint before carried.

    All of it takes at most `room` tokens, newest first: what is too large keeps its beginning, or is named in
    `dropped`. `whole` are entries that stay anyhow: what they hold takes no room. `begun`: the conversation
    has begun before `entries`.
    """
    newest = newest_messages(entries)
    texts = _newest_texts((*before, *ridden_in(entries), *earlier_summaries(entries, begun=begun)))
    summaries = [one for one in texts if one.kind == "summary"]
    held = min(sum(count(one.text) + A_BLOCK for one in summaries), int(room * SUMMARY_SHARE))
    purse = _Purse(room - held, count, frozenset(whole))
    stay = {kind: entry.id for kind, entry in newest.items() if purse.takes(entry)}
    quoted = [purse.fitted(one) for one in texts if one.kind != "summary"]
    purse.left += held
    quoted += [purse.fitted(one) for one in summaries]
    return Carry(
        messages=tuple(stay.values())[::-1],
        texts=tuple(one for one in quoted[::-1] if one is not None),
        tokens=room - purse.left,
        replaces={old.id: stay[kind] for old in leading if (kind := kind_of(old.message)) in stay},
        dropped=tuple(purse.dropped),
    )


class _Purse:
    """Tokens that are given away, first come first served."""

    def __init__(self, left: int, count: Callable[[str], int], whole: frozenset[str]) -> None:
        self.left = left
        self.dropped: list[Dropped] = []
        self._count = count
        self._whole = whole

    def takes(self, entry: Said) -> bool:
        """Whether a message has room."""
        if entry.id in self._whole:
            return True
        if entry.tokens > self.left:
            self.dropped.append(Dropped("instructions", name_of(entry), entry.id))
            return False
        self.left -= entry.tokens
        return True

    def fitted(self, one: Carried) -> Carried | None:
        """Return a text as far as it has room, None where there is none."""
        if one.entry in self._whole:
            return one
        name = ", ".join(one.sources) if one.kind == "instructions" else "an earlier summary"
        size = self._count(one.text) + A_BLOCK
        if size > self.left:
            text = begun(one.text, self.left - A_BLOCK, self._count) if self.left >= LEAST else ""
            name = f"{name} (all but its beginning)" if text else name
            self.dropped.append(Dropped(one.kind, name, one.entry))
            if not text:
                return None
            one = msgspec.structs.replace(one, text=text)
            size = self._count(text) + A_BLOCK
        self.left -= size
        return one


def begun(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """Return the beginning of a text in at most `tokens` tokens, and what is left out; "" if none fits."""
    length = len(text) * tokens // max(count(text), 1)
    while length > 0:
        short = f"{text[:length].rstrip()}\n[... {len(text) - length:,} more characters ...]"
        if count(short) <= tokens:
            return short
        length = length * 9 // 10
    return ""


def without_carried(entries: Iterable[Said], carried: Iterable[Carried]) -> list[Said]:
    """Return messages without the texts that are carried; those that say nothing else are left out."""
    texts: dict[str, list[Carried]] = {}
    for one in carried:
        texts.setdefault(one.entry, []).append(one)
    rest = (_without(entry, texts[entry.id]) if entry.id in texts else entry for entry in entries)
    return [entry for entry in rest if entry.message.parts]


def _without(entry: Said, carried: Sequence[Carried]) -> Said:
    parts: list[Part] = list(entry.message.parts)
    for one in carried:
        for index, part in enumerate(parts):
            if isinstance(part, Text) and one.text in part.text:
                rest = part.text.replace(one.text, "") if one.kind == "instructions" else ""
                parts[index] = Text(rest)
    told = {one.text for one in carried}
    said = tuple(
        part
        for part in parts
        if (not isinstance(part, Text) or part.text.strip()) and text_of(part) not in told
    )
    message = msgspec.structs.replace(entry.message, parts=said, native=None)
    return msgspec.structs.replace(entry, message=message)


def newest_messages(entries: Sequence[Said]) -> dict[Hashable, Said]:
    """Return the newest system or developer message of each kind, the newest first."""
    found: dict[Hashable, Said] = {}
    for entry in reversed(entries):
        if (kind := kind_of(entry.message)) is not None:
            found.setdefault(kind, entry)
    return found


def _newest_texts(texts: Iterable[Carried]) -> list[Carried]:
    """Return the texts that no newer one replaces, the newest first.

    Instructions replace those of the same files, a summary those of its form, a server's all before it.
    """
    found: list[Carried] = []
    for one in reversed(list(texts)):
        if not any(_replaces(new, one) for new in found):
            found.append(one)
    return found


def _replaces(new: Carried, old: Carried) -> bool:
    if new.kind != old.kind:
        return False
    return new.sources == (SERVER,) or set(old.sources) <= set(new.sources)


def name_of(entry: Said) -> str:
    """Return what a receipt calls a message that stays as it is: its first line, or what it holds."""
    if kind_of(entry.message) == SEALED:
        return "a compaction of the provider's"
    return named(entry.message.text) or "tools"


def named(text: str) -> str:
    """Return what a receipt calls a text: its first line, as far as that is short."""
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= NAMED else f"{line[: NAMED - 1]}…"
