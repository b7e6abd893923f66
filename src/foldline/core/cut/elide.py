"""What is too large keeps its opening and its end; a marker between them says how much was left out.

A text is cut where a reader would cut: at a line break if one is near, never inside a character. A part of a
message is a value with texts in it (a result, the arguments of a call). Its largest texts give way until the
whole fits: all that are longer are cut down to one size. Where that does not suffice, media and nested values
give way to notes. Every limit is in tokens.

Messages that must stay are shortened until they fit together (`shrink`): results of tools freely, any other
message only where it is larger than a tenth of what is usable. The largest parts give first, down to one
common size. Where a message holds a turn of several steps, all before the last one may be shortened as
results are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
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

LEAST = "…"  # what is left of a text that cannot keep even a marker
REACH = 64  # characters that a cut moves at most to spare a combining sequence
CLOSE = 50  # a search ends within one part in so many of the limit


# ---- a part


def elide(part: Part, limit: int, counter: Counter, handle: str) -> Part | None:
    """Return the part in at most `limit` tokens (by `part_tokens`): as it is, or its head and tail.

    `handle` names the entry that holds the whole ("" where nothing can be recalled). None for what cannot be
    shortened: signed reasoning and blocks of a dialect's own; they are kept or dropped whole. A limit too
    small for any marker leaves "…".
    """
    if part_tokens(part, counter) <= limit:
        return part
    part = clean_part(part, {})  # before its middle goes: half a secret has no shape
    if isinstance(part, Opaque) or (isinstance(part, Thinking) and part.signature is not None):
        return None
    for form in _forms(part, handle):
        found = _fitted(form, limit, counter, handle)
        if found is not None:
            return found
    return _with_value(part, {"elided": LEAST} if _is_object(part) else LEAST)


def _forms(part: Part, handle: str) -> Iterator[Part]:
    """Yield what may be shortened of a part: all of it, then what is left without nested values or media."""
    if not isinstance(part, Media):
        yield part
    if isinstance(part, ToolResult):
        notes = (one if isinstance(one, Text) else _media_note(one, handle) for one in part.content)
        yield msgspec.structs.replace(part, content=tuple(notes))
    elif isinstance(part, ToolCall) and isinstance(part.arguments, dict):
        values = {key: _note(value, handle) for key, value in part.arguments.items()}
        yield msgspec.structs.replace(part, arguments=values)
    elif isinstance(part, Media):
        yield _media_note(part, handle)


def _is_object(part: Part) -> bool:
    return isinstance(part, ToolCall) and isinstance(part.arguments, dict)


def _with_value(part: Part, value: Any) -> Part:
    """Return a part that holds another value where its texts stood."""
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
    """Return the part with its largest texts shortened until it fits; None where that does not suffice."""
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
        budget -= max(over, budget // 10, 1)  # markers and escapes cost more than foreseen


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
    """Return what stands between head and tail: how much is left out, and how to get it back."""
    return f"[… {characters:,} characters left out{way_back(handle)} …]"


def way_back(handle: str) -> str:
    """Return the words that name an entry to recall; none without a handle."""
    return f"; recall {handle}" if handle else ""


def shorten(text: str, limit: int, count: Count, handle: str, *, whole: int | None = None) -> str:
    """Return the text, or its head and tail around a marker, so that `count` is at most `limit` tokens.

    Lines are kept whole where that costs less than a quarter of a side. A limit too small for the marker
    leaves a shorter one, at the least "…". `whole` is the text's count, where it is known.
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
    """Return the head and tail of about so many characters in all."""
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
    """Return the nearest index from `at` on, going by `step`, at which a cut splits no character."""
    return next((place for place in range(at, at + step * REACH, step) if not splits(text, place)), at)


def splits(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` takes apart what is read as one character."""
    if not 0 < at < len(text):
        return False
    around, after = text[at - 1 : at + 1], text[at]
    joined = around == "\r\n" or "\u200d" in around or "\udc00" <= after <= "\udfff"
    return joined or unicodedata.category(after) in ("Mn", "Mc", "Me", "Sk")  # accents, skin tones


def level(sizes: Sequence[int], budget: int) -> int:
    """Return the largest cap under which the sizes fit: the sum of each at most the cap is within the budget.

    So what is small stays whole and only the largest give way.
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


RESULT_FLOOR = 60  # tokens that a shortened result keeps at least
LARGE = 10  # a message larger than usable / LARGE may be elided


class _Candidate(msgspec.Struct):
    """A part that may be shortened, as it is after the edits made before, which `saved` some tokens of it."""

    entry: str
    index: int
    part: Part
    tokens: int
    floor: int
    result: bool
    saved: int


def most_saved(
    entry: Said,
    usable: int,
    counter: Counter,
    *,
    edits: EditsOf,
    out: AbstractSet[PartAt],
) -> int:
    """Return by how many tokens a message gets smaller when it is elided as far as it may be."""
    return _saving(_candidates([entry], usable, counter, edits, frozenset(), out=out), 0)


def shrink(
    entries: Sequence[Said],
    need: int,
    *,
    usable: int,
    counter: Counter,
    edits: EditsOf,
    spare: frozenset[str] = frozenset(),
    out: AbstractSet[PartAt] = frozenset(),
    least: int | None = None,
    recall: bool = True,
) -> tuple[Edit, ...]:
    """Return elisions that make the entries at least `need` tokens smaller, as far as they may be elided.

    `edits` are those made before: a part that has one is taken as it is then. `spare` are entries that no
    edit may touch (pinned ones), `out` the parts that the view leaves out: they cannot get smaller. What is
    no result keeps `least` (default: usable / LARGE); `recall`: whether markers say how to get back what is
    left out.
    """
    found = _candidates(entries, usable, counter, edits, spare, out=out, least=least)
    results = [candidate for candidate in found if candidate.result]
    chosen = results if _saving(results, 0) >= need else found
    level = _level(chosen, need)
    made: list[Edit] = []
    for one in chosen:
        limit = max(level, one.floor)
        if one.tokens <= limit:
            continue
        shorter = elide(one.part, limit, counter, one.entry if recall else "")
        if shorter is not None:
            saved = one.tokens - part_tokens(shorter, counter)
            if saved > 0:
                made.append(Edit(one.entry, one.index, "elided", shorter, one.saved + saved))
    return tuple(made)


def _saving(candidates: Sequence[_Candidate], level: int) -> int:
    return sum(max(0, one.tokens - max(level, one.floor)) for one in candidates)


def _level(candidates: Sequence[_Candidate], need: int) -> int:
    """Return the largest common size at which enough is saved."""
    low, high = 0, max((one.tokens for one in candidates), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if _saving(candidates, middle) >= need:
            low = middle
        else:
            high = middle - 1
    return low


def _candidates(
    entries: Sequence[Said],
    usable: int,
    counter: Counter,
    edits: EditsOf,
    spare: frozenset[str],
    *,
    out: AbstractSet[PartAt],
    least: int | None = None,
) -> list[_Candidate]:
    found: list[_Candidate] = []
    for entry in entries:
        if entry.id in spare:
            continue
        edited = {edit.part: edit for edit in edits.get(entry.id, ())}
        large = entry.tokens > usable // LARGE
        done = last_step(entry.message) if large and entry.message.results else 0
        for index, original in enumerate(entry.message.parts):
            part = edited[index].replacement if index in edited else original
            result = isinstance(part, ToolResult)
            elidable = result or (large and _may_elide(part))
            if part is None or not elidable or (entry.id, index) in out:
                continue
            kept = usable // LARGE if least is None else least
            floor = RESULT_FLOOR if result or index < done else max(kept, RESULT_FLOOR)
            tokens = part_tokens(part, counter)
            if tokens > floor:
                saved = edited[index].saved if index in edited else 0
                found.append(_Candidate(entry.id, index, part, tokens, floor, result, saved))
    return found


def _may_elide(part: Part | None) -> bool:
    return isinstance(part, Text | ToolCall) or (isinstance(part, Thinking) and part.signature is None)
