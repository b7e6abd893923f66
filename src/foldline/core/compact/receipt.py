"""The receipt of a boundary, made from the views before and after it, and free of secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from foldline.core.checkpoint.checkpoint import as_message
from foldline.core.checkpoint.receipt import by_category, dropped
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.decide.ask import Nothing
from foldline.core.decide.price import Balance, Economy
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.log.entries import Compacted, Edit, Pruned, Receipt, Said, StandingConstraints
from foldline.core.log.messages import Text
from foldline.core.measure.tokens import message_tokens
from foldline.core.secrets.derived import Sweep
from foldline.core.view import Item, MessageItem, sized


def made_receipt(
    job: CompactionInput,
    *,
    before: Sequence[Item],
    after: Sequence[Item],
    folded: Sequence[Said],
    edits: Sequence[Edit],
    sizes: tuple[int, int],
) -> Receipt:
    """Return the receipt of a boundary from the views before and after it; `sizes` are their tokens."""
    ask = job.ask
    return Receipt(
        reason=ask.reason,
        created_at=ask.now,
        tokens_before=sizes[0],
        tokens_after=sizes[1],
        messages_before=len(before),
        messages_after=len(after),
        dropped=dropped(folded, edits),
        by_category=by_category(sized(before), sized(after), overhead=ask.overhead_tokens),
        policy=ask.policy.name,
        notes=ask.notes,
    )


def balance_of(
    job: CompactionInput, economy: Economy, sizes: tuple[int, int], summary: float | None = None
) -> Balance:
    """Return what a boundary costs and saves.

    `sizes` are the view's tokens before and after it, `summary` is what a summary costs in USD.
    """
    same = job.ask.overhead_tokens + sum(entry.tokens for entry in job.state.leading)
    return economy.balance(*sizes, same=same, summary=summary)


def balance_notes(job: CompactionInput, sizes: tuple[int, int], price: float | None) -> list[str]:
    """Return the note that says whether a compaction pays, where the session's prices are known.

    `sizes` are the view's tokens before and after it, `price` is what its summary cost in USD.
    """
    economy = job.ask.economy
    return [] if economy is None else [balance_of(job, economy, sizes, price).words]


def no_gain(gain: int, least: int) -> Nothing:
    """Say that a boundary would have gained too little."""
    if gain < 0:
        return Nothing("no_gain", f"the checkpoint would be {-gain:,} tokens larger than what it stands for")
    return Nothing("no_gain", f"{gain:,} tokens of the {least:,} that it has to gain")


# ---- standing constraints


def constraint_figures(shown: Sequence[ConstraintFact], excess: Sequence[str] = ()) -> StandingConstraints:
    """Return what a receipt says of standing constraints: those kept word for word, and those left out."""
    return StandingConstraints(len(shown), tuple(fact.told for fact in shown), tuple(excess))


def standing_in(
    facts: Sequence[ConstraintFact], view: Sequence[Item]
) -> tuple[list[ConstraintFact], list[str]]:
    """Return the standing constraints that a view says word for word, and the texts of the others."""
    told = [_one_line(text) for item in view for text in _texts_of(item)]
    here = [fact for fact in facts if any(_one_line(fact.text) in text for text in told)]
    return here, [fact.text for fact in facts if fact not in here]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _texts_of(item: Item) -> list[str]:
    """Return the texts that the model reads in an item."""
    if not isinstance(item, MessageItem):
        return [part.text for part in item.message.parts if isinstance(part, Text)]
    edited = {edit.part: edit.replacement for edit in item.edits}
    parts = [edited.get(i, part) for i, part in enumerate(item.entry.message.parts)]
    return [part.text for part in parts if isinstance(part, Text)]


# ---- the second line against secrets


T = TypeVar("T", bound=Compacted | Pruned | Receipt)


def scrub_secrets(made: T, job: CompactionInput) -> T:
    """Return a boundary or a receipt that says none of the secrets of the view, its tokens counted again."""
    state = job.state
    state.clean((*state.leading, *state.quoted, *state.kept))  # each entry is looked at once
    clean = Sweep(state.clean.secrets).struct(made)
    if clean is made or not isinstance(clean, Compacted):
        return clean
    point = clean.checkpoint
    tokens = message_tokens(as_message(point.text, point.role), job.counter)
    return msgspec.structs.replace(clean, checkpoint=msgspec.structs.replace(point, tokens=tokens))
