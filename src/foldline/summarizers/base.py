"""The summariser protocol: what a compaction needs to get its summary."""

from __future__ import annotations

from typing import Final, Protocol

from foldline.core.checkpoint.request import SummaryReply, SummaryRequest

QUOTED: Final = 200  # characters of an error that a receipt quotes


class Summarizer(Protocol):
    """Answer requests for summaries. `name` goes into the receipt."""

    @property
    def name(self) -> str:
        """Name the summariser, such as `offline` or `provider:model`."""
        ...

    async def summarize(self, request: SummaryRequest) -> SummaryReply:
        """Write the requested summary.

        The core checks the reply before it is stored: an implementation reports how the model stopped and
        what it cost, and raises what its provider raises.
        """
        ...
