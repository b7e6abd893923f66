"""What does a fold come to in the figures that GenCode promises of its own: messages, tokens, time, what is kept?

GenCode's metrics: 60 to 70% fewer messages, 50 to 60% fewer tokens, a prune under 100 ms, a compaction under 5 s,
key facts kept. Measured under its preset and under `foldline`, on a made-up session at the place where GenCode's
trigger fires, with rules of the user's planted at its beginning.
"""

from __future__ import annotations

from budgets.planning import run
from budgets.sessions import entries_within
from budgets.table import Row, cpu

from foldline.bench.corpus import Talk
from foldline.core.cut.prune import prune
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.presets import preset
from foldline.core.decide.triggers import thresholds
from foldline.core.lab.entities import Reading
from foldline.core.lab.retention import names_in_calls
from foldline.core.log.entries import Compacted, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState

WINDOW = Window(context=200_000, output=32_000)
RULES = (
    "Never write to the table audit_log by hand.",
    "All ids must stay 64 bits wide.",
    "Ask me before you delete a file.",
)
NEWEST = 12  # calls at the end whose files the work still needs


def session() -> list[Said]:
    """Return a session as long as GenCode lets it become, the rules in its first message."""
    limit = thresholds(preset("gencode"), WINDOW).hard or WINDOW.context
    messages = Talk(11).messages(limit // 100)
    messages[0] = {"role": "user", "content": "\n".join([messages[0]["content"], *RULES])}
    return entries_within(limit, messages)


def folded(name: str, entries: list[Said]) -> list[Row]:
    """Fold once by hand under a policy, and say what came of it."""
    ask = FoldRequest(policy=preset(name), window=WINDOW, reason="manual", now="2026-01-01T00:00:00Z")
    fold = ViewState(entries, counter=OFFLINE)
    outcome = run(fold, ask)
    assert isinstance(outcome, Compacted), outcome
    receipt = outcome.receipt
    messages = 1 - receipt.messages_after / receipt.messages_before
    tokens = 1 - receipt.tokens_after / receipt.tokens_before
    text = outcome.checkpoint.text
    calls = [call for entry in entries for call in entry.message.calls][-NEWEST:]
    files = [
        entity for entity, addressed in names_in_calls(calls).items() if addressed and entity.kind == "path"
    ]
    kept = "\n".join(
        str(entry.message.parts) for entry in ViewState([*entries, outcome], counter=OFFLINE).kept
    )
    reading = Reading(text + kept, frozenset())
    rules = sum(rule in text + kept for rule in RULES)
    spent = cpu(lambda: run(ViewState(entries, counter=OFFLINE), ask), 2)
    return [
        Row(f"{name}: fewer messages", 100 * messages, "%", least=60),
        Row(f"{name}: fewer tokens", 100 * tokens, "%", least=50),
        Row(f"{name}: rules of the user's kept word for word, of {len(RULES)}", rules, "", least=len(RULES)),
        Row(
            f"{name}: files of the newest {NEWEST} calls named",
            100 * sum(map(reading.names, files)) / len(files),
            "%",
            least=90,
        ),
        Row(f"{name}: a checkpoint without a model, all included", spent * 1e3, "ms", most=5_000),
    ]


def main(*, full: bool = False) -> list[Row]:
    """Measure one fold of one session under two policies."""
    del full
    entries = session()
    fold, policy = ViewState(entries, counter=OFFLINE), preset("gencode")
    size = f"{len(entries):,} messages, {fold.tokens:,} tokens"
    blank = cpu(lambda: prune(fold.kept, policy, WINDOW, 168_000, OFFLINE, date="2026-01-01"))
    return [
        Row(f"gencode: prune of {size}", blank * 1e3, "ms", most=100),
        *folded("gencode", entries),
        *folded("foldline", entries),
    ]
