"""What a compaction would fold, quote, keep and edit: the pure choice, before any summary is written.

A view has a fixed size, and everything in it competes for the same tokens:

    |<----------------------------------- usable ------------------------------------>|
    | overhead | leading | checkpoint: frame (wrap) + summary | quoted |     kept      |
    | system,  | system  | pins, live state    |<-- room ---->| older  | the newest,   |
    | tools    | messages| and headings                       | user   | from the cut  |
                         ^ what is folded is told here                 ^ the cut

`choose` divides it in this order:

1. Leading messages stay. Only for a target, and only where they take more than a quarter of it, their middle
   is left out (`lead_edits`).
2. What is free beside them and the frame is the budget (`_Budget`). A part of it is held for the summary; the
   rest is the most that the tail may take.
3. The policy's cut rule picks the cut among the legal places (`cut.py`). Where what it keeps cannot be
   shortened enough, the cut moves on to a place from which it can (`_fitting_cut`).
4. What is kept is shortened until it fits: results first, then whatever is larger than a tenth of usable
   (`shrink.py`). Pinned entries are never touched.
5. Older user messages are quoted as far as the policy wants and the room allows.
6. The rest is room for the summary.

For a target the choice is made twice. The first is careful: nobody knows yet how much the summary will take.
When it is written and leaves something (`fill.py`), the second one knows its size (`SecondPass`) and gives
the rest to more of the newest messages, or to what the first one shortened (`restored`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from foldline.core.cut.cut import (
    Cut,
    Places,
    counted_from,
    cut_by_count,
    cut_by_tokens,
    places,
)
from foldline.core.cut.edits import NO_REPAIRS, Edits, ViewRepairs, add, tokens_of
from foldline.core.cut.legal import legal_cuts
from foldline.core.cut.pairing import Pairing, unanswered_from
from foldline.core.cut.shrink import most_saved, shrink
from foldline.core.decide.policy import Policy, message_estimate
from foldline.core.log.entries import Edit, Said
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Window, share

SPARE = 10  # a target of which less than 1 / SPARE is left is used
SUMMARY_LEAST = 2_000  # tokens that a summary may always take, however little it stands for
CHECKPOINT_LEAST = 150  # tokens below which a summary says nothing worth reading


class CutInput(msgspec.Struct):
    """What is in the view before the compaction: the entries that a choice is made from."""

    leading: Sequence[Said]
    quoted: Sequence[Said]
    kept: Sequence[Said]
    pairing: Pairing
    fresh_from: int
    edits: Mapping[str, Sequence[Edit]]
    pinned: frozenset[str]
    repairs: ViewRepairs = NO_REPAIRS
    redraft: bool = False  # the checkpoint before may be written anew though no message is folded
    joining: frozenset[str] = frozenset()  # messages that go to the leading ones where they are folded

    def tokens(self, entries: Iterable[Said], edits: Mapping[str, Sequence[Edit]]) -> int:
        """Return what entries take in the view with these edits, in tokens."""
        return tokens_of(entries, edits, self.repairs)


class Limits(msgspec.Struct, frozen=True):
    """Token budgets of one compaction. `wrap` is what a checkpoint takes around an empty summary.

    `usable` is what the view may take after it; `nominal` is what a policy's fractions of usable are of:
    where a compaction has to gain something, it is the larger of the two. A summary takes `summary_cap`
    tokens at most, and `summary_share` of what it stands for; `summary_before` is what the one that
    it takes the place of took, or might have taken.
    """

    window: Window
    usable: int
    nominal: int
    overhead: int
    wrap: int
    target: bool
    summary_cap: int
    summary_share: float | None = None
    summary_before: int = 0
    recall: bool = True

    def most_summary(self, folded: Sequence[Said]) -> int:
        """Return the most tokens of a live summary; it stands for all that the one before does, too."""
        if self.summary_share is None:
            return self.summary_cap
        grown = self.summary_before + share(sum(entry.tokens for entry in folded), self.summary_share)
        return min(self.summary_cap, max(grown, SUMMARY_LEAST))


class SecondPass(msgspec.Struct, frozen=True):
    """What a choice for a target came to: its summary's tokens, and the most for leading messages now."""

    summary: int
    leading: int


class Choice(msgspec.Struct):
    """A chosen fold. `edits` are all edits of entries that stay, older ones included.

    `joined` are messages before the cut that stay, behind the leading ones; of a reply among them a part
    alone stays, and the rest is folded.
    """

    cut: Cut
    folded: list[Said]
    quoted: list[Said]
    kept: list[Said]
    edits: Edits
    room: int  # tokens left for the summary
    joined: list[Said] = []


def least_kept(material: CutInput, usable: int, counter: Counter) -> int:
    """Return the tokens of what must stay behind any cut, elided as far as it may be."""
    legal = legal_cuts(material.kept, material.pairing)
    start = legal[-1] if legal else 0
    return sum(_least(material, entry, usable, counter) for entry in material.kept[start:])


def _least(material: CutInput, entry: Said, usable: int, counter: Counter) -> int:
    whole = material.tokens([entry], material.edits)
    if entry.id in material.pinned:
        return whole
    saved = most_saved(entry, usable, counter, edits=material.edits, out=material.repairs.out)
    return max(0, whole - saved)


class _Inputs(msgspec.Struct, frozen=True):
    """What a choice is made from, and by what."""

    material: CutInput
    policy: Policy
    limits: Limits
    counter: Counter
    second: SecondPass | None = None


class _Budget(msgspec.Struct, frozen=True):
    """What a view has free beside its leading messages and the frame of its checkpoint, in tokens.

    `summary` of it is held for the summary, which never goes below `least`.
    """

    free: int
    summary: int
    least: int

    @property
    def tail(self) -> int:
        """The most that what is kept may take while the summary has what is held for it."""
        return max(self.free - self.summary, 0)


def choose(
    material: CutInput, policy: Policy, limits: Limits, counter: Counter, second: SecondPass | None = None
) -> Choice | None:
    """Choose cut, quotes and elisions so that the view fits; None where nothing can be folded.

    The `second` pass for a target gives the rest of it to what was shortened and to more of the newest.
    """
    inputs = _Inputs(material, policy, limits, counter, second)
    edits: Edits = {entry: tuple(found) for entry, found in material.edits.items()}
    add(edits, lead_edits(material, limits, counter, most=second.leading if second else 0))
    room = _room(inputs, edits)
    if limits.target:
        _shorten_waiting(inputs, room, edits)
    cut = _fitting_cut(inputs, room, edits)
    if cut is None:
        return None
    kept = list(material.kept[cut.index :])
    _shorten_kept(inputs, room, kept, edits)
    free = room.free - material.tokens(kept, edits)
    older = [*material.quoted, *material.kept[: cut.index]]
    most = min(policy.quote_user_tokens, free // 2 if limits.target else max(free - room.least, 0))
    quoted = _quotes(material, older, edits, most)
    free -= material.tokens(quoted, edits)
    joined = [entry for entry in older if entry.id in material.joining]
    whole = [entry for entry in joined if entry.message.role != "assistant"]
    chosen = {entry.id for entry in (*quoted, *whole)}
    folded = [entry for entry in older if entry.id not in chosen]
    stay = {entry.id for entry in (*material.leading, *joined, *quoted, *kept)}
    edits = {entry: found for entry, found in edits.items() if entry in stay}
    return Choice(cut, folded, quoted, kept, edits, free, joined)


def _room(inputs: _Inputs, edits: Edits) -> _Budget:
    limits, second = inputs.limits, inputs.second
    free = (
        limits.usable - limits.overhead - limits.wrap - inputs.material.tokens(inputs.material.leading, edits)
    )
    least = min(CHECKPOINT_LEAST, max(free // 2, 0))
    if second is not None:
        held = second.summary
    elif limits.target:
        held = min(limits.summary_cap, free // 2)
    else:
        held = limits.summary_cap
    return _Budget(free, summary=max(held, least), least=least)


# ---- where to cut


def _fitting_cut(inputs: _Inputs, room: _Budget, edits: Edits) -> Cut | None:
    """Return the cut that the policy chooses; where what it keeps cannot be made to fit, one further on."""
    material = inputs.material
    found = _places(inputs, edits)
    cut = _cut(inputs, found, room.tail)
    if cut is None:
        return Cut(0, inside_turn=False) if material.redraft else None
    most = room.tail if inputs.second is not None else room.free - room.least
    fitting = _fits_from(inputs, cut.index, most)
    if fitting > cut.index:
        cut = _cut(inputs, found.since(min(fitting, found.legal[-1])), room.tail) or cut
    return cut


def _places(inputs: _Inputs, edits: Edits) -> Places:
    """Return where the policy may cut: not before the newest boundary, if it may not cross that."""
    material, policy = inputs.material, inputs.policy
    if policy.estimator == "foldline" or inputs.second is not None:
        mended = edits or material.repairs.more
        weights = [material.tokens([entry], edits) for entry in material.kept] if mended else None
    else:
        weights = [message_estimate(e.message, policy.estimator, inputs.counter) for e in material.kept]
    found = places(material.kept, policy.cut_rule, pairing=material.pairing, weights=weights)
    fresh = found if policy.cross_boundary else found.since(material.fresh_from)
    return fresh if fresh.legal else found


def _cut(inputs: _Inputs, found: Places, budget: int) -> Cut | None:
    """Return the cut that the policy chooses of these places, for a tail of `budget` tokens at most."""
    policy = inputs.policy
    first = counted_from(policy.keep, len(found.kept))
    wanted = _wanted_tokens(inputs, budget)
    if wanted is None:
        return cut_by_count(found, first, budget)
    counted = found.since(first)
    found = counted if counted.legal else found
    if inputs.second is not None:
        return cut_by_tokens(found, wanted, least=wanted - inputs.limits.usable // SPARE)
    return cut_by_tokens(found, wanted, walk_back=policy.walk_back, most=budget)


def _wanted_tokens(inputs: _Inputs, budget: int) -> int | None:
    """Return the tokens that the policy keeps, `budget` at most; None where it keeps a count of messages.

    What was left of a target is used up, whatever the amount.
    """
    keep, limits = inputs.policy.keep, inputs.limits
    if keep.amount is not None:
        return budget if inputs.second else min(budget, keep.amount.resolve(limits.window, limits.nominal))
    return None if keep.messages is not None or keep.message_fraction is not None else 0


def _fits_from(inputs: _Inputs, start: int, room: int) -> int:
    """Return the first index, `start` at least, from which the messages can be shortened to fit in `room`."""
    kept = inputs.material.kept
    for index in range(len(kept) - 1, start - 1, -1):
        room -= _least(inputs.material, kept[index], inputs.limits.usable, inputs.counter)
        if room < 0:
            return index + 1
    return start


# ---- what is shortened


def _shorten_waiting(inputs: _Inputs, room: _Budget, edits: Edits) -> None:
    """Shorten what waits and no user typed, so that the conversation has half of what is kept."""
    kept = inputs.material.kept
    start = unanswered_from([entry.message for entry in kept])
    given = [entry for entry in kept[start:] if entry.message.results or entry.message.injected]
    wanted = _wanted_tokens(inputs, room.tail)
    if wanted:
        before = min(wanted // 2, inputs.material.tokens(kept[:start], edits))
        _shorten(given, wanted - before, inputs.material, inputs.limits, inputs.counter, edits=edits)


def _shorten_kept(inputs: _Inputs, room: _Budget, kept: Sequence[Said], edits: Edits) -> None:
    """Shorten what is kept until it fits.

    What holds one large message is shortened to twice of what the policy keeps, so that a fold gains
    something; not what waits for an answer, nor for a policy that walks back. The first choice for a target
    keeps no more than a quarter of it, or what the policy keeps: what the summary leaves comes back later.
    """
    material, limits, counter = inputs.material, inputs.limits, inputs.counter
    wanted = _wanted_tokens(inputs, room.tail) or 0
    most = room.tail
    if limits.target and inputs.second is None:
        most = min(room.tail, max(room.free // 4, wanted))
    elif wanted and not limits.target and not inputs.policy.walk_back:
        waiting = kept[unanswered_from([entry.message for entry in kept]) :]
        _shorten(kept, 2 * wanted, material, limits, counter, edits=edits, spare=waiting)
    _shorten(kept, most, material, limits, counter, edits=edits)


def _shorten(
    kept: Sequence[Said],
    most: int,
    material: CutInput,
    limits: Limits,
    counter: Counter,
    *,
    edits: Edits,
    spare: Sequence[Said] = (),
) -> None:
    """Shorten messages to `most` tokens together, as far as allowed; `spare` and pins stay whole."""
    over = material.tokens(kept, edits) - most
    if over <= 0:
        return
    shorter = shrink(
        kept,
        over,
        usable=limits.usable,
        counter=counter,
        edits=edits,
        spare=material.pinned | {entry.id for entry in spare},
        out=material.repairs.out,
        recall=limits.recall,
    )
    add(edits, shorter)


def restored(choice: Choice, material: CutInput, limits: Limits, counter: Counter, spare: int) -> Choice:
    """Return a choice with what it shortened given back, up to `spare` tokens; it folds the same."""
    stay = {entry.id for entry in (*material.leading, *choice.joined, *choice.quoted, *choice.kept)}
    edits: Edits = {entry: tuple(found) for entry, found in material.edits.items() if entry in stay}
    before = material.tokens(material.leading, choice.edits)
    add(edits, lead_edits(material, limits, counter, most=before + spare))
    spare -= material.tokens(material.leading, edits) - before
    most = material.tokens(choice.kept, choice.edits) + spare
    _shorten(choice.kept, most, material, limits, counter, edits=edits)
    return msgspec.structs.replace(choice, edits=edits)


def lead_edits(material: CutInput, limits: Limits, counter: Counter, *, most: int = 0) -> tuple[Edit, ...]:
    """Elide leading system messages, for a target alone, where they would take more than a quarter of it.

    They keep a tenth together, or `most` where that is more: their beginnings say who the model is, their
    ends what holds last.
    """
    tokens, keep = material.tokens(material.leading, material.edits), max(limits.usable // 10, most)
    if not limits.target or tokens <= max(limits.usable // 4, keep):
        return ()
    return shrink(
        material.leading,
        tokens - keep,
        usable=limits.usable,
        counter=counter,
        edits=material.edits,
        spare=material.pinned,
        out=material.repairs.out,
        least=limits.usable // 20,
        recall=limits.recall,
    )


def _quotes(material: CutInput, older: Sequence[Said], edits: Edits, most: int) -> list[Said]:
    """Return the newest user messages that fit into `most` tokens, oldest first."""
    left = most
    quoted: list[Said] = []
    for entry in reversed(older):
        if not entry.message.is_prompt or entry.message.results:
            continue
        tokens = material.tokens([entry], edits)
        if tokens > left:
            break
        left -= tokens
        quoted.append(entry)
    return quoted[::-1]
