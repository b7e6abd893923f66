"""One compaction: the view as it is, what is asked of it, and what stands around its summary."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from foldline.core.carried.select import Carry
from foldline.core.checkpoint.checkpoint import Frame
from foldline.core.cut.cut import Cut
from foldline.core.cut.edits import ViewRepairs
from foldline.core.cut.images import Scale
from foldline.core.cut.legal import legal_cuts
from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.log.entries import Pin, Said
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState

SIGNED_LOOP = Nothing(
    "signed_thinking", "inside a tool loop whose thinking is bound to what stands before it"
)


MARKS_SHARE = 10  # words that the user marked take at most usable / MARKS_SHARE
A_BLOCK = 16  # tokens of the tags around a text


class CompactionInput(msgspec.Struct, frozen=True, dict=True):
    """One compaction: the view as it is, what is asked of it, and the counter of its tokens.

    `carry` is what goes over the fold whatever the summary says: instructions and earlier summaries. The view
    does not grow while its compaction is planned. `marks_room`: whether what the user marked has any. `scale`
    makes images smaller; without it an old one becomes a note. `cut` is given where the range to fold was
    chosen.
    """

    state: ViewState
    ask: FoldRequest
    counter: Counter
    carry: Carry = Carry()
    marks_room: bool = True
    scale: Scale | None = None
    cut: Cut | None = None

    @property
    def size(self) -> int:
        """The tokens of the view as it is, with a system prompt and tools given apart."""
        return self.ask.overhead_tokens + self.state.tokens

    @property
    def least_gain(self) -> int:
        """The tokens that a boundary has to gain."""
        ask = self.ask
        return max(ask.policy.min_gain.resolve(ask.window, ask.usable), 1) if ask.optional else 1

    @property
    def may_redraft(self) -> bool:
        """Whether the checkpoint may be written anew though no message is folded."""
        return self.state.server is not None or (self.state.boundary is not None and not self.ask.optional)

    @cached_property
    def legal(self) -> list[int]:
        """Where a cut may fall, in `state.kept`."""
        return legal_cuts(self.state.kept, self.state.pairing, self.state.edits)

    @cached_property
    def repairs(self) -> ViewRepairs:
        """What the view leaves out and adds by itself."""
        return self.state.view_repairs()

    @property
    def stays(self) -> list[Said]:
        """The kept messages that no cut can leave behind."""
        return self.state.kept[self.legal[-1] if self.legal else 0 :]

    def marks(self, shown: Collection[str] = ()) -> list[Pin]:
        """Return what the user marked as far as it has room, the newest first to be taken.

        What is `shown` anyway, by the ids of entries, takes none.
        """
        state, chosen = self.state, list[Pin]()
        room = self.ask.usable // MARKS_SHARE if self.marks_room else 0
        for mark in (Pin(one.entry, redact(one.text)) for one in reversed(state.marks.values())):
            size = 0 if mark.entry in shown else self.counter.count(mark.text) + A_BLOCK
            if size <= room and mark.entry not in state.pins:
                room -= size
                chosen.append(mark)
        return chosen[::-1]

    def changed(self, **fields: Any) -> CompactionInput:
        """Return the job with some fields changed; of the same view nothing is worked out again."""
        made = msgspec.structs.replace(self, **fields)
        if made.state is self.state:
            vars(made).update(vars(self))
        return made

    def asking(self, **changes: Any) -> CompactionInput:
        """Return the job with some fields of what is asked changed."""
        return self.changed(ask=msgspec.structs.replace(self.ask, **changes))


def frame(
    job: CompactionInput,
    *,
    pins: Iterable[Pin] = (),
    marks: Iterable[Pin] = (),
    ack: bool = False,
    **more: Any,
) -> Frame:
    """Return the frame of a checkpoint: what stands around its summary. Pins are quoted without secrets."""
    ask = job.ask
    now = ask.continuation
    if now is not None and now.question:
        now = msgspec.structs.replace(now, question=redact(now.question))
    return Frame(
        ask.policy,
        number=ask.number,
        live=ask.live,
        standing=now,
        pins=tuple(Pin(pin.entry, redact(pin.text)) for pin in pins),
        marks=tuple(marks),
        ack=ack and bool(ask.policy.ack),
        **more,
    )


def frame_before(
    job: CompactionInput, kept: Sequence[Said], quoted: Sequence[Said], edited: Iterable[str]
) -> Frame:
    """Return the frame of a checkpoint that stands before what is kept.

    A pin is quoted unless the view shows its entry, and unedited. `edited` are the ids of entries with edits.
    """
    quotes_follow = job.ask.policy.summary_position == "before" and bool(quoted)
    shown = frozenset(entry.id for entry in (*job.state.leading, *quoted, *kept)) - set(edited)
    return frame(
        job,
        pins=job.state.pins.values(),
        marks=job.marks(shown),
        ack=quotes_follow or not kept or kept[0].message.role != "assistant",
        carried=tuple(one for one in job.carry.texts if one.entry not in shown),
        shown=shown,
        quoted=len(quoted),
        told=any(entry.message.role == "assistant" or entry.message.is_prompt for entry in kept),
    )
