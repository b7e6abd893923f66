"""A compaction that was planned, to be looked at, edited and then committed as it was shown."""

from __future__ import annotations

import msgspec

from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import Ask
from foldline.core.log.entries import Boundary, Compacted, Receipt


class Preview(msgspec.Struct, frozen=True):
    """A boundary that is not appended; `Session.commit` appends this very one."""

    draft: Draft
    ask: Ask

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
