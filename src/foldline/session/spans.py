"""The span `compaction`: why, where it cut, how many messages it folded, tokens before and after."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from foldline.core.checkpoint.obtain import FREE
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.log.entries import Compacted, Pruned
from foldline.core.measure.tokens import Counter
from foldline.executor import request_summary
from foldline.summarizers.base import Summarizer
from foldline.tracing import CONVERSATION, Span, span

COMPACTION = "compaction"
DRAFT = "compaction_draft"  # made in the background; its commit is a `compaction`
RUNNING = "running compaction"
COMPLETE = "compaction complete"
COMMITTED = "session compacted"


@contextmanager
def compaction(session: str, reason: str, tokens_before: int, *, name: str = COMPACTION) -> Generator[Span]:
    """Open the span of one compaction."""
    values = {
        "foldline.session": session,
        CONVERSATION: session,
        "foldline.reason": reason,
        "foldline.tokens_before": tokens_before,
    }
    with span(name, values) as opened:
        yield opened


def record_commit(opened: Span, boundary: Compacted | Pruned, *, drafted: bool) -> None:
    """Record a committed boundary in the span."""
    receipt = boundary.receipt
    cut = boundary.first_kept if isinstance(boundary, Compacted) else None
    folded = receipt.dropped.get("messages")
    opened.put(
        {
            "foldline.kind": "compacted" if isinstance(boundary, Compacted) else "pruned",
            "foldline.cut": cut,
            "foldline.messages_folded": folded if isinstance(folded, int) else 0,
            "foldline.tokens_after": receipt.tokens_after,
            "foldline.summarizer": receipt.summarizer or None,
            "foldline.drafted": drafted,
        }
    )
    opened.event(
        COMMITTED,
        {
            "tokens_before": receipt.tokens_before,
            "tokens_after": receipt.tokens_after,
            "summary_len": len(boundary.checkpoint.summary) if isinstance(boundary, Compacted) else None,
            "first_kept": cut,
        },
    )


class TracedSummarizer:
    """A summariser that records its requests and replies in a span; the session has `total` messages.

    `cost` is that of all replies.
    """

    def __init__(
        self,
        summarizer: Summarizer,
        opened: Span,
        tokens_before: int,
        counter: Counter,
        total: int,
    ) -> None:
        self._summarizer = summarizer
        self._span = opened
        self._tokens_before = tokens_before
        self._counter = counter
        self._total = total
        self.cost = FREE

    @property
    def name(self) -> str:
        """The name of the wrapped summariser."""
        return self._summarizer.name

    async def summarize(self, request: SummaryRequest) -> SummaryReply:
        """Call the summariser, recording the sizes of request and reply."""
        self._span.event(
            RUNNING,
            {
                "messages_to_summarize": len(request.folded),
                "cut_index": self._total - len(request.kept),
                "total_messages": self._total,
                "tokens_before": self._tokens_before,
                "has_previous": request.previous is not None,
                "kind": request.kind,
            },
        )
        reply = await request_summary(self._summarizer, request, aside=True)
        self.cost = self.cost.plus(reply)
        self._span.event(
            COMPLETE,
            {
                "summary_len": len(reply.text),
                "summary_tokens": self._counter.count(reply.text),
                "summarizer": reply.summarizer,
            },
        )
        return reply
