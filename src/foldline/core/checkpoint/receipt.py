"""What a boundary did, in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from foldline.core.log.entries import Edit, Receipt, Said
from foldline.core.log.opaque import opened
from foldline.core.measure.media import media_of

APART = "system prompt and tools"  # the category of what is given apart from the messages
_IN_ORDER = (APART, "system", "checkpoint", "user", "assistant", "tool results", "unanswered")
Sized = tuple[str, int]  # a category and the tokens of one item of a view


def in_window_order(categories: Iterable[str]) -> list[str]:
    """Return categories as they stand in a window; those without a place of their own come last."""
    places = {name: place for place, name in enumerate(_IN_ORDER)}
    return sorted(categories, key=lambda name: (places.get(name, len(places)), name))


def token_change(receipt: Receipt) -> str:
    """Return the tokens before and after in words; what an imported receipt does not tell is unknown."""
    if receipt.reason != "imported":
        return f"{receipt.tokens_before:,} → {receipt.tokens_after:,} tokens"
    if receipt.tokens_before:
        return f"{receipt.tokens_before:,} tokens by its agent's count → unknown"
    return "sizes unknown"


def category(entry: Said) -> str:
    """Return what a message counts as in a receipt."""
    message = entry.message
    if message.results:
        return "tool results"
    if message.role in ("system", "developer"):
        return "system"
    return "assistant" if message.role == "assistant" else "user"


def by_category(
    before: Sequence[Sized], after: Sequence[Sized], *, overhead: int = 0
) -> dict[str, tuple[int, int]]:
    """Return tokens before and after by category; `overhead` is a system prompt and tools given apart."""
    sums: dict[str, list[int]] = {APART: [overhead, overhead]} if overhead else {}
    for side, items in enumerate((before, after)):
        for name, tokens in items:
            sums.setdefault(name, [0, 0])[side] += tokens
    return {name: (pair[0], pair[1]) for name, pair in sums.items()}


def dropped(folded: Sequence[Said], edits: Sequence[Edit]) -> dict[str, object]:
    """Return what left the view: folded messages, calls by tool, media and edits by kind.

    Calls that the provider ran count too.
    """
    messages = [entry.message for entry in folded]
    calls = Counter(call.name for message in messages for call in opened(message).calls)
    counted: Mapping[str, object] = {
        "messages": len(messages),
        "user_messages": sum(message.is_prompt for message in messages),
        "calls": dict(sorted(calls.items(), key=lambda item: (-item[1], item[0]))),
        "media": dict(Counter(media.kind for message in messages for media in media_of(opened(message)))),
        "edits": dict(Counter(edit.kind for edit in edits if edit.kind != "folded")),
    }
    return {name: value for name, value in counted.items() if value}
