"""How long do the parts of a compaction take: prune, plan, and the checkpoint that needs no model?"""

from __future__ import annotations

from collections.abc import Sequence

from budgets.sessions import entries_of, entries_within
from budgets.table import Row, cpu

from foldline.bench.corpus import Talk
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.compact.choice import choose
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import Outcome, plan
from foldline.core.compact.room import floor_of, room_of
from foldline.core.cut.prune import prune
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.presets import preset
from foldline.core.log.entries import Compacted, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.summarizers.offline import OfflineSummarizer

WINDOW = Window(context=200_000)
MESSAGES = 10_000
TOKENS = 200_000
UNDISTURBED = 0.038  # seconds of the yardstick on the machine of the results, undisturbed


def asked(policy: str = "foldline") -> FoldRequest:
    return FoldRequest(policy=preset(policy), window=WINDOW, reason="manual", now="2026-01-01T00:00:00Z")


def run(fold: ViewState, ask: FoldRequest) -> Outcome:
    """Run a plan to its end with the offline summariser."""
    steps, summarizer = plan(CompactionInput(fold, ask, OFFLINE)), OfflineSummarizer()
    reply: SummaryReply | None = None
    try:
        while True:
            request: SummaryRequest = steps.send(reply)
            reply = summarizer.write(request)
    except StopIteration as end:
        return end.value


def whole(entries: Sequence[Said]) -> None:
    """A whole offline compaction: plan, ledger, checkpoint, receipt."""
    outcome = run(ViewState(entries, counter=OFFLINE), asked())
    assert isinstance(outcome, Compacted), outcome


def parts(entries: Sequence[Said], speed: float) -> list[Row]:
    """Time what a plan does beside ledger and summary, over many messages; `speed` scales to a machine undisturbed."""
    fold, ask = ViewState(entries, counter=OFFLINE), asked()

    def pruned() -> None:
        found = prune(fold.kept, ask.policy, WINDOW, ask.usable, OFFLINE, date="2026-01-01")
        assert found.edits

    def cut() -> None:
        assert choose(room_of(CompactionInput(fold, ask, OFFLINE))) is not None

    name = f"{len(entries):,} messages, {fold.tokens:,} tokens"
    floor, blank, chosen = cpu(lambda: floor_of(CompactionInput(fold, ask, OFFLINE))), cpu(pruned), cpu(cut)
    planned = floor + blank + chosen
    return [
        Row(f"prune {name}", blank * 1e3, "ms"),
        Row("plan the same: floor, prune, cut", planned * 1e3, "ms"),
        Row("prune, undisturbed", blank * speed * 1e3, "ms", most=100),
        Row("plan, undisturbed", planned * speed * 1e3, "ms", most=100),
        Row("fold the same anew", cpu(lambda: ViewState(entries, counter=OFFLINE)) * 1e3, "ms"),
    ]


def offline(tokens: int) -> float:
    """The least CPU time of whole offline compactions of sessions of this size, none met before, in seconds."""
    sessions = [entries_within(tokens, Talk(seed).messages(tokens // 120)) for seed in range(3)]
    return min(cpu(lambda entries=entries: whole(entries), 1) for entries in sessions)


def loop() -> None:
    """Something that takes the same time on the same machine: a yardstick for the other figures."""
    total = 0
    for number in range(1_000_000):
        total += number


def main(*, full: bool = False) -> list[Row]:
    """Measure 10,000 messages, and the offline checkpoint of 200,000 tokens.

    A shared machine runs at half its speed for hours: figures are also given for the speed at which the
    yardstick, taken in the same run, takes as long as on the machine undisturbed; the budgets are for these.
    """
    del full
    few, before = offline(TOKENS // 4), cpu(loop)
    many, after = offline(TOKENS), cpu(loop)
    speed = UNDISTURBED / ((before + after) / 2)
    return [
        Row("yardstick: a million additions in a loop", UNDISTURBED / speed * 1e3, "ms"),
        *parts(entries_of(Talk().messages(MESSAGES)), UNDISTURBED / cpu(loop)),
        Row(f"offline compaction of {TOKENS:,} tokens, plan and ledger included", many * 1e3, "ms"),
        Row("offline compaction, undisturbed", many * speed * 1e3, "ms", most=500),
        Row("the same for each token, against a quarter of the tokens", many / few / 4, "x", most=1.5),
    ]
