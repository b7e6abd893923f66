"""What a compaction would fold, quote, keep and edit: the pure choice, before any summary is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from foldline.core.cut.cut import Cut, choose_cut, keep_index
from foldline.core.cut.legal import legal_cuts
from foldline.core.cut.pairing import Pairing
from foldline.core.cut.shrink import least_tokens, shrink
from foldline.core.decide.estimate import message_estimate
from foldline.core.decide.policy import Policy
from foldline.core.log.entries import Edit, Said
from foldline.core.log.messages import Message, Opaque, Part, Thinking
from foldline.core.log.steps import finishes
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Amount, Window

CHECKPOINT_LEAST = 150  # tokens below which a summary says nothing worth reading

Edits = dict[str, tuple[Edit, ...]]


class Material(msgspec.Struct):
    """What is in the view before the compaction: the entries that a choice is made from."""

    leading: Sequence[Said]
    quoted: Sequence[Said]
    kept: Sequence[Said]
    pairing: Pairing
    fresh_from: int
    edits: Mapping[str, Sequence[Edit]]
    pinned: frozenset[str]
    redraft: bool = False  # the checkpoint before may be written anew though no message is folded


class Limits(msgspec.Struct, frozen=True):
    """Token budgets of one compaction. `wrap` is what a checkpoint takes around an empty summary."""

    window: Window
    usable: int
    apart: int
    wrap: int
    target: bool
    summary_cap: int
    recall: bool = True


class Used(msgspec.Struct, frozen=True):
    """What became of a choice for a target: the tokens of its summary, and the most that leading messages may take now."""

    summary: int
    leading: int


class Choice(msgspec.Struct):
    """A chosen fold. `edits` are all edits of entries that stay, older ones included."""

    cut: Cut
    folded: list[Said]
    quoted: list[Said]
    kept: list[Said]
    edits: Edits
    room: int  # tokens left for the summary


def tokens_of(entries: Sequence[Said], edits: Mapping[str, Sequence[Edit]]) -> int:
    """Return the tokens of entries with their edits."""
    return sum(e.tokens - sum(edit.saved for edit in edits.get(e.id, ())) for e in entries)


def least_kept(material: Material, usable: int, counter: Counter) -> int:
    """Return the tokens of what must stay behind any cut, elided as far as it may be."""
    legal = legal_cuts(material.kept, material.pairing)
    start = legal[-1] if legal else 0
    return sum(_least(material, entry, usable, counter) for entry in material.kept[start:])


def _least(material: Material, entry: Said, usable: int, counter: Counter) -> int:
    if entry.id in material.pinned:
        return entry.tokens
    return min(least_tokens(entry, usable, counter), tokens_of([entry], material.edits))


def _fits_from(material: Material, start: int, room: int, usable: int, counter: Counter) -> int:
    """Return the first index, `start` at least, from which the messages can be shortened to fit in `room`."""
    for index in range(len(material.kept) - 1, start - 1, -1):
        room -= _least(material, material.kept[index], usable, counter)
        if room < 0:
            return index + 1
    return start


def choose(
    material: Material, policy: Policy, limits: Limits, counter: Counter, used: Used | None = None
) -> Choice | None:
    """Choose cut, quotes and elisions so that the view fits; None where nothing can be folded.

    With what was `used` of a target, the rest of it goes to what was shortened and to more of the newest.
    """
    edits: Edits = {entry: tuple(found) for entry, found in material.edits.items()}
    add(edits, lead_edits(material, limits, counter, most=used.leading if used else 0))
    free = limits.usable - limits.apart - limits.wrap - tokens_of(material.leading, edits)
    least = min(CHECKPOINT_LEAST, max(free // 2, 0))
    share = max(_share(limits, free, least, used), least)
    budget = max(free - share, 0)
    cut = _cut(material, policy, limits, counter, budget=budget, used=used)
    if cut is None:
        return None
    fitting = _fits_from(material, cut.index, budget if used else free - least, limits.usable, counter)
    if fitting > cut.index:
        cut = choose_cut(material.kept, fitting, policy.cut_rule, pairing=material.pairing) or cut
    kept = list(material.kept[cut.index :])
    by_halves = limits.target and used is None
    most = min(budget, max(free // 4, _kept_amount(policy, limits))) if by_halves else budget
    over = tokens_of(kept, edits) - most
    if over > 0:
        add(edits, _shortened(kept, over, material, limits, counter=counter, edits=edits))
    free -= tokens_of(kept, edits)
    older = [*material.quoted, *material.kept[: cut.index]]
    quoted = _quotes(older, policy.quote_user_tokens, free // 2 if limits.target else free)
    free -= tokens_of(quoted, edits)
    chosen = {entry.id for entry in quoted}
    folded = [entry for entry in older if entry.id not in chosen]
    stay = {entry.id for entry in (*material.leading, *quoted, *kept)}
    edits = {entry: found for entry, found in edits.items() if entry in stay}
    return Choice(cut, folded, quoted, kept, edits, free)


def eased(choice: Choice, material: Material, limits: Limits, counter: Counter, spare: int) -> Choice:
    """Return a choice with what it shortened given back as far as `spare` tokens go; what it folds stays the same."""
    stay = {entry.id for entry in (*material.leading, *choice.quoted, *choice.kept)}
    edits: Edits = {entry: tuple(found) for entry, found in material.edits.items() if entry in stay}
    before = tokens_of(material.leading, choice.edits)
    add(edits, lead_edits(material, limits, counter, most=before + spare))
    spare -= tokens_of(material.leading, edits) - before
    over = tokens_of(choice.kept, edits) - tokens_of(choice.kept, choice.edits) - spare
    if over > 0:
        add(edits, _shortened(choice.kept, over, material, limits, counter=counter, edits=edits))
    return msgspec.structs.replace(choice, edits=edits)


def _shortened(
    kept: Sequence[Said], over: int, material: Material, limits: Limits, *, counter: Counter, edits: Edits
) -> tuple[Edit, ...]:
    return shrink(
        kept,
        over,
        usable=limits.usable,
        counter=counter,
        edits=edits,
        spare=material.pinned,
        recall=limits.recall,
    )


def _share(limits: Limits, free: int, least: int, used: Used | None) -> int:
    """Return the tokens to hold free for the summary."""
    if used is not None:
        return used.summary
    return min(max(limits.summary_cap, least), free // 2) if limits.target else limits.summary_cap


def _cut(
    material: Material, policy: Policy, limits: Limits, counter: Counter, *, budget: int, used: Used | None
) -> Cut | None:
    kept, pairing = material.kept, material.pairing
    first = 1 if policy.cross_boundary else max(1, material.fresh_from)
    own = policy.estimator == "foldline" or used is not None
    weights = None if own else [message_estimate(e.message, policy.estimator, counter) for e in kept]
    keep = policy.keep
    if used is not None and keep.amount is not None:
        keep = msgspec.structs.replace(keep, amount=Amount(tokens=budget))
    at = keep_index(kept, keep, budget, window=limits.window, usable=limits.usable, weights=weights)
    cut = choose_cut(kept, at, policy.cut_rule, pairing=pairing, first=first)
    if cut is None and first > 1:
        cut = choose_cut(kept, at, policy.cut_rule, pairing=pairing)
    if (
        used is not None
        and cut is not None
        and sum(entry.tokens for entry in kept[cut.index :]) < budget // 2
    ):
        cut = (
            choose_cut(kept, at, "any", pairing=pairing, first=first) or cut
        )  # part of a turn, before nothing
    if cut is None and material.redraft:
        cut = Cut(0, split=False, by_rule=True)
    return cut


def _kept_amount(policy: Policy, limits: Limits) -> int:
    return policy.keep.amount.resolve(limits.window, limits.usable) if policy.keep.amount else 0


def add(edits: Edits, new: Sequence[Edit]) -> None:
    """Put edits in, each in the place of an older one of the same part."""
    for edit in new:
        older = tuple(e for e in edits.get(edit.entry, ()) if e.part != edit.part)
        saved = edit.saved + sum(e.saved for e in edits.get(edit.entry, ()) if e.part == edit.part)
        edits[edit.entry] = (*older, msgspec.structs.replace(edit, saved=saved))


def lead_edits(material: Material, limits: Limits, counter: Counter, *, most: int = 0) -> tuple[Edit, ...]:
    """Elide leading system messages, for a target alone, where they would take more than a quarter of it.

    They keep a tenth together, or `most` where that is more: their beginnings say who the model is, their ends
    what holds last.
    """
    tokens, keep = tokens_of(material.leading, material.edits), max(limits.usable // 10, most)
    if not limits.target or tokens <= max(limits.usable // 4, keep):
        return ()
    return shrink(
        material.leading,
        tokens - keep,
        usable=limits.usable,
        counter=counter,
        edits=material.edits,
        spare=material.pinned,
        least=limits.usable // 20,
        recall=limits.recall,
    )


def _quotes(older: Sequence[Said], tokens: int, most: int) -> list[Said]:
    """Return the newest user messages that fit, oldest first."""
    left = min(tokens, most)
    quoted: list[Said] = []
    for entry in reversed(older):
        if not entry.message.is_prompt or entry.message.results:
            continue
        if entry.tokens > left:
            break
        left -= entry.tokens
        quoted.append(entry)
    return quoted[::-1]


def open_loop(kept: Sequence[Said]) -> int:
    """Return the index at which an unfinished tool loop starts; the length where none is open."""
    if not kept or (kept[-1].message.role == "assistant" and finishes(kept[-1].message)):
        return len(kept)
    start, calls = len(kept), False
    while start and not (kept[start - 1].message.is_prompt and not kept[start - 1].message.results):
        start -= 1
        calls = calls or bool(kept[start].message.calls)
    return start if calls else len(kept)


def bound(part: Part) -> bool:
    """Whether a part is tied by a signature to the exact messages before it."""
    return (isinstance(part, Thinking) and part.signature is not None) or (
        isinstance(part, Opaque) and part.kind == "redacted_thinking"
    )


def signed(message: Message) -> bool:
    """Whether a message holds thinking that is tied to its prefix."""
    return any(bound(part) for part in message.parts)


def strip_thinking(kept: Sequence[Said], start: int, stop: int) -> list[tuple[Said, int]]:
    """Return the signed parts (entry, part index) of messages from `start` up to `stop`."""
    return [
        (entry, index)
        for entry in kept[start:stop]
        for index, part in enumerate(entry.message.parts)
        if bound(part)
    ]
