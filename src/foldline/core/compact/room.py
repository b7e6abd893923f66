"""The tokens of one compaction: what may be used, what has to stay, and the floor below which none can go.

|<----------------------------------- usable ------------------------------------>|
| overhead | leading | checkpoint: frame (wrap) + summary | quoted |     kept      |
| system,  | system  | pins, live state    |<-- room ---->| older  | the newest,   |
| tools    | messages| and headings                       | user   | from the cut  |
^ what is folded is told here                 ^ the cut
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Sequence

import msgspec

from foldline.core.carried.select import carry
from foldline.core.checkpoint.checkpoint import make_checkpoint
from foldline.core.compact.compaction_input import CompactionInput, frame
from foldline.core.cut.edits import EditsOf, is_folded, merged, tokens_of
from foldline.core.cut.elide import most_saved, shrink
from foldline.core.decide.policy import summary_cap
from foldline.core.log.entries import Edit, Said
from foldline.core.measure.window import Floor, share
from foldline.core.view import sized

CHECKPOINT_LEAST = 150  # tokens below which a summary says nothing worth reading
SUMMARY_LEAST = 2_000  # tokens that a summary may always take, however little it stands for
SUMMARY_FLOOR = 12  # tokens of the shortest summary: inside its frame a text counts a few more than alone
SUMMARY_SHARE = 0.25  # of usable, at most: a preset's cap for large windows would fill a small one
SPARE = 10  # a target of which less than 1 / SPARE is left is used
_FLOOR_PARTS = {"system": "system", "checkpoint": "checkpoint", "ack": "checkpoint", "pin": "pins"}


class Room(msgspec.Struct, frozen=True):
    """The tokens of one compaction, and the edits of its view that were made before it and on the way.

    `usable` is what the view may take after it; where it has to gain something, that is less than what the
    request allows. `wrap` is what a checkpoint takes around an empty summary.
    """

    job: CompactionInput
    edits: EditsOf
    usable: int
    wrap: int

    @property
    def overhead(self) -> int:
        """The tokens of what stands beside the messages: a system prompt, tools, the note on open calls."""
        return self.job.ask.overhead_tokens + self.job.state.open_call_tokens

    @property
    def target(self) -> bool:
        """Whether the view is to fit a target."""
        return self.job.ask.target is not None

    @property
    def summary_cap(self) -> int:
        """The most tokens of a summary: one that fills a live view would be folded again at once."""
        ask = self.job.ask
        cap = summary_cap(ask.policy, ask.window, ask.usable)
        return cap if self.target else min(cap, share(ask.usable, SUMMARY_SHARE))

    def most_summary(self, folded: Sequence[Said]) -> int:
        """Return the most tokens of a live summary; it stands for all that the one before does, too.

        The one before may have taken what it took, or its share of all that it told.
        """
        part, boundary = self.job.ask.policy.summary_share, self.job.state.boundary
        if part is None or self.target:
            return self.summary_cap
        grown = share(sum(entry.tokens for entry in folded), part)
        if boundary is not None:
            taken = self.job.counter.count(boundary.checkpoint.summary)
            grown += max(taken, share(boundary.ledger.get("tokens", 0), part))
        return min(self.summary_cap, max(grown, SUMMARY_LEAST))

    def tokens(self, entries: Iterable[Said], edits: EditsOf | None = None) -> int:
        """Return what entries take in the view, with these edits or those made before, in tokens."""
        return tokens_of(entries, self.edits if edits is None else edits, self.job.repairs)

    def least(self, entry: Said) -> int:
        """Return the tokens of a message that is elided as far as it may be."""
        whole = self.tokens([entry])
        if entry.id in self.job.state.pins or is_folded(self.edits.get(entry.id, ())):
            return whole
        out = self.job.repairs.out
        return max(0, whole - most_saved(entry, self.usable, self.job.counter, edits=self.edits, out=out))

    @property
    def least_kept(self) -> int:
        """The tokens of what must stay behind any cut, elided as far as it may be."""
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
        """Return elisions that make entries `over` tokens smaller; `spare` and pinned ones stay whole."""
        return shrink(
            [entry for entry in entries if not is_folded(edits.get(entry.id, ()))],
            over,
            usable=self.usable,
            counter=self.job.counter,
            edits=edits,
            spare=frozenset((*self.job.state.pins, *(entry.id for entry in spare))),
            out=self.job.repairs.out,
            least=least,
            recall=self.job.ask.recall,
        )

    def lead_edits(self, most: int = 0) -> tuple[Edit, ...]:
        """Elide leading system messages, for a target alone, where they would take more than a quarter of it.

        They keep a tenth together, or `most` where that is more: their beginnings say who the model is, their
        ends what holds last.
        """
        leading = self.job.state.leading
        tokens, keep = self.tokens(leading), max(self.usable // 10, most)
        if not self.target or tokens <= max(self.usable // 4, keep):
            return ()
        return self.shrunk(leading, tokens - keep, self.edits, least=self.usable // 20)


def room_of(job: CompactionInput, edits: Iterable[Edit] = ()) -> Room:
    """Return the room of a compaction, with the edits made on the way to it.

    Pins count unless an entry that has to stay shows them.
    """
    state, ask, counter = job.state, job.ask, job.counter
    stay = {entry.id for entry in (*state.leading, *job.stays)} - set(state.edits)
    pins = [pin for pin in state.pins.values() if pin.entry not in stay]
    marks = [mark for mark in job.marks(stay) if mark.entry not in stay]
    wrap = make_checkpoint("", frame(job, pins=pins, marks=marks, ack=True), counter).tokens
    wrap += counter.count(ask.policy.ack) + 8 if ask.policy.ack else 0
    return Room(job, merged(state.edits, edits), ask.usable, wrap)


def with_carried(room: Room) -> Room:
    """Return the room beside what the fold carries over.

    That takes at most half of what a view has beside all that must stay.
    """
    job, state = room.job, room.job.state
    stays = room.tokens(state.leading) + room.least_kept
    free = room.usable - room.overhead - room.wrap - stays - CHECKPOINT_LEAST
    found = carry(
        state.leading,
        state.clean((*state.past, *state.quoted, *state.kept)),
        state.boundary.checkpoint.carried if state.boundary is not None else (),
        max(free // 2, 0),
        job.counter.count,
        whole={entry.id for entry in job.stays},
        begun=state.boundary is not None,
    )
    return msgspec.structs.replace(room, job=job.changed(carry=found), wrap=room.wrap + found.tokens)


# ---- the floor


def floor_of(job: CompactionInput) -> Floor:
    """Return what no compaction of this view can remove, in tokens."""
    room, ask = room_of(job), job.ask
    bare = make_checkpoint("", frame(job), job.counter).tokens
    leading = merged(room.edits, room.lead_edits())
    return Floor(
        system=ask.overhead.system + room.tokens(job.state.leading, leading),
        tools=ask.overhead.tools,
        pins=max(0, room.wrap - bare),
        unanswered=room.least_kept + job.state.open_call_tokens,
        checkpoint=bare + min(CHECKPOINT_LEAST, max(ask.usable // 10, SUMMARY_FLOOR)),
    )


def least_floor(job: CompactionInput, floor: Floor) -> Floor:
    """Return the floor of the least target that holds its own floor, or the view as it is where that is less.

    A floor grows with its target: what is elided may take a share of it.
    """
    target, view = job.ask.target, _unfolded(job)
    for _ in range(50):
        if target is None or floor.total <= target:
            break
        target = floor.total
        floor = floor_of(job.asking(target=target))
    return floor if target is None or floor.total <= view.total else view


def _unfolded(job: CompactionInput) -> Floor:
    """Return the parts of the view as it is; what is neither of the others counts as unanswered."""
    sizes = Counts[str]()
    for name, tokens in sized(job.state.view()):
        sizes[_FLOOR_PARTS.get(name, "unanswered")] += tokens
    sizes.update(system=job.ask.overhead.system, tools=job.ask.overhead.tools)
    return Floor(**sizes)
