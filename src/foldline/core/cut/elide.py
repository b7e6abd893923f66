"""Shorten what is too large to its head and tail, with a marker between that says how much was left out.

A text is cut at a line break if one is near, and never inside a character. A part of a message is a value
with texts in it (a result, the arguments of a call). Its longest texts are cut to one common size until the
part fits. If that is not enough, notes replace media and nested values. Every limit is in tokens.

Messages that must stay are shortened until they fit together (`shrink`): tool results freely, any other
message only if it is larger than a tenth of usable. The largest parts are shortened first, to one common
size. In a message with several steps, all steps before the last may be shortened like results.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

import msgspec

from foldline.core.cut.edits import EditsOf, PartAt
from foldline.core.log.entries import Edit, Said
from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.steps import last_step
from foldline.core.measure.tokens import Counter, json_text, part_tokens
from foldline.core.secrets.entries import clean_part

Count = Callable[[str], int]

LEAST = "…"  # all that is left of a text if even a marker is too long
REACH = 64  # characters that a cut may move to keep a combining sequence whole
CLOSE = 50  # a search ends within 1 / CLOSE of the limit


# ---- a part


def elide(part: Part, limit: int, counter: Counter, handle: str) -> Part | None:
    """Return the part in at most `limit` tokens (by `part_tokens`): as it is, or its head and tail.

    `handle` names the entry that holds the whole part ("" if it cannot be recalled). None for what cannot be
    shortened: signed thinking and opaque blocks are kept or dropped whole. A limit too small for any marker
    leaves "…".
    """
    if part_tokens(part, counter) <= limit:
        return part
    part = clean_part(part, {})  # first: half a secret is not recognised
    if isinstance(part, Opaque) or (isinstance(part, Thinking) and part.signature is not None):
        return None
    for form in _forms(part, handle):
        shorter = _fitted(form, limit, counter, handle)
        if shorter is not None:
            return shorter
    return _with_value(part, {"elided": LEAST} if _is_object(part) else LEAST)


def _forms(part: Part, handle: str) -> Iterator[Part]:
    """Yield the forms of a part to shorten: as it is, then with notes for nested values or media."""
    if not isinstance(part, Media):
        yield part
    if isinstance(part, ToolResult):
        notes = (inner if isinstance(inner, Text) else _media_note(inner, handle) for inner in part.content)
        yield msgspec.structs.replace(part, content=tuple(notes))
    elif isinstance(part, ToolCall) and isinstance(part.arguments, dict):
        values = {key: _note(value, handle) for key, value in part.arguments.items()}
        yield msgspec.structs.replace(part, arguments=values)
    elif isinstance(part, Media):
        yield _media_note(part, handle)


def _is_object(part: Part) -> bool:
    return isinstance(part, ToolCall) and isinstance(part.arguments, dict)


def _with_value(part: Part, value: Any) -> Part:
    """Return a part with another value in place of its texts."""
    if isinstance(part, ToolCall):
        return msgspec.structs.replace(part, arguments=value)
    if isinstance(part, ToolResult):
        content = (Text(value),) if isinstance(value, str) else value
        return msgspec.structs.replace(part, content=content)
    return Thinking(value) if isinstance(part, Thinking) else Text(value)


def _media_note(part: Part, handle: str) -> Text:
    kind = part.kind if isinstance(part, Media) else "block"
    return Text(f"[{kind} left out{way_back(handle)}]")


def _note(value: Any, handle: str) -> Any:
    """Return a plain argument as it is, and a note for a list or an object."""
    if not isinstance(value, dict | list):
        return cast("object", value)
    size = len(cast("list[object]", value))
    return f"[… {size:,} items left out{way_back(handle)} …]" if size else LEAST


def _fitted(part: Part, limit: int, counter: Counter, handle: str) -> Part | None:
    """Return the part with its longest texts shortened until it fits; None if that is not enough."""
    value: Any = _value(part)
    texts: list[str] = []
    _mapped(value, lambda text: texts.append(text) or text)

    def count(text: str) -> int:
        return counter.count(json_text(text) if _is_object(part) else text)

    sizes = [count(text) for text in texts]
    budget = limit - (part_tokens(part, counter) - sum(sizes))
    while True:
        shorter = iter(shorten_all(texts, sizes, max(0, budget), count, handle))
        candidate = _with_value(part, _mapped(value, lambda _, left=shorter: next(left)))
        over = part_tokens(candidate, counter) - limit
        if over <= 0:
            return candidate
        if budget <= 0:
            return None
        budget -= max(over, budget // 10, 1)  # markers and escapes cost extra


def _value(part: Part) -> Any:
    if isinstance(part, ToolCall):
        return part.arguments
    return part.content if isinstance(part, ToolResult) else cast("Text | Thinking", part).text


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with each of its texts changed, in order; keys, numbers and media stay as they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Text):
        return Text(change(value.text))
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {key: _mapped(inner, change) for key, inner in fields.items()}
    if isinstance(value, list | tuple):
        items = [_mapped(inner, change) for inner in cast("Sequence[object]", value)]
        return tuple(items) if isinstance(value, tuple) else items
    return value


# ---- a text


def marker(characters: int, handle: str) -> str:
    """Return the text between head and tail: how much is left out, and how to recall it."""
    return f"[… {characters:,} characters left out{way_back(handle)} …]"


def way_back(handle: str) -> str:
    """Return how to recall an entry; "" without a handle."""
    return f"; recall {handle}" if handle else ""


def shorten(text: str, limit: int, count: Count, handle: str, *, whole: int | None = None) -> str:
    """Return the text, or its head and tail around a marker, so that `count` is at most `limit` tokens.

    Lines stay whole if that costs less than a quarter of a side. A limit too small for the marker leaves a
    shorter marker, at least "…". `whole` is the count of the whole text, if known.
    """
    whole = count(text) if whole is None else whole
    if whole <= limit:
        return text
    best = next(
        (short for short in (marker(len(text), handle), "[… left out …]") if count(short) <= limit), LEAST
    )
    low, high = 0, min(len(text), len(text) * max(limit, 0) * 2 // whole + REACH)
    while high - low > max(1, high // CLOSE):
        middle = (low + high) // 2
        candidate = _around(text, middle, handle)
        if count(candidate) <= limit:
            best, low = candidate, middle
        else:
            high = middle
    return best


def _around(text: str, characters: int, handle: str) -> str:
    """Return the head and tail of a text, about `characters` long together."""
    half = characters // 2
    line = text.rfind("\n", half - half // 4, half) + 1
    head = line or _spared(text, half, -1)
    tail = max(head, len(text) - half)
    if tail and text[tail - 1] != "\n":
        line = text.find("\n", tail, tail + (len(text) - tail) // 4) + 1
        tail = line or _spared(text, tail, 1)
    before = "" if not head or text[head - 1] == "\n" else "\n"
    after = "\n" if tail < len(text) else ""
    return f"{text[:head]}{before}{marker(tail - head, handle)}{after}{text[tail:]}"


def _spared(text: str, at: int, step: int) -> int:
    """Return the nearest index to `at`, in the direction of `step`, at which a cut splits no character."""
    return next((place for place in range(at, at + step * REACH, step) if not splits(text, place)), at)


def splits(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` splits what is displayed as one character."""
    if not 0 < at < len(text):
        return False
    around, after = text[at - 1 : at + 1], text[at]
    joined = around == "\r\n" or "\u200d" in around or "\udc00" <= after <= "\udfff"
    return joined or unicodedata.category(after) in ("Mn", "Mc", "Me", "Sk")  # accents, skin tones


def level(sizes: Sequence[int], budget: int) -> int:
    """Return the largest cap such that the sizes, each cut to the cap, sum to at most the budget.

    Small texts stay whole; only the largest are shortened.
    """
    left, remaining = budget, len(sizes)
    for size in sorted(sizes):
        if size * remaining > left:
            return max(0, left // remaining)
        left -= size
        remaining -= 1
    return max(sizes, default=0)


def shorten_all(
    texts: Sequence[str], sizes: Sequence[int], budget: int, count: Count, handle: str
) -> list[str]:
    """Return the texts (of `sizes` tokens) with the largest shortened: about `budget` tokens in all."""
    cap = level(sizes, budget)
    return [
        shorten(text, cap, count, handle, whole=size) if size > cap else text
        for text, size in zip(texts, sizes, strict=True)
    ]


# ---- what must stay, shortened until it fits


RESULT_FLOOR = 24  # tokens that a shortened result keeps at least: the marker alone
LARGE = 10  # a message larger than usable / LARGE may be elided


class Elidable(msgspec.Struct):
    """A part that may be shortened, with earlier edits applied, which `saved` some of its tokens."""

    entry: str
    index: int
    part: Part
    tokens: int
    floor: int
    result: bool
    saved: int


def shrink(
    candidates: Sequence[Elidable], need: int, counter: Counter, *, recall: bool = True
) -> tuple[Edit, ...]:
    """Return elisions that save at least `need` tokens, or as many as is allowed.

    With `recall`, markers say how to recall what is left out.
    """
    results = [candidate for candidate in candidates if candidate.result]
    chosen = results if saving(results) >= need else candidates
    level = _level(chosen, need)
    elisions: list[Edit] = []
    for candidate in chosen:
        limit = max(level, candidate.floor)
        if candidate.tokens <= limit:
            continue
        shorter = elide(candidate.part, limit, counter, candidate.entry if recall else "")
        if shorter is not None:
            saved = candidate.tokens - part_tokens(shorter, counter)
            if saved > 0:
                elisions.append(
                    Edit(candidate.entry, candidate.index, "elided", shorter, candidate.saved + saved)
                )
    return tuple(elisions)


def saving(candidates: Sequence[Elidable], level: int = 0) -> int:
    """Return the tokens that are saved by shortening all to `level`, or as far as is allowed."""
    return sum(max(0, candidate.tokens - max(level, candidate.floor)) for candidate in candidates)


def _level(candidates: Sequence[Elidable], need: int) -> int:
    """Return the largest common size that saves enough."""
    low, high = 0, max((candidate.tokens for candidate in candidates), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if saving(candidates, middle) >= need:
            low = middle
        else:
            high = middle - 1
    return low


def candidates_in(
    entries: Iterable[Said],
    usable: int,
    counter: Counter,
    *,
    edits: EditsOf,
    out: AbstractSet[PartAt] = frozenset(),
    least: int | None = None,
) -> list[Elidable]:
    """Return the parts of entries that may be shortened.

    `edits` are earlier ones: a part with an edit is shortened as it is after that. Parts in `out` are not in
    the view. Parts other than results keep `least` tokens (default: usable / LARGE).
    """
    candidates: list[Elidable] = []
    for entry in entries:
        edited = {edit.part: edit for edit in edits.get(entry.id, ())}
        large = entry.tokens > usable // LARGE
        last_start = last_step(entry.message) if large and entry.message.results else 0
        for index, original in enumerate(entry.message.parts):
            part = edited[index].replacement if index in edited else original
            result = isinstance(part, ToolResult)
            unsigned = isinstance(part, Thinking) and part.signature is None
            elidable = result or (large and (unsigned or isinstance(part, Text | ToolCall)))
            if part is None or not elidable or (entry.id, index) in out:
                continue
            kept = usable // LARGE if least is None else least
            floor = RESULT_FLOOR if result or index < last_start else max(kept, RESULT_FLOOR)
            tokens = part_tokens(part, counter)
            if tokens > floor:
                saved = edited[index].saved if index in edited else 0
                candidates.append(Elidable(entry.id, index, part, tokens, floor, result, saved))
    return candidates
