"""The receipt of a boundary: its figures, from the views before and after, without secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from foldline.core.checkpoint.checkpoint import as_message
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.decide.ask import Nothing
from foldline.core.decide.price import Balance
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.log.entries import Compacted, Edit, Pruned, Receipt, Said, StandingConstraints
from foldline.core.log.messages import Text
from foldline.core.log.opaque import opened
from foldline.core.measure.media import media_of
from foldline.core.measure.tokens import message_tokens
from foldline.core.secrets.derived import Sweep
from foldline.core.view import ViewState
from foldline.core.view_items import Item, item_parts, sizes_of

APART = "system prompt and tools"  # the category of what is not in the messages
_IN_ORDER = (APART, "system", "checkpoint", "user", "assistant", "tool results", "unanswered")


def made_receipt(
    job: CompactionInput, boundary: Compacted | Pruned, after: ViewState, folded: Sequence[Said] = ()
) -> Receipt:
    """Return the receipt of a boundary from the views before and after it."""
    ask = job.ask
    return Receipt(
        reason=ask.reason,
        created_at=ask.now,
        tokens_before=job.size,
        tokens_after=ask.overhead_tokens + after.tokens,
        messages_before=job.state.messages,
        messages_after=after.messages,
        dropped=dropped(folded, boundary.edits),
        by_category=by_category(
            sizes_of(job.state.items()), sizes_of(after.items()), overhead=ask.overhead_tokens
        ),
        policy=ask.policy.name,
        notes=ask.notes,
    )


def balance_of(job: CompactionInput, before: int, after: int, summary: float | None = None) -> Balance | None:
    """Return what a boundary from `before` to `after` tokens costs and saves; None if prices are unknown.

    `summary` is what its summary cost in USD.
    """
    unchanged = job.ask.overhead_tokens + sum(entry.tokens for entry in job.state.leading)
    economy = job.ask.economy
    return economy.balance(before, after, same=unchanged, summary=summary) if economy is not None else None


def balance_notes(job: CompactionInput, before: int, after: int, price: float | None) -> list[str]:
    """Return the note on whether a compaction pays; empty if the session's prices are unknown."""
    balance = balance_of(job, before, after, price)
    return [] if balance is None else [balance.words]


def no_gain(gain: int, least: int) -> Nothing:
    """Return `Nothing` because a boundary would gain too little."""
    if gain < 0:
        return Nothing("no_gain", f"the checkpoint would be {-gain:,} tokens larger than what it replaces")
    return Nothing("no_gain", f"it would gain {gain:,} tokens of the required {least:,}")


# ---- figures


def in_window_order(categories: Iterable[str]) -> list[str]:
    """Return categories in the order of a window; unknown ones come last."""
    places = {name: place for place, name in enumerate(_IN_ORDER)}
    return sorted(categories, key=lambda name: (places.get(name, len(places)), name))


def token_change(receipt: Receipt) -> str:
    """Return the tokens before and after in words; figures missing in an imported receipt are unknown."""
    if receipt.reason != "imported":
        return f"{receipt.tokens_before:,} → {receipt.tokens_after:,} tokens"
    if receipt.tokens_before:
        return f"{receipt.tokens_before:,} tokens by its agent's count → unknown"
    return "sizes unknown"


def by_category(
    before: Mapping[str, int], after: Mapping[str, int], *, overhead: int = 0
) -> dict[str, tuple[int, int]]:
    """Return tokens before and after by category; `overhead` is a separate system prompt and tools."""
    apart = {APART: (overhead, overhead)} if overhead else {}
    return apart | {name: (before.get(name, 0), after.get(name, 0)) for name in {**before, **after}}


def dropped(folded: Sequence[Said], edits: Sequence[Edit]) -> dict[str, object]:
    """Return what left the view: folded messages, calls by tool, media and edits by kind.

    Calls run by the provider count too.
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


# ---- standing constraints


def constraint_figures(shown: Sequence[ConstraintFact], excess: Sequence[str] = ()) -> StandingConstraints:
    """Return the standing constraints of a receipt: those kept word for word, and those without room."""
    return StandingConstraints(len(shown), tuple(fact.told for fact in shown), tuple(excess))


def standing_in(
    facts: Sequence[ConstraintFact], view: Sequence[Item]
) -> tuple[list[ConstraintFact], list[str]]:
    """Return the standing constraints that a view contains word for word, and the texts of the others."""
    parts = (part for item in view for part in item_parts(item))
    texts = [" ".join(part.text.split()) for part in parts if isinstance(part, Text)]
    kept = [fact for fact in facts if any(" ".join(fact.text.split()) in text for text in texts)]
    return kept, [fact.text for fact in facts if fact not in kept]


# ---- the last check for secrets


T = TypeVar("T", bound=Compacted | Pruned | Receipt)


def scrub_secrets(value: T, job: CompactionInput) -> T:
    """Return a boundary or a receipt without the secrets of the view, its tokens counted again."""
    state = job.state
    state.clean(
        (*state.leading, *state.quoted, *state.kept)
    )  # collects their secrets; each entry is read once
    clean = Sweep(state.clean.secrets).struct(value)
    if clean is value or not isinstance(clean, Compacted):
        return clean
    checkpoint = clean.checkpoint
    tokens = message_tokens(as_message(checkpoint.text, checkpoint.role), job.counter)
    return msgspec.structs.replace(clean, checkpoint=msgspec.structs.replace(checkpoint, tokens=tokens))
