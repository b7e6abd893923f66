"""What a compaction would fold, quote, keep and edit: the pure choice, before any summary is written.

A view has a fixed size, and everything in it competes for the same tokens (see the picture in `room.py`).
`choose` divides it in this order:

1. Leading messages stay. For a target, their middle is left out if they take more than a quarter of it
   (`Room.lead_edits`).
2. The tokens left beside them and the frame are the budget (`_Budget`). A part of it is reserved for the
   summary; the kept messages may take the rest.
3. The policy's cut rule picks a legal cut (`cut.py`). If the messages it keeps cannot be shortened enough,
the
   cut moves forward until they can (`_fitting_cut`). If the user chose the range to fold, the cut is given
   and all kept messages stay unchanged.
4. Kept messages are shortened until they fit: results first, then any part larger than a tenth of usable
   (`elide.py`). Pinned entries are never touched.
5. Older user messages are quoted as the policy asks, if there is room.
6. The rest is room for the summary.

For a target the choice is made twice, because the size of the summary is not known the first time. The second
time (`SecondPass`) it is, and what the summary left goes to more of the newest messages, or to what the first
choice shortened (`restored`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.compact.room import CHECKPOINT_LEAST, SPARE, Room
from foldline.core.cut.cut import Cut, Places, counted_from, cut_by_count, cut_by_tokens, places
from foldline.core.cut.edits import Edits, EditsOf, edits_of, is_folded, merged, unfolded
from foldline.core.cut.notes import expansions
from foldline.core.cut.pairing import unanswered_from
from foldline.core.decide.policy import message_estimate
from foldline.core.log.entries import Said


class SecondPass(msgspec.Struct, frozen=True):
    """What the first choice for a target left: its summary's tokens, and the most for leading messages."""

    summary: int
    leading: int


class Choice(msgspec.Struct):
    """A chosen fold. `edits` are all edits of entries that stay, including older ones.

    `joined` are messages before the cut that stay, after the leading ones; of a reply among them only a part
    stays, and the rest is folded.
    """

    cut: Cut
    folded: list[Said]
    quoted: list[Said]
    kept: list[Said]
    edits: Edits
    room: int  # tokens left for the summary
    joined: list[Said] = []


class _Budget(msgspec.Struct, frozen=True):
    """The tokens of a view that are free beside its leading messages and the frame of its checkpoint.

    `held` of them are reserved for the summary, at least `least`.
    """

    room: Room
    second: SecondPass | None
    free: int

    @property
    def least(self) -> int:
        """The tokens that the summary always gets."""
        return min(CHECKPOINT_LEAST, max(self.free // 2, 0))

    @property
    def held(self) -> int:
        """The tokens reserved for the summary."""
        cap = self.room.summary_cap
        if self.second is not None:
            cap = self.second.summary
        elif self.room.target:
            cap = min(cap, self.free // 2)
        return max(cap, self.least)

    @property
    def tail(self) -> int:
        """The most that the kept messages may take beside the summary's reserve."""
        return max(self.free - self.held, 0)

    @property
    def wanted(self) -> int | None:
        """The tokens of the tail that the policy keeps; None if it keeps a count of messages.

        The second choice for a target uses the whole tail.
        """
        ask = self.room.job.ask
        keep = ask.policy.keep
        if keep.amount is not None:
            return self.tail if self.second else min(self.tail, keep.amount.resolve(ask.window, ask.usable))
        return None if keep.messages is not None or keep.message_fraction is not None else 0


def choose(room: Room, second: SecondPass | None = None) -> Choice | None:
    """Choose cut, quotes and elisions so that the view fits; None if nothing can be folded.

    The `second` choice for a target gives its unused tokens to what was shortened and to newer messages.
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
    most_quoted = min(policy.quote_user_tokens, free // 2 if room.target else max(free - budget.least, 0))
    quoted = _quotes(room, older, edits, most_quoted)
    joined = [entry for entry in older if entry.id in room.job.carry.messages]
    kept_whole = [entry for entry in joined if entry.message.role != "assistant"]
    unfolded_ids = {entry.id for entry in (*quoted, *kept_whole)}
    return Choice(
        cut,
        folded=[entry for entry in older if entry.id not in unfolded_ids],
        quoted=quoted,
        kept=kept,
        edits=edits_of(edits, {entry.id for entry in (*state.leading, *joined, *quoted, *kept)}),
        room=free - room.tokens(quoted, edits),
        joined=joined,
    )


# ---- where to cut


def _fitting_cut(budget: _Budget, edits: EditsOf) -> Cut | None:
    """Return the policy's cut, or a later one if the messages that it keeps cannot be shortened to fit."""
    candidates, room = _places(budget, edits), budget.room
    cut = _cut(budget, candidates)
    if cut is None:
        return None
    tokens_left = budget.tail if budget.second is not None else budget.free - budget.least
    kept = room.job.state.kept
    for index in range(len(kept) - 1, cut.index - 1, -1):
        tokens_left -= room.least(kept[index])
        if tokens_left < 0:
            return _cut(budget, candidates.since(min(index + 1, candidates.legal[-1]))) or cut
    return cut


def _places(budget: _Budget, edits: EditsOf) -> Places:
    """Return where the policy may cut: only after the newest boundary if it may not cross that."""
    room = budget.room
    state, policy = room.job.state, room.job.ask.policy
    if policy.estimator == "foldline" or budget.second is not None:
        has_edits = edits or room.job.repairs.more
        weights = [room.tokens([entry], edits) for entry in state.kept] if has_edits else None
    else:
        weights = [
            room.tokens([entry], edits)
            if is_folded(edits.get(entry.id, ()))
            else message_estimate(entry.message, policy.estimator, room.job.counter)
            for entry in state.kept
        ]
    all_places = places(state.kept, policy.cut_rule, legal=room.job.legal, weights=weights)
    since_boundary = all_places if policy.cross_boundary else all_places.since(state.fresh_from)
    return since_boundary if since_boundary.legal else all_places


def _cut(budget: _Budget, candidates: Places) -> Cut | None:
    """Return the cut that the policy chooses among these places."""
    policy, wanted = budget.room.job.ask.policy, budget.wanted
    first = counted_from(policy.keep, len(candidates.kept))
    if wanted is None:
        return cut_by_count(candidates, first, budget.tail)
    counted = candidates.since(first)
    candidates = counted if counted.legal else candidates
    if budget.second is not None:
        return cut_by_tokens(candidates, wanted, least=wanted - budget.room.usable // SPARE)
    return cut_by_tokens(candidates, wanted, walk_back=policy.walk_back, most=budget.tail)


# ---- what is shortened


def _with_waiting_shortened(budget: _Budget, edits: Edits) -> Edits:
    """Shorten unanswered results and injected messages, so that the conversation gets half of the tail."""
    room, wanted = budget.room, budget.wanted
    kept = room.job.state.kept
    start = unanswered_from([entry.message for entry in kept])
    waiting = [entry for entry in kept[start:] if entry.message.results or entry.message.injected]
    if not wanted:
        return edits
    conversation = min(wanted // 2, room.tokens(kept[:start], edits))
    return _shortened(room, waiting, wanted - conversation, edits)


def _with_kept_shortened(budget: _Budget, kept: Sequence[Said], edits: Edits) -> Edits:
    """Shorten what is kept until it fits.

    A tail with one large message is shortened to twice what the policy keeps, so that the fold gains
    something; unanswered messages are not, nor any for a policy that walks back. The first choice for a
    target keeps at most a quarter of it, or what the policy keeps; what the summary leaves is restored later.
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
    """Shorten messages to `most` tokens in all, as far as allowed; `spare` and pinned ones stay whole."""
    over = room.tokens(kept, edits) - most
    return merged(edits, room.shrunk(kept, over, edits, spare=spare)) if over > 0 else edits


def restored(choice: Choice, room: Room, spare: int) -> Choice:
    """Return a choice that shortens `spare` tokens less and folds the same."""
    leading = room.job.state.leading
    leading_tokens = room.tokens(leading, choice.edits)
    stay = {entry.id for entry in (*leading, *choice.joined, *choice.quoted, *choice.kept)}
    edits = edits_of(room.edits, stay)
    edits = merged(edits, room.lead_edits(leading_tokens + spare))
    spare -= room.tokens(leading, edits) - leading_tokens
    most_kept = room.tokens(choice.kept, choice.edits) + spare
    return msgspec.structs.replace(choice, edits=_shortened(room, choice.kept, most_kept, edits))


def _quotes(room: Room, older: Sequence[Said], edits: EditsOf, tokens_left: int) -> list[Said]:
    """Return the newest prompts of the user that fit into `tokens_left` tokens, oldest first."""
    quoted: list[Said] = []
    commands = {
        place for at in expansions(older) for place in (at - 1, at)
    }  # a command and its text are not quoted
    for place in range(len(older) - 1, -1, -1):
        entry = older[place]
        if not entry.message.is_prompt or entry.message.results or place in commands:
            continue
        tokens_left -= room.tokens([entry], edits)
        if tokens_left < 0:
            break
        quoted.append(entry)
    return quoted[::-1]
