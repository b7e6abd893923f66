"""A compaction that is planned, looked at, edited and then committed as it was shown."""

from __future__ import annotations

import msgspec

from foldline.core.compact.rebase import Draft, with_summary
from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.log.entries import Boundary, Compacted, Receipt
from foldline.session import spans
from foldline.session.boundary import BoundaryMaker
from foldline.session.drafts import Drafts
from foldline.session.shared import Shared


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
        """The checkpoint's summary, for editing; None for a prune."""
        boundary = self.draft.boundary
        return boundary.checkpoint.summary if isinstance(boundary, Compacted) else None


class Previews:
    """Makes previews of one session, and commits them."""

    def __init__(self, shared: Shared, maker: BoundaryMaker, drafts: Drafts) -> None:
        self._shared = shared
        self._maker = maker
        self._drafts = drafts

    async def make(self, instructions: str | None = None, target: int | None = None) -> Preview | Nothing:
        """Return what `compact` would append, and append nothing."""
        async with self._shared.locked(follow=False):
            asked = self._shared.model.ask("manual" if target is None else "target", instructions, target)
            work = self._maker.take(await self._shared.live.onto(asked, self._shared.cursor.state))
        outcome = await self._maker.execute(work, self._shared.summarizer)
        if isinstance(outcome, Nothing):
            return outcome
        return Preview(msgspec.structs.replace(work.base, boundary=outcome), work.ask)

    async def commit(self, preview: Preview, summary: str | None) -> Receipt | Nothing:
        """Append a preview's boundary, with the summary as the user edited it (None: as shown)."""
        draft = preview.draft if summary is None else with_summary(preview.draft, summary)
        async with self._maker.one:
            await self._drafts.stop()
            size = self._shared.model.view_tokens
            with spans.compaction(self._shared.id, preview.ask.reason, size) as opened:
                async with self._shared.locked(follow=False):
                    return await self._maker.commit(draft, preview.ask, opened, waited=True)
