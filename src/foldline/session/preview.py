"""Boundaries by hand: compactions, made at once or previewed and then committed, and exclusions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from foldline.arguments import check
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.exclude import exclude
from foldline.core.compact.rebase import Draft, with_summary
from foldline.core.cut.edits import folds, summary_of
from foldline.core.decide.ask import FoldRequest, Nothing, fold_range
from foldline.core.log.entries import Boundary, Compacted, Receipt, Said
from foldline.errors import InputError, LeafMoved
from foldline.session import spans
from foldline.session.certificate import is_price
from foldline.session.compactor import Compactor
from foldline.session.cursor import RETRIES
from foldline.session.shared import Shared
from foldline.session.triggers import Triggers


class Preview(msgspec.Struct, frozen=True):
    """A boundary that is not appended; `Session.commit` appends this very one."""

    draft: Draft
    ask: FoldRequest

    @property
    def boundary(self) -> Boundary:
        """The boundary as it would be appended now."""
        return self.draft.boundary

    @property
    def receipt(self) -> Receipt:
        """What it would do."""
        return self.draft.boundary.receipt

    @property
    def summary(self) -> str | None:
        """The checkpoint's summary, for editing; None for a prune. That of a range is not edited."""
        boundary = self.draft.boundary
        return summary_of(boundary) if folds(boundary) else None


class ByHand:
    """Compacts one session, or takes messages out, when somebody says so; what runs meanwhile gives way."""

    def __init__(self, shared: Shared, compactor: Compactor, triggers: Triggers) -> None:
        self._shared = shared
        self._compactor = compactor
        self._maker = compactor.maker
        self._triggers = triggers

    async def compact(
        self,
        instructions: str | None = None,
        *,
        target: int | None = None,
        up_to: str | None = None,
        since: str | None = None,
        reason: Literal["manual", "agent"] = "manual",
    ) -> Receipt | Nothing:
        """Compact now, by hand; returns the receipt, or why there was nothing to do.

        `instructions` say what the summary should look at; `target` is a budget in tokens for the view;
        `reason` is `agent` where the model asked for it. A draft in the making is dropped. The session can be
        used meanwhile: what is said stays in order behind the boundary's cut.

        `up_to` an entry, all before it is folded and its exchange too (a user's message with its turn, a call
        with its results), and what follows is kept word for word; `since` one, it and what follows is folded,
        and what stands before is kept. Where no cut is legal there, less is folded, and the receipt notes it.
        Raises InputError where that is nothing, or the entry is none of the view's.
        """
        chosen = fold_range(up_to, since, target)
        await self._give_way()
        why = reason if target is None else "target"
        return await self._compactor.compact(why, instructions, target, chosen=chosen)

    async def preview(
        self,
        instructions: str | None = None,
        *,
        target: int | None = None,
        up_to: str | None = None,
        since: str | None = None,
        on_text: Callable[[str | None], None] | None = None,
    ) -> Preview | Nothing:
        """Return what `compact` would append, and append nothing; `commit` appends that very boundary.

        `on_text` is called with each piece of the summary that a model writes, before it is checked, and with
        None where it begins anew.
        """
        chosen = fold_range(up_to, since, target)
        await self._give_way()
        async with self._shared.locked(follow=False):
            reason = "manual" if target is None else "target"
            work = await self._maker.take(reason, instructions, target, chosen=chosen)
        outcome = await self._maker.execute(work, self._shared.summarizer, on_text)
        if isinstance(outcome, Nothing):
            return outcome
        if isinstance(outcome, Compacted):
            outcome = await self._maker.certifier.priced(work.entries, outcome, work.ask.policy)
        return Preview(msgspec.structs.replace(work.base, boundary=outcome), work.ask)

    async def commit(self, preview: Preview, *, summary: str | None = None) -> Receipt | Nothing:
        """Append the boundary that a preview showed, with pins and live state as they are now.

        `summary` is its summary as the user edited it: a standing constraint that was taken out no longer
        stands. What was said since stays behind the boundary's cut. Nothing, and why, where it no longer fits
        the path: a boundary came since, or it would gain nothing. Raises InputError for an empty summary.
        """
        await self._give_way()
        draft = preview.draft if summary is None else with_summary(preview.draft, summary)
        async with self._maker.one:
            await self._compactor.drafts.stop()
            draft = await self._certified(draft, preview.ask)
            size = self._shared.model.view_tokens
            with spans.compaction(self._shared.id, preview.ask.reason, size) as opened:
                async with self._shared.locked(follow=False):
                    return await self._maker.commit(draft, preview.ask, opened, waited=True)

    async def exclude(self, at: str, part: int | None = None) -> Receipt:
        """Take a message out of the context, or one part of it (a number from 0); `undo` brings it back.

        No later fold tells of it, nor do the model's recall tools; the history keeps it, and your own search
        finds it. A call takes its result along; a result alone leaves a note. Raises InputError, with why,
        for what has to stay: system messages, pinned ones, what was folded, all that waits for an answer.
        """
        check(at=at)
        shared = self._shared
        await self._give_way()
        async with shared.locked() as cursor:
            if not isinstance(await shared.store.entry(shared.id, at), Said):
                raise InputError(f"no message {at!r} in session {shared.id}: take the id from `entries()`")
            for _ in range(RETRIES):
                job = CompactionInput(cursor.state, shared.model.ask("manual"), shared.model.setup.counter)
                boundary = msgspec.structs.replace(exclude(job, at, part), at=time.time())
                with spans.compaction(shared.id, "manual", job.size) as opened:
                    entry = await cursor.commit(boundary, shared.model.notes())
                    if entry is not None:
                        self._maker.told(entry, boundary, opened, waited=True)
                        break
            else:
                raise LeafMoved(f"session {shared.id} is written to faster than it can be followed")
        await self._compactor.drafts.stop()  # one of the path as it was is void
        return boundary.receipt

    async def _certified(self, draft: Draft, ask: FoldRequest) -> Draft:
        """Return the draft as it is committed, with a certificate in the place of what it was to cost."""
        if not isinstance(draft.boundary, Compacted) or not ask.policy.certify:
            return draft
        async with self._shared.locked(follow=False) as cursor:
            entries = cursor.state.entries()
        notes = tuple(note for note in draft.boundary.receipt.notes if not is_price(note))
        receipt = msgspec.structs.replace(draft.boundary.receipt, notes=notes)
        bare = msgspec.structs.replace(draft.boundary, receipt=receipt)
        boundary = await self._maker.certifier.certified(entries, bare, ask.policy)
        return msgspec.structs.replace(draft, boundary=boundary)

    async def _give_way(self) -> None:
        self._shared.check_free()
        await self._shared.follow()
        await self._triggers.checks.stop()
