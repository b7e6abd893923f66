"""Manual boundaries: compactions, immediate or previewed first, and exclusions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from foldline.arguments import check
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.exclude import exclude
from foldline.core.compact.rebase import Draft, holds, with_summary
from foldline.core.cut.edits import folds, summary_of
from foldline.core.decide.ask import FoldRequest, Nothing, fold_range
from foldline.core.log.entries import Boundary, Compacted, Receipt, Said
from foldline.errors import InputError
from foldline.session import spans
from foldline.session.certificate import is_price
from foldline.session.compactor import Compactor
from foldline.session.cursor import RETRIES
from foldline.session.shared import Shared
from foldline.session.triggers import Triggers


class Preview(msgspec.Struct, frozen=True):
    """A boundary that is not appended yet; `Session.commit` appends it."""

    draft: Draft
    ask: FoldRequest

    @property
    def boundary(self) -> Boundary:
        """The boundary that would be appended."""
        return self.draft.boundary

    @property
    def receipt(self) -> Receipt:
        """Its receipt."""
        return self.draft.boundary.receipt

    @property
    def summary(self) -> str | None:
        """The checkpoint's summary, for editing; None for a prune. A range's summary cannot be edited."""
        boundary = self.draft.boundary
        return summary_of(boundary) if folds(boundary) else None


class ManualCompaction:
    """Compacts one session or excludes messages on request; cancels background work first."""

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

        `instructions` tell the summary what to focus on; `target` is a budget in tokens for the view;
        `reason` is `agent` if the model requested it. A draft is dropped. The session stays usable meanwhile:
        new messages follow the boundary's cut.

        `up_to` folds everything up to an entry, including its exchange (a user's message with its turn, a
        call with its results), and keeps the rest verbatim. `since` folds an entry and what follows, and
        keeps what precedes. If no cut is legal there, less is folded, and the receipt notes it. Raises
        InputError if nothing is left to fold, or the entry is not in the view.
        """
        check(instructions=instructions, target=target)
        chosen = fold_range(up_to, since, target)
        await self._stop_background()
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
        """Return what `compact` would append without appending it; `commit` appends that boundary.

        `on_text` is called with each piece of summary text as the model writes it, before it is checked, and
        with None if the text starts over.
        """
        check(instructions=instructions, target=target)
        chosen = fold_range(up_to, since, target)
        await self._stop_background()
        async with self._shared.locked(follow=False):
            reason = "manual" if target is None else "target"
            work = await self._maker.take(reason, instructions, target, chosen=chosen)
        outcome = await self._maker.execute(work, self._shared.summarizer, on_text)
        if isinstance(outcome, Nothing):
            return outcome
        if isinstance(outcome, Compacted):
            outcome = await self._maker.certifier.with_estimate(work.entries, outcome, work.ask.policy)
        return Preview(msgspec.structs.replace(work.base, boundary=outcome), work.ask)

    async def commit(self, preview: Preview, *, summary: str | None = None) -> Receipt | Nothing:
        """Append the boundary of a preview, with the current pins and live state.

        `summary` is its summary as the user edited it: constraints that were removed no longer apply.
        Messages appended since follow the boundary's cut. Returns Nothing if it no longer fits: another
        boundary came since, or it would gain nothing. Raises InputError for an empty summary.
        """
        if not isinstance(preview, Preview):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"{preview!r} cannot be committed: give a boundary that `preview` returned")
        await self._stop_background()
        draft = preview.draft if summary is None else with_summary(preview.draft, summary)
        async with self._maker.lock:
            await self._compactor.drafts.stop()
            draft = await self._certify(draft, preview.ask)
            size = self._shared.model.view_tokens
            with spans.compaction(self._shared.id, preview.ask.reason, size) as opened:
                async with self._shared.locked(follow=False):
                    return await self._maker.commit(draft, preview.ask, opened, waited=True)

    async def exclude(self, at: str, part: int | None = None) -> Receipt:
        """Exclude a message, or one of its parts (counted from 0), from the context; `undo` restores it.

        Later folds and the model's recall tools leave it out; the history keeps it, and the user's search
        finds it. A call is excluded with its result; a result alone leaves a note. Raises InputError for what
        has to stay: system and pinned messages, folded ones, and calls that wait for results.
        """
        check(at=at)
        shared = self._shared
        await self._stop_background()
        async with shared.locked() as cursor:
            if not isinstance(await shared.store.entry(shared.id, at), Said):
                raise InputError(
                    f"no message {at!r} in session {shared.id}: take the id of one of its messages"
                )
            for _ in range(RETRIES):
                job = CompactionInput(cursor.state, shared.model.ask("manual"), shared.model.setup.counter)
                boundary = msgspec.structs.replace(exclude(job, at, part), at=time.time())
                with spans.compaction(shared.id, "manual", job.size) as opened:
                    entry = await cursor.commit(boundary, shared.model.notes())
                    if entry is not None:
                        self._maker.announce(entry, boundary, opened, waited=True)
                        break
            else:
                raise cursor.too_fast()
        await self._compactor.drafts.stop()  # a draft of the old path is void
        return boundary.receipt

    async def _certify(self, draft: Draft, ask: FoldRequest) -> Draft:
        """Return the draft to commit, with a certificate instead of its cost estimate."""
        if not isinstance(draft.boundary, Compacted) or not ask.policy.certify:
            return draft
        async with self._shared.locked(follow=False) as cursor:
            entries = cursor.state.entries()
            if not holds(draft, cursor.state):  # it will not be committed
                return draft
        notes = tuple(note for note in draft.boundary.receipt.notes if not is_price(note))
        receipt = msgspec.structs.replace(draft.boundary.receipt, notes=notes)
        bare = msgspec.structs.replace(draft.boundary, receipt=receipt)
        boundary = await self._maker.certifier.certify(entries, bare, ask.policy)
        return msgspec.structs.replace(draft, boundary=boundary)

    async def _stop_background(self) -> None:
        self._shared.check_free()
        await self._shared.follow()
        await self._triggers.checks.stop()
