"""The items of entries: what was said, word for word, and what each call did, in the order of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

import msgspec

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.kinds import LEVELS, SPOKEN, Item, Ledger
from foldline.core.ledger.facts.uses import Action
from foldline.core.ledger.text.origin import UserSpeech, shown
from foldline.core.ledger.text.sentences import cut
from foldline.core.log.entries import Said
from foldline.core.log.messages import Media, Text, ToolCall
from foldline.core.measure.media import media_label

ASIDE = 240  # characters of prose right before a call that only announces it
SENT_AGAIN = 60  # characters of a message that is not repeated by chance
MORE = 4_800  # characters of the new lines of the edits of one file
NAMES = 10  # names that the edits of one file bring
BEFORE, OUTCOME = "; before: ", 100  # what introduces an earlier outcome, and its characters
SILENT = "no output"
CHANGED = 200  # characters of the changed lines of the edits of one file
HEAD, TAIL = 12_000, 4_000  # characters of one message that are carried: its opening and its end
CARRIED = {0: 160_000, 1: 80_000, 2: 60_000, 3: 60_000, 4: 16_000}  # characters of a level from fold to fold
ENVELOPE = 60  # characters that an item takes in addition to its text
CARRIED_MORE = 60_000  # characters of the further lines of items


def collect(found: Stretch) -> tuple[Item, ...]:
    """Take the items of entries, with repeats within one request once."""
    by_place: dict[tuple[str, str], list[Action | None]] = {}
    for use in found.calls:
        by_place.setdefault((use.entry, use.call.id), []).append(use.done)
    speech = UserSpeech(shown)
    items: list[Item] = []
    for entry, after in zip_longest(found.entries, found.entries[1:]):
        mine = (*speech.own(entry), *_media(entry))
        if mine:
            spoken = _spoken("user", "\n".join(mine), entry.id)
            items.append(msgspec.structs.replace(spoken, by=entry.message.name or ""))
        elif not entry.id and entry.message.role == "assistant" and entry.message.text.strip():
            items.append(_spoken("summary", entry.message.text, ""))
        elif entry.message.role == "assistant":
            goes_on = after is not None and after.message.role == "assistant"
            items.extend(_of_reply(entry, by_place, goes_on=goes_on))
    return tuple(_once(items))


def _of_reply(
    entry: Said, by_place: dict[tuple[str, str], list[Action | None]], *, goes_on: bool
) -> Iterator[Item]:
    """Yield the items of one reply; `goes_on`: another one follows it at once."""
    announces = goes_on or bool(entry.message.calls)
    for part in entry.message.parts:
        if isinstance(part, Text) and part.text.strip():
            aside = announces and len(part.text) <= ASIDE
            yield _spoken("aside" if aside else "said", part.text, entry.id)
        elif isinstance(part, ToolCall):
            waiting = by_place.get((entry.id, part.id))
            done = waiting.pop(0) if waiting else None
            if done is not None:
                yield Item(done.kind, done.text, entry.id, calls=1, more=done.more)


def _media(entry: Said) -> list[str]:
    """Name the images and documents that the user put into a message."""
    parts = entry.message.parts if entry.message.is_prompt else ()
    return [media_label(part) for part in parts if isinstance(part, Media)]


def _spoken(kind: str, text: str, entry: str) -> Item:
    text = text.strip()
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD].rstrip()}\n… {len(text) - HEAD - TAIL:,} characters …\n{text[-TAIL:].lstrip()}"
    return Item(kind, text, entry)


def _key(item: Item) -> str:
    """What a repeat shares with it: a look's words, the file of an edit, the command of a run."""
    if item.kind == "looked":
        return f"looked {item.text.partition(' -> ')[0]}"
    if item.kind == "ran":
        return item.text.partition(" -> ")[0]
    if item.kind == "edit":
        return item.text.partition(": ")[0]
    return ""


def _once(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items; of repeats within one request only the newest, of repeated looks only the first."""
    last: dict[str, int] = {}
    request = 0
    out: list[Item | None] = []
    for item in items:
        if item.kind in ("user", "answer", "refused"):
            request += 1
            if out and out[-1] is not None and _sent_again(out[-1], item):
                out.pop()
        key = _key(item)
        if key and item.kind != "looked":
            key = f"{request} {key}"
        before = last.get(key) if key else None
        old = out[before] if before is not None else None
        if key:
            last[key] = len(out)
        if old is None or before is None:
            out.append(item)
        elif item.kind == "looked":
            out[before], last[key] = msgspec.structs.replace(old, calls=old.calls + item.calls), before
        else:
            out[before] = None
            text, more = (
                (_both(old, item), _more_of(old, item))
                if item.kind == "edit"
                else (_with_before(old, item), item.more)
            )
            out.append(msgspec.structs.replace(item, text=text, more=more, calls=old.calls + item.calls))
    yield from (item for item in out if item is not None)


def _with_before(old: Item, new: Item) -> str:
    """Return the words of a run with the outcome of the one before it, where that differed."""
    before, now = (item.text.partition(" -> ")[2].partition(BEFORE)[0] or SILENT for item in (old, new))
    if before == now:
        return new.text + "".join(old.text.partition(BEFORE)[1:])
    return f"{new.text.partition(' -> ')[0]} -> {now}{BEFORE}{cut(before, OUTCOME)}"


def _sent_again(old: Item, new: Item) -> bool:
    """Whether the user said the same again at once, with more after it: the first was interrupted."""
    return old.kind == new.kind == "user" and len(old.text) >= SENT_AGAIN and new.text.startswith(old.text)


def _more_of(old: Item, new: Item) -> str:
    """Join the new lines of two edits of one file, the newest at most."""
    if not old.more or not new.more or len(old.more) + len(new.more) > MORE:
        return new.more or old.more
    return f"{old.more}\n…\n{new.more}"


def _both(old: Item, new: Item) -> str:
    """Join what two edits of one file brought: changed lines (in backticks), or names, each once."""
    what, _, now = new.text.partition(": ")
    before = old.text.partition(": ")[2]
    if not before or now in before:
        return f"{what}: {before or now}" if before or now else what
    named = [names.removeprefix("adds ").split(", ") for names in (before, now) if names.startswith("adds ")]
    if named:
        return f"{what}: adds {', '.join(list(dict.fromkeys(chain(*named)))[:NAMES])}"
    return f"{what}: {before}; {now}" if now and len(before) + len(now) <= CHANGED else new.text


def merge(old: Sequence[Item], new: Sequence[Item], _later: Ledger) -> tuple[Item, ...]:
    """Append the items of a later range to those of an earlier one."""
    known = {item.entry for item in old if item.entry and item.kind in SPOKEN}
    return tuple(_once([*old, *(item for item in new if not (item.kind in SPOKEN and item.entry in known))]))


def bound(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items that are carried to the next fold: of each level the newest; the rest become gaps."""
    left, more = dict(CARRIED), CARRIED_MORE
    stay = {next((index for index, item in enumerate(items) if item.kind == "user"), 0)}
    items = list(items)
    for index in range(len(items) - 1, -1, -1):
        more -= len(items[index].more)
        if more < 0 and items[index].more:
            items[index] = msgspec.structs.replace(items[index], more="")
        level = LEVELS.get(items[index].kind, 4)
        left[level] -= len(items[index].text) + ENVELOPE
        if left[level] >= 0:
            stay.add(index)
    found: list[Item] = []
    for index, item in enumerate(items):
        if index in stay and item.kind != "gap":
            found.append(item)
            continue
        gap = gap_of([item])
        if found and found[-1].kind == "gap":
            gap = gap_of([found.pop(), gap])
        found.append(gap)
    return tuple(found)


def gap_of(items: Iterable[Item]) -> Item:
    """Count items as a gap; prose that only announces a call is not counted."""
    messages = calls = 0
    for item in items:
        messages += item.messages + (item.kind in SPOKEN and item.kind != "aside")
        calls += item.calls
    return Item("gap", messages=messages, calls=calls)
