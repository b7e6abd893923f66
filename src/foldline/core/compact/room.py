"""The tokens of one compaction: what may be used, what must stay, and the floor that none can go below.

|<----------------------------------- usable ------------------------------------>|
| overhead | leading | checkpoint: frame (wrap) + summary | quoted |     kept      |
| system,  | system  | pins, live state    |<-- room ---->| older  | the newest,   |
| tools    | messages| and headings                       | user   | from the cut  |
^ summarises what is folded                   ^ the cut
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Sequence

import msgspec

from foldline.core.carried.select import carry
from foldline.core.checkpoint.checkpoint import make_checkpoint
from foldline.core.compact.compaction_input import CompactionInput, frame
from foldline.core.cut.edits import EditsOf, is_folded, merged, tokens_of
from foldline.core.cut.elide import Elidable, candidates_in, saving, shrink
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.policy import summary_cap
from foldline.core.decide.triggers import thresholds
from foldline.core.log.entries import Edit, Said
from foldline.core.measure.window import Floor, share
from foldline.core.view_items import sizes_of

CHECKPOINT_LEAST = 150  # tokens of the smallest summary worth reading
SUMMARY_LEAST = 2_000  # tokens that a summary may always take, however little it covers
SUMMARY_FLOOR = 12  # tokens of the shortest summary; inside its frame a text counts a few tokens more
SUMMARY_SHARE = 0.25  # of usable at most: a cap made for large windows would fill a small one
LEAVES = 0.8  # of the hard trigger
SPARE = 10  # a target counts as used if less than 1 / SPARE of it is left
_FLOOR_PARTS = {"system": "system", "checkpoint": "checkpoint", "ack": "checkpoint", "pin": "pins"}


class Room(msgspec.Struct, frozen=True):
    """The tokens of one compaction, and the edits of its view so far.

    `usable` is what the view may take after it: less than the request allows if the compaction must gain
    something. `wrap` is the size of a checkpoint with an empty summary.
    """

    job: CompactionInput
    edits: EditsOf
    usable: int
    wrap: int

    @property
    def overhead(self) -> int:
        """The tokens outside the log's messages: a system prompt, tools, the note on open calls."""
        return self.job.ask.overhead_tokens + self.job.state.open_call_tokens

    @property
    def target(self) -> bool:
        """Whether the view must fit a target."""
        return self.job.ask.target is not None

    @property
    def summary_cap(self) -> int:
        """The most tokens of a summary; one that filled a live view would be folded again at once."""
        ask = self.job.ask
        cap = summary_cap(ask.policy, ask.window, ask.usable)
        return cap if self.target else min(cap, share(ask.usable, SUMMARY_SHARE))

    def most_summary(self, folded: Sequence[Said]) -> int:
        """Return the most tokens of a live summary, which also covers what the previous one covered.

        For that it gets the size of the previous summary, or its share of what that covered.
        """
        fraction, boundary = self.job.ask.policy.summary_share, self.job.state.boundary
        if fraction is None or self.target:
            return self.summary_cap
        tokens = share(sum(entry.tokens for entry in folded), fraction)
        if boundary is not None:
            previous = self.job.counter.count(boundary.checkpoint.summary)
            tokens += max(previous, share(boundary.ledger.get("tokens", 0), fraction))
        return min(self.summary_cap, max(tokens, SUMMARY_LEAST))

    def tokens(self, entries: Iterable[Said], edits: EditsOf | None = None) -> int:
        """Return the tokens of entries in the view, with `edits` (default: those so far)."""
        return tokens_of(entries, self.edits if edits is None else edits, self.job.repairs)

    def least(self, entry: Said) -> int:
        """Return the tokens of a message that is elided as much as possible."""
        whole = self.tokens([entry])
        if entry.id in self.job.state.pins or is_folded(self.edits.get(entry.id, ())):
            return whole
        return max(0, whole - saving(self._candidates([entry], self.edits)))

    @property
    def least_kept(self) -> int:
        """The tokens of the messages that no cut can fold, elided as much as possible."""
        return sum(map(self.least, self.job.stays))

    def shrunk(
        self,
        entries: Sequence[Said],
        over: int,
        edits: EditsOf,
        *,
        spare: Iterable[Said] = (),
        least: int | None = None,
    ) -> tuple[Edit, ...]:
        """Return elisions that save `over` tokens in entries; `spare` and pinned ones stay whole."""
        stay = {*self.job.state.pins, *(entry.id for entry in spare)}
        gives = (one for one in entries if one.id not in stay and not is_folded(edits.get(one.id, ())))
        candidates = self._candidates(gives, edits, least)
        return shrink(candidates, over, self.job.counter, recall=self.job.ask.recall)

    def _candidates(
        self, entries: Iterable[Said], edits: EditsOf, least: int | None = None
    ) -> list[Elidable]:
        out = self.job.repairs.out
        return candidates_in(entries, self.usable, self.job.counter, edits=edits, out=out, least=least)

    def lead_edits(self, most: int = 0) -> tuple[Edit, ...]:
        """Elide leading system messages if they take more than a quarter of a target.

        Together they keep a tenth of it, or `most` tokens if that is more. Their beginnings and ends stay.
        """
        leading = self.job.state.leading
        tokens, keep = self.tokens(leading), max(self.usable // 10, most)
        if not self.target or tokens <= max(self.usable // 4, keep):
            return ()
        return self.shrunk(leading, tokens - keep, self.edits, least=self.usable // 20)


def room_of(job: CompactionInput, edits: Iterable[Edit] = ()) -> Room:
    """Return the room of a compaction, with the edits made so far.

    Pins count unless an entry that must stay shows them.
    """
    state, ask, counter = job.state, job.ask, job.counter
    shown = {entry.id for entry in (*state.leading, *job.stays)} - set(state.edits)
    pins = [pin for pin in state.pins.values() if pin.entry not in shown]
    marks = [mark for mark in job.marks(shown) if mark.entry not in shown]
    wrap_tokens = make_checkpoint("", frame(job, pins=pins, marks=marks, ack=True), counter).tokens
    wrap_tokens += counter.count(ask.policy.ack) + 8 if ask.policy.ack else 0
    return Room(job, merged(state.edits, edits), ask.usable, wrap_tokens)


def with_carried(room: Room) -> Room:
    """Return the room left by what the fold carries over.

    That gets at most half of what is free beside all that must stay.
    """
    job, state = room.job, room.job.state
    fixed = room.tokens(state.leading) + room.least_kept
    free = room.usable - room.overhead - room.wrap - fixed - CHECKPOINT_LEAST
    carried = carry(
        state.leading,
        state.clean((*state.past, *state.quoted, *state.kept)),
        state.boundary.checkpoint.carried if state.boundary is not None else (),
        max(free // 2, 0),
        job.counter.count,
        shown={entry.id for entry in job.stays},
        begun=state.boundary is not None,
    )
    return msgspec.structs.replace(room, job=job.changed(carry=carried), wrap=room.wrap + carried.tokens)


def most_left(ask: FoldRequest) -> int:
    """Return the most tokens that an automatic fold leaves: with more the next turn would fold again."""
    return min(share(thresholds(ask.policy, ask.window).hard or ask.usable, LEAVES), ask.usable)


# ---- the floor


def floor_of(job: CompactionInput) -> Floor:
    """Return what no compaction of this view can remove, in tokens."""
    room, ask = room_of(job), job.ask
    empty_frame = make_checkpoint("", frame(job), job.counter).tokens
    leading = merged(room.edits, room.lead_edits())
    return Floor(
        system=ask.overhead.system + room.tokens(job.state.leading, leading),
        tools=ask.overhead.tools,
        pins=max(0, room.wrap - empty_frame),
        unanswered=room.least_kept + job.state.open_call_tokens,
        checkpoint=empty_frame + min(CHECKPOINT_LEAST, max(ask.usable // 10, SUMMARY_FLOOR)),
    )


def least_floor(job: CompactionInput, floor: Floor) -> Floor:
    """Return the floor of the smallest target that can be met, or the size of the view if that is less.

    A floor grows with its target, because elided messages may take a share of it.
    """
    target, view = job.ask.target, _view_as_floor(job)
    for _ in range(50):
        if target is None or floor.total <= target:
            break
        target = floor.total
        floor = floor_of(job.asking(target=target))
    return floor if target is None or floor.total <= view.total else view


def _view_as_floor(job: CompactionInput) -> Floor:
    """Return the parts of the whole view as a floor; kept messages count as unanswered."""
    sizes = Counts[str]()
    for name, tokens in sizes_of(job.state.items()).items():
        sizes[_FLOOR_PARTS.get(name, "unanswered")] += tokens
    sizes.update(system=job.ask.overhead.system, tools=job.ask.overhead.tools)
    return Floor(**sizes)
