"""What a compaction would fold, quote, keep and edit: the pure choice, before any summary is written.

A view has a fixed size, and everything in it competes for the same tokens (`room.py` draws it). `choose`
divides it in this order:

1. Leading messages stay. Only for a target, and only where they take more than a quarter of it, their middle
   is left out (`Room.lead_edits`).
2. What is free beside them and the frame is the budget (`_Budget`). A part of it is held for the summary; the
   rest is the most that the tail may take.
3. The policy's cut rule picks the cut among the legal places (`cut.py`). Where what it keeps cannot be
   shortened enough, the cut moves on to a place from which it can (`_fitting_cut`). Somebody may have chosen
   the range to fold: then the cut is given, and all that is kept stays as it is.
4. What is kept is shortened until it fits: results first, then whatever is larger than a tenth of usable
   (`shrink.py`). Pinned entries are never touched.
5. Older user messages are quoted as far as the policy wants and the room allows.
6. The rest is room for the summary.

For a target the choice is made twice. The first is careful: nobody knows yet how much the summary will take.
When it is written and leaves something, the second one knows its size (`SecondPass`) and gives the rest to
more of the newest messages, or to what the first one shortened (`restored`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.compact.room import CHECKPOINT_LEAST, SPARE, Room
from foldline.core.cut.cut import Cut, Places, counted_from, cut_by_count, cut_by_tokens, places
from foldline.core.cut.edits import Edits, EditsOf, is_folded, merged, unfolded
from foldline.core.cut.expansions import expansions
from foldline.core.cut.pairing import unanswered_from
from foldline.core.decide.policy import message_estimate
from foldline.core.log.entries import EXCLUDED, Said


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


class _Budget(msgspec.Struct, frozen=True):
    """What a view has free beside its leading messages and the frame of its checkpoint, in tokens.

    `held` of it are for the summary, which never goes below `least`.
    """

    room: Room
    second: SecondPass | None
    free: int

    @property
    def least(self) -> int:
        """What a summary gets in any case."""
        return min(CHECKPOINT_LEAST, max(self.free // 2, 0))

    @property
    def held(self) -> int:
        """What is held for the summary."""
        cap = self.room.summary_cap
        if self.second is not None:
            cap = self.second.summary
        elif self.room.target:
            cap = min(cap, self.free // 2)
        return max(cap, self.least)

    @property
    def tail(self) -> int:
        """The most that what is kept may take while the summary has what is held for it."""
        return max(self.free - self.held, 0)

    @property
    def wanted(self) -> int | None:
        """The tokens that the policy keeps, of the tail; None where it keeps a count of messages.

        What was left of a target is used up, whatever the amount.
        """
        ask = self.room.job.ask
        keep = ask.policy.keep
        if keep.amount is not None:
            return self.tail if self.second else min(self.tail, keep.amount.resolve(ask.window, ask.usable))
        return None if keep.messages is not None or keep.message_fraction is not None else 0


def choose(room: Room, second: SecondPass | None = None) -> Choice | None:
    """Choose cut, quotes and elisions so that the view fits; None where nothing can be folded.

    The `second` pass for a target gives the rest of it to what was shortened and to more of the newest.
    """
    state, policy = room.job.state, room.job.ask.policy
    edits = merged(room.edits, room.lead_edits(second.leading if second else 0))
    leading = room.tokens(state.leading, edits)
    budget = _Budget(room, second, room.usable - room.overhead - room.wrap - leading)
    if room.target:
        edits = _with_waiting_shortened(budget, edits)
    cut = room.job.cut or _fitting_cut(budget, edits)
    if cut is None and room.job.may_redraft:
        cut = Cut(0, inside_turn=False)
    if cut is None:
        return None
    kept, older = list(state.kept[cut.index :]), [*state.quoted, *state.kept[: cut.index]]
    edits = unfolded(edits, older)
    if room.job.cut is None:
        edits = _with_kept_shortened(budget, kept, edits)
    free = budget.free - room.tokens(kept, edits)
    most = min(policy.quote_user_tokens, free // 2 if room.target else max(free - budget.least, 0))
    quoted = _quotes(room, older, edits, most)
    joined = [entry for entry in older if entry.id in room.job.carry.messages]
    whole = [entry for entry in joined if entry.message.role != "assistant"]
    chosen = {entry.id for entry in (*quoted, *whole)}
    return Choice(
        cut,
        folded=[entry for entry in older if entry.id not in chosen],
        quoted=quoted,
        kept=kept,
        edits=_of(edits, (*state.leading, *joined, *quoted, *kept)),
        room=free - room.tokens(quoted, edits),
        joined=joined,
    )


def _of(edits: EditsOf, entries: Sequence[Said]) -> Edits:
    """Return the edits of these entries, and of all others what the user took out: it stays out."""
    ids = {entry.id for entry in entries}
    stay = {
        entry: tuple(edit for edit in found if entry in ids or edit.kind == EXCLUDED)
        for entry, found in edits.items()
    }
    return {entry: found for entry, found in stay.items() if found}


# ---- where to cut


def _fitting_cut(budget: _Budget, edits: EditsOf) -> Cut | None:
    """Return the cut that the policy chooses; where what it keeps cannot be made to fit, one further on."""
    found, room = _places(budget, edits), budget.room
    cut = _cut(budget, found)
    if cut is None:
        return None
    left = budget.tail if budget.second is not None else budget.free - budget.least
    kept = room.job.state.kept
    for index in range(len(kept) - 1, cut.index - 1, -1):
        left -= room.least(kept[index])
        if left < 0:
            return _cut(budget, found.since(min(index + 1, found.legal[-1]))) or cut
    return cut


def _places(budget: _Budget, edits: EditsOf) -> Places:
    """Return where the policy may cut: not before the newest boundary, if it may not cross that."""
    room = budget.room
    state, policy = room.job.state, room.job.ask.policy
    if policy.estimator == "foldline" or budget.second is not None:
        mended = edits or room.job.repairs.more
        weights = [room.tokens([entry], edits) for entry in state.kept] if mended else None
    else:
        weights = [
            room.tokens([e], edits)
            if is_folded(edits.get(e.id, ()))
            else message_estimate(e.message, policy.estimator, room.job.counter)
            for e in state.kept
        ]
    found = places(state.kept, policy.cut_rule, legal=room.job.legal, weights=weights)
    fresh = found if policy.cross_boundary else found.since(state.fresh_from)
    return fresh if fresh.legal else found


def _cut(budget: _Budget, found: Places) -> Cut | None:
    """Return the cut that the policy chooses of these places."""
    policy, wanted = budget.room.job.ask.policy, budget.wanted
    first = counted_from(policy.keep, len(found.kept))
    if wanted is None:
        return cut_by_count(found, first, budget.tail)
    counted = found.since(first)
    found = counted if counted.legal else found
    if budget.second is not None:
        return cut_by_tokens(found, wanted, least=wanted - budget.room.usable // SPARE)
    return cut_by_tokens(found, wanted, walk_back=policy.walk_back, most=budget.tail)


# ---- what is shortened


def _with_waiting_shortened(budget: _Budget, edits: Edits) -> Edits:
    """Shorten what waits and no user typed, so that the conversation has half of what is kept."""
    room, wanted = budget.room, budget.wanted
    kept = room.job.state.kept
    start = unanswered_from([entry.message for entry in kept])
    given = [entry for entry in kept[start:] if entry.message.results or entry.message.injected]
    if not wanted:
        return edits
    before = min(wanted // 2, room.tokens(kept[:start], edits))
    return _shortened(room, given, wanted - before, edits)


def _with_kept_shortened(budget: _Budget, kept: Sequence[Said], edits: Edits) -> Edits:
    """Shorten what is kept until it fits.

    What holds one large message is shortened to twice of what the policy keeps, so that a fold gains
    something; not what waits for an answer, nor for a policy that walks back. The first choice for a target
    keeps no more than a quarter of it, or what the policy keeps: what the summary leaves comes back later.
    """
    room, most, wanted = budget.room, budget.tail, budget.wanted or 0
    if room.target and budget.second is None:
        most = min(most, max(budget.free // 4, wanted))
    elif wanted and not room.target and not room.job.ask.policy.walk_back:
        waiting = kept[unanswered_from([entry.message for entry in kept]) :]
        edits = _shortened(room, kept, 2 * wanted, edits, spare=waiting)
    return _shortened(room, kept, most, edits)


def _shortened(
    room: Room, kept: Sequence[Said], most: int, edits: Edits, *, spare: Sequence[Said] = ()
) -> Edits:
    """Shorten messages to `most` tokens together, as far as allowed; `spare` and pins stay whole."""
    over = room.tokens(kept, edits) - most
    return merged(edits, room.shrunk(kept, over, edits, spare=spare)) if over > 0 else edits


def restored(choice: Choice, room: Room, spare: int) -> Choice:
    """Return a choice with what it shortened given back, up to `spare` tokens; it folds the same."""
    leading = room.job.state.leading
    before = room.tokens(leading, choice.edits)
    edits = _of(room.edits, (*leading, *choice.joined, *choice.quoted, *choice.kept))
    edits = merged(edits, room.lead_edits(before + spare))
    spare -= room.tokens(leading, edits) - before
    most = room.tokens(choice.kept, choice.edits) + spare
    return msgspec.structs.replace(choice, edits=_shortened(room, choice.kept, most, edits))


def _quotes(room: Room, older: Sequence[Said], edits: EditsOf, most: int) -> list[Said]:
    """Return the newest messages of the user's own that fit into `most` tokens, oldest first."""
    quoted: list[Said] = []
    folded = {place for at in expansions(older) for place in (at - 1, at)}  # a command stays with its text
    for place in range(len(older) - 1, -1, -1):
        entry = older[place]
        if not entry.message.is_prompt or entry.message.results or place in folded:
            continue
        most -= room.tokens([entry], edits)
        if most < 0:
            break
        quoted.append(entry)
    return quoted[::-1]
