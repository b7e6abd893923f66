"""Head and tail of a part that is too large: its opening and end, and between them what was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec

from foldline.core.cut.shorten import LEAST, Count, shorten_all, way_back
from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import Counter, json_text, part_tokens
from foldline.core.secrets.entries import clean_part

P = TypeVar("P", bound=Part)


def elide(part: Part, limit_tokens: int, counter: Counter, handle: str) -> Part | None:
    """Return the part in at most `limit_tokens` (by `part_tokens`): as it is, or its head and tail.

    The middle of a text, of reasoning without a signature, of a result's texts and of the largest strings in
    a call's arguments gives way to a marker that names `handle`, the entry that holds the whole ("" where
    nothing can be recalled). Media give way to a note. None for what cannot be shortened: signed reasoning
    and blocks of a dialect's own; they are kept or dropped whole. A limit too small for any marker leaves
    "…".
    """
    if part_tokens(part, counter) <= limit_tokens:
        return part
    part = clean_part(part, {})  # before its middle goes: half a secret has no shape
    if _whole_or_nothing(part):
        return None
    if isinstance(part, Text):
        return _fitted(part, _of_text, [part.text], limit_tokens, counter=counter, handle=handle) or Text(
            LEAST
        )
    if isinstance(part, Thinking):
        return _fitted(
            part, _of_thinking, [part.text], limit_tokens, counter=counter, handle=handle
        ) or Thinking(LEAST)
    if isinstance(part, ToolResult):
        return _result(part, limit_tokens, counter, handle)
    if isinstance(part, ToolCall):
        return _call(part, limit_tokens, counter, handle)
    note = _media_note(part, handle)
    return note if part_tokens(note, counter) <= limit_tokens else Text(LEAST)


def _less(budget: int, over: int) -> int:
    """The next budget to try: markers and escapes cost more than foreseen."""
    return budget - max(over, budget // 10, 1)


def _whole_or_nothing(part: Part) -> bool:
    return isinstance(part, Opaque) or (isinstance(part, Thinking) and part.signature is not None)


def _fitted(
    part: P,
    rebuilt: Callable[[P, list[str]], P],
    texts: list[str],
    limit: int,
    *,
    counter: Counter,
    handle: str,
    count: Count | None = None,
) -> P | None:
    """The part with its texts shortened until the whole fits; None where no shortening of them suffices.

    `count` counts a text as it stands in the part, where that is not its own count.
    """
    counted = count or counter.count
    sizes = [counted(text) for text in texts]
    budget = limit - (part_tokens(part, counter) - sum(sizes))
    while True:
        candidate = rebuilt(part, shorten_all(texts, sizes, max(0, budget), counted, handle))
        over = part_tokens(candidate, counter) - limit
        if over <= 0:
            return candidate
        if budget <= 0:
            return None
        budget = _less(budget, over)


def _of_text(_part: Text, texts: list[str]) -> Text:
    return Text(texts[0])


def _of_thinking(_part: Thinking, texts: list[str]) -> Thinking:
    return Thinking(texts[0])


def _of_result(part: ToolResult, texts: list[str]) -> ToolResult:
    left = iter(texts)
    content = tuple(Text(next(left)) if isinstance(inner, Text) else inner for inner in part.content)
    return msgspec.structs.replace(part, content=content)


def _result(part: ToolResult, limit: int, counter: Counter, handle: str) -> ToolResult:
    """A result with its texts shortened; what is not text gives way only where that does not suffice."""
    for kept in (part, _without_media(part, handle)):
        texts = [inner.text for inner in kept.content if isinstance(inner, Text)]
        found = _fitted(kept, _of_result, texts, limit, counter=counter, handle=handle)
        if found is not None:
            return found
    return msgspec.structs.replace(part, content=(Text(LEAST),))


def _without_media(part: ToolResult, handle: str) -> ToolResult:
    content = tuple(
        inner if isinstance(inner, Text) else _media_note(inner, handle) for inner in part.content
    )
    return msgspec.structs.replace(part, content=content)


def _media_note(part: Part, handle: str) -> Text:
    kind = part.kind if isinstance(part, Media) else "block"
    return Text(f"[{kind} left out{way_back(handle)}]")


def _call(part: ToolCall, limit: int, counter: Counter, handle: str) -> ToolCall:
    """A call with its largest strings shortened, then its lists and nested objects, then every value."""
    if isinstance(part.arguments, str):
        texts = [part.arguments]
        found = _fitted(part, _of_unparsed, texts, limit, counter=counter, handle=handle)
        return found or _with(part, LEAST)

    def escaped(text: str) -> int:
        return counter.count(json_text(text))

    for arguments in (part.arguments, outlined(part.arguments, handle), emptied(part.arguments, handle)):
        leaves = dict(string_leaves(arguments))
        shaped, rebuilt = _with(part, arguments), _put_at(list(leaves))
        texts = list(leaves.values())
        found = _fitted(shaped, rebuilt, texts, limit, counter=counter, handle=handle, count=escaped)
        if found is not None:
            return found
    return _with(part, {"elided": LEAST})


def _of_unparsed(part: ToolCall, texts: list[str]) -> ToolCall:
    return _with(part, texts[0])


def _put_at(paths: list[Path]) -> Callable[[ToolCall, list[str]], ToolCall]:
    def rebuilt(part: ToolCall, texts: list[str]) -> ToolCall:
        changed = dict(zip(paths, texts, strict=True))
        return _with(part, put(part.arguments, changed))

    return rebuilt


def _with(part: ToolCall, arguments: object) -> ToolCall:
    return msgspec.structs.replace(part, arguments=arguments)


# ---- the arguments of a call: the same keys in the same order, still an object


Path = tuple[str | int, ...]

DEEPEST = 20  # levels that are looked into; what lies deeper gives way as a whole
SIDE = 2  # items kept at either end of a list


def string_leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield each string in a JSON-like value with the keys and indices that lead to it."""
    if isinstance(value, str):
        yield path, value
    elif len(path) < DEEPEST:
        for key, inner in _items(value):
            yield from string_leaves(inner, (*path, key))


def put(value: Any, changed: Mapping[Path, str], path: Path = ()) -> Any:
    """Return the value with the strings at the given paths replaced; everything else is as it was."""
    if isinstance(value, str):
        return changed.get(path, value)
    if len(path) >= DEEPEST:
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: put(inner, changed, (*path, key)) for key, inner in fields.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [put(inner, changed, (*path, index)) for index, inner in enumerate(items)]
    return value


def outlined(arguments: dict[str, Any], handle: str) -> dict[str, Any]:
    """Return the arguments, long lists cut to their ends, objects below the second level named only."""
    return {key: _outline(value, handle, 0) for key, value in arguments.items()}


def emptied(arguments: dict[str, Any], handle: str) -> dict[str, Any]:
    """Return the arguments with every list and object replaced by a note, keys and plain values kept."""
    return {
        key: _note(value, handle) if isinstance(value, dict | list) else value
        for key, value in arguments.items()
    }


def _outline(value: Any, handle: str, depth: int) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if depth > 1:
            return _note(items, handle)
        if len(items) > 2 * SIDE + 1:
            middle = f"[… {len(items) - 2 * SIDE:,} items left out{way_back(handle)} …]"
            ends = [*items[:SIDE], middle, *items[-SIDE:]]
            return [_outline(item, handle, depth + 1) for item in ends]
        return [_outline(item, handle, depth + 1) for item in items]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if depth > 1:
            return _note(fields, handle)
        return {key: _outline(inner, handle, depth + 1) for key, inner in fields.items()}
    return value


def _note(value: Any, handle: str) -> str:
    return f"[… {len(value):,} items left out{way_back(handle)} …]" if value else LEAST


def _items(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[str | int, Any]", value).items())
    if isinstance(value, list):
        return list(enumerate(cast("list[Any]", value)))
    return []
