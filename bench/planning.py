"""How long do the parts of a compaction take: prune, plan, and the checkpoint that needs no model?"""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.decide.ask import Ask
from foldline.core.decide.presets import preset
from foldline.core.fold.prune import prune
from foldline.core.log.entries import Compacted, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.plan import Outcome, floor_of, plan
from foldline.core.view import Fold
from foldline.summarizers.offline import OfflineSummarizer
from sessions import Talk, entries_of
from table import Row, cpu

WINDOW = Window(context=200_000)
MESSAGES = 10_000
TOKENS = 200_000


def asked(policy: str = "foldline") -> Ask:
    return Ask(policy=preset(policy), window=WINDOW, reason="manual", now="2026-01-01T00:00:00Z")


def run(fold: Fold, ask: Ask) -> Outcome:
    """Run a plan to its end with the offline summariser."""
    steps, summarizer = plan(fold, ask, OFFLINE), OfflineSummarizer()
    reply: SummaryReply | None = None
    try:
        while True:
            request: SummaryRequest = steps.send(reply)
            reply = summarizer.write(request)
    except StopIteration as end:
        return end.value


def whole(entries: Sequence[Said]) -> None:
    """A whole offline compaction: plan, ledger, checkpoint, receipt."""
    outcome = run(Fold(entries, counter=OFFLINE), asked())
    assert isinstance(outcome, Compacted), outcome


def parts(entries: Sequence[Said]) -> list[Row]:
    """Time what a plan does beside the summary, over many messages."""
    fold, ask = Fold(entries, counter=OFFLINE), asked()
    policy = ask.policy

    def pruned() -> None:
        assert prune(fold.kept, policy, WINDOW, ask.usable, OFFLINE, date="2026-01-01").edits

    name = f"of {len(entries):,} messages, {fold.tokens:,} tokens"
    return [
        Row(f"prune {name}", cpu(pruned) * 1e3, "ms", most=100),
        Row(f"floor {name}", cpu(lambda: floor_of(fold, ask, OFFLINE)) * 1e3, "ms"),
        Row(f"plan without its ledger {name}", cpu(lambda: chosen(fold, ask)) * 1e3, "ms", most=100),
        Row(f"fold {name}", cpu(lambda: Fold(entries, counter=OFFLINE)) * 1e3, "ms"),
    ]


def chosen(fold: Fold, ask: Ask) -> None:
    """Floor, prune and cut of a policy that writes no ledger, up to the request for a summary."""
    steps = plan(fold, ask, OFFLINE)
    next(steps)
    steps.close()


def main(*, full: bool = False) -> list[Row]:
    """Measure 10,000 messages, and the offline checkpoint of 200,000 tokens."""
    del full
    many = entries_of(Talk().messages(MESSAGES))
    few: list[Said] = []
    total = 0
    for entry in many:
        total += entry.tokens
        if total > TOKENS:
            break
        few.append(entry)
    short = cpu(lambda: whole(few[: len(few) // 4]), 3)
    taken = cpu(lambda: whole(few), 3)
    return [
        *parts(many),
        Row(f"whole offline compaction of {TOKENS:,} tokens", taken * 1e3, "ms", most=1_000),
        Row("the same, a token, against a quarter of the tokens", taken / short / 4, "x", most=1.5),
    ]
