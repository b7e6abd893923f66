"""Two sentences on a session, for people: what a list of sessions shows beside a title."""

from __future__ import annotations

from foldline.core.checkpoint.check import Accepted, check
from foldline.core.checkpoint.obtain import SummarySteps
from foldline.core.checkpoint.request import FAILED
from foldline.core.checkpoint.state import two_sentences
from foldline.core.checkpoint.summary import request
from foldline.core.compact.facts import ledger_of
from foldline.core.compact.job import CompactionInput
from foldline.core.secrets.derived import Sweep

DISPLAY_TOKENS = 120  # the most that the two sentences take


def display(job: CompactionInput) -> SummarySteps[str]:
    """Have two sentences written on the view of a job; by code where the reply is no such thing."""
    state = job.state
    entries = state.clean([*state.quoted, *state.kept])
    ledger = ledger_of(job, entries, ())
    wanted = request(
        job.ask.policy,
        kind="display",
        folded=entries,
        previous=state.boundary.checkpoint.summary if state.boundary is not None else None,
        ledger=ledger,
        tokens=DISPLAY_TOKENS,
    )
    reply = yield wanted
    if reply is not None and reply.stop != FAILED:
        checked = check(reply, wanted, counter=job.counter)
        if isinstance(checked, Accepted):
            return " ".join(Sweep(state.clean.secrets).text(checked.text).split())
    return two_sentences(ledger)
