"""One compaction while it is planned: what it may choose from, its limits, and the floor below them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint.checkpoint import make_checkpoint
from foldline.core.checkpoint.receipt import by_category, dropped
from foldline.core.cut.choice import (
    CHECKPOINT_LEAST,
    Edits,
    Limits,
    Material,
    add,
    lead_edits,
    least_kept,
    tokens_of,
)
from foldline.core.cut.legal import legal_cuts
from foldline.core.decide.ask import Ask
from foldline.core.log.entries import Edit, Receipt, Said
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Floor, share
from foldline.core.view import Item, ViewState, sized

SUMMARY_SHARE = 0.25  # of usable, at most: a preset's cap for large windows would fill a small one


class Job(msgspec.Struct, frozen=True):
    """One compaction while it is planned; `size` is the view's in tokens before it."""

    fold: ViewState
    ask: Ask
    counter: Counter
    size: int


def floor_of(fold: ViewState, ask: Ask, counter: Counter) -> Floor:
    """Return what no compaction of this fold can remove, in tokens."""
    usable = ask.usable
    limits = limits_of(fold, ask, counter)
    material = material_of(fold, {})
    leading: Edits = {}
    add(leading, lead_edits(material, limits, counter))
    bare = make_checkpoint("", ask.policy, counter, number=ask.number, live=ask.live, standing=ask.standing)
    return Floor(
        system=ask.apart.system + tokens_of(fold.leading, leading),
        tools=ask.apart.tools,
        pins=max(0, limits.wrap - bare.tokens),
        unanswered=least_kept(material, usable, counter) + fold.owed,
        checkpoint=bare.tokens + min(CHECKPOINT_LEAST, usable // 10),
    )


def needed(fold: ViewState, ask: Ask, floor: Floor, counter: Counter) -> Floor:
    """Return the floor of the least target that holds its own floor: what is elided may take a share of it."""
    for _ in range(50):
        if ask.target is None or floor.total <= ask.target:
            break
        ask = msgspec.structs.replace(ask, target=floor.total)
        floor = floor_of(fold, ask, counter)
    return floor


def limits_of(fold: ViewState, ask: Ask, counter: Counter) -> Limits:
    """Return the budgets of a compaction; pins count that no entry shows which has to stay."""
    legal = legal_cuts(fold.kept, fold.pairing)
    stay = {entry.id for entry in (*fold.leading, *fold.kept[legal[-1] if legal else 0 :])} - set(fold.edits)
    pins = [pin for pin in fold.pins.values() if pin.entry not in stay]
    wrapped = make_checkpoint(
        "",
        ask.policy,
        counter,
        pins=pins,
        ack=bool(ask.policy.ack),
        number=ask.number,
        live=ask.live,
        standing=ask.standing,
    )
    return Limits(
        window=ask.window,
        usable=ask.usable,
        nominal=ask.usable,
        apart=ask.apart_tokens + fold.owed,
        wrap=wrapped.tokens + (counter.count(ask.policy.ack) + 8 if ask.policy.ack else 0),
        target=ask.target is not None,
        summary_cap=_summary_cap(ask),
        recall=ask.recall,
    )


def _summary_cap(ask: Ask) -> int:
    """Return the most tokens of a summary; one that leaves no room for what follows would be folded again at once."""
    cap = ask.policy.summary_tokens.resolve(ask.window, ask.usable)
    return cap if ask.target is not None else min(cap, share(ask.usable, SUMMARY_SHARE))


def material_of(fold: ViewState, edits: Edits) -> Material:
    """Return what a choice is made from, with edits that were made on the way to it."""
    merged: Edits = dict(fold.edits)
    for new in edits.values():
        add(merged, new)
    return Material(
        leading=fold.leading,
        quoted=fold.quoted,
        kept=fold.kept,
        pairing=fold.pairing,
        fresh_from=fold.fresh_from,
        edits=merged,
        pinned=frozenset(fold.pins),
    )


def balance_notes(fold: ViewState, ask: Ask, sizes: tuple[int, int], price: float | None) -> list[str]:
    """Return the note that says whether a compaction pays, where the session's prices are known.

    `sizes` are the view's tokens before and after it, `price` is what its summary cost in USD.
    """
    if ask.economy is None:
        return []
    same = ask.apart_tokens + sum(entry.tokens for entry in fold.leading)
    return [ask.economy.balance(*sizes, same=same, summary=price).words]


def made_receipt(
    ask: Ask,
    *,
    before: Sequence[Item],
    after: Sequence[Item],
    folded: Sequence[Said],
    edits: Sequence[Edit],
    sizes: tuple[int, int],
) -> Receipt:
    """Return the receipt of a boundary from the views before and after it; `sizes` are their tokens."""
    return Receipt(
        reason=ask.reason,
        created_at=ask.now,
        tokens_before=sizes[0],
        tokens_after=sizes[1],
        messages_before=len(before),
        messages_after=len(after),
        dropped=dropped(folded, edits),
        by_category=by_category(sized(before), sized(after), apart=ask.apart_tokens),
        policy=ask.policy.name,
    )
