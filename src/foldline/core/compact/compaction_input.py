"""One compaction: its view, its request, and what surrounds its summary."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from foldline.core.carried.instructions import kind_of, on_compacting
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
    "signed_thinking", "inside a tool loop with signed thinking, which is bound to what comes before it"
)


MARKS_SHARE = 10  # words that the user marked get at most usable / MARKS_SHARE
A_BLOCK = 16  # tokens of the tags around a text


class CompactionInput(msgspec.Struct, frozen=True, dict=True):
    """One compaction: its view, its request, and a token counter.

    `carry` is what the fold carries over beside the summary: instructions and earlier summaries. The view
    does not grow while its compaction is planned. `marks_room`: whether the user's marks have room. `scale`
    scales images down; without it old ones become notes. `cut` is given if the user chose the range to fold.
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
        """The tokens of the view before the compaction, with a separate system prompt and tools."""
        return self.ask.overhead_tokens + self.state.tokens

    @property
    def least_gain(self) -> int:
        """The tokens that a boundary must gain."""
        ask = self.ask
        return max(ask.policy.min_gain.resolve(ask.window, ask.usable), 1) if ask.optional else 1

    @property
    def may_redraft(self) -> bool:
        """Whether the checkpoint may be rewritten although no message is folded."""
        return self.state.server is not None or (self.state.boundary is not None and not self.ask.optional)

    @cached_property
    def legal(self) -> list[int]:
        """Where a cut may fall, in `state.kept`."""
        return legal_cuts(self.state.kept, self.state.pairing, self.state.edits)

    @cached_property
    def repairs(self) -> ViewRepairs:
        """What the view itself leaves out and adds."""
        return self.state.view_repairs()

    @property
    def stays(self) -> list[Said]:
        """The kept messages that no cut can fold."""
        return self.state.kept[self.legal[-1] if self.legal else 0 :]

    def marks(self, shown: Collection[str] = ()) -> list[Pin]:
        """Return the user's marks that have room, preferring the newest.

        Marks in entries whose ids are `shown` take no room.
        """
        state, chosen = self.state, list[Pin]()
        room = self.ask.usable // MARKS_SHARE if self.marks_room else 0
        for mark in (Pin(raw.entry, redact(raw.text)) for raw in reversed(state.marks.values())):
            size = 0 if mark.entry in shown else self.counter.count(mark.text) + A_BLOCK
            if size <= room and mark.entry not in state.pins:
                room -= size
                chosen.append(mark)
        return chosen[::-1]

    def changed(self, **fields: Any) -> CompactionInput:
        """Return the job with some fields changed; for the same view, cached properties are kept."""
        job = msgspec.structs.replace(self, **fields)
        if job.state is self.state:
            vars(job).update(vars(self))
        return job

    def asking(self, **changes: Any) -> CompactionInput:
        """Return the job with some fields of its request changed."""
        return self.changed(ask=msgspec.structs.replace(self.ask, **changes))


def frame(
    job: CompactionInput,
    *,
    pins: Iterable[Pin] = (),
    marks: Iterable[Pin] = (),
    ack: bool = False,
    **fields: Any,
) -> Frame:
    """Return the frame of a checkpoint: what surrounds its summary. Pins are redacted."""
    ask = job.ask
    continuation = ask.continuation
    if continuation is not None and continuation.question:
        continuation = msgspec.structs.replace(continuation, question=redact(continuation.question))
    return Frame(
        ask.policy,
        number=ask.number,
        live=ask.live,
        standing=continuation,
        pins=tuple(Pin(pin.entry, redact(pin.text)) for pin in pins),
        marks=tuple(marks),
        ack=ack and bool(ask.policy.ack),
        **fields,
    )


def frame_before(
    job: CompactionInput, kept: Sequence[Said], quoted: Sequence[Said], edited: Iterable[str]
) -> Frame:
    """Return the frame of a checkpoint before the kept messages.

    A pin is quoted unless the view shows its entry without edits. `edited` are the ids of entries with edits.
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


def of_summaries(job: CompactionInput) -> str:
    """Return what the session's instructions say about summaries, without duplicates."""
    state, replaced = job.state, job.carry.replaces
    instructions = [entry for entry in (*state.leading, *state.kept) if kind_of(entry.message) is not None]
    texts = [
        *(entry.message.text for entry in state.clean(instructions) if entry.id not in replaced),
        *(text.text for text in job.carry.texts if text.kind == "instructions"),
    ]
    sections = (job.ask.project, *map(on_compacting, texts))
    return "\n\n".join(dict.fromkeys(text for text in sections if text))
