"""What is kept at every turn start of the recorded sessions, by every preset that keeps a number of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import corpus

from foldline.core.compact.choice import Choice, choose
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.room import room_of
from foldline.core.cut.edits import tokens_of
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState

pytestmark = pytest.mark.slow

LARGE = 60_000  # tokens of a view that are worth folding
KEEPING = [policy for policy in PRESETS.values() if policy.keep.amount is not None]
WINDOWS = (200_000, 100_000)

SESSIONS = corpus.sessions(corpus.ROOT)
NATIVE = sorted((corpus.ROOT / "native").glob("*.jsonl"))
FEWER = [*corpus.sample(SESSIONS), *NATIVE[:1]]


def turn_starts(path: Path) -> Iterator[ViewState]:
    """Yield the views of a session, `LARGE` at least, that end with a new message of the user's."""
    entries = corpus.with_boundaries(path).entries
    said = 0
    for index, entry in enumerate(entries):
        said += entry.tokens if isinstance(entry, Said) else 0
        starts = isinstance(entry, Said) and entry.message.is_prompt
        if not starts or said < LARGE:
            continue
        view = ViewState(entries[: index + 1], counter=OFFLINE)
        if view.tokens >= LARGE:
            yield view


def chosen(view: ViewState, policy: Policy, window: int) -> tuple[Choice, int]:
    """Return what a policy would fold and keep, and the tokens of which it is to keep half."""
    ask = FoldRequest(policy=policy, window=Window(context=window), reason="threshold")
    job = CompactionInput(view, ask, OFFLINE)
    choice = choose(room_of(job))
    assert choice is not None
    assert policy.keep.amount is not None
    first = 0 if policy.cross_boundary else min(view.fresh_from, choice.cut.index)
    said = sum(entry.tokens for entry in view.kept[first:])
    return choice, min(said, policy.keep.amount.resolve(ask.window, ask.usable))


def too_little(path: Path) -> list[str]:
    """Return where less than half of what a policy keeps is kept, though more was said."""
    found: list[str] = []
    for view in turn_starts(path):
        for window in WINDOWS:
            for policy in KEEPING:
                choice, keep = chosen(view, policy, window)
                kept = tokens_of(choice.kept, choice.edits)
                if kept < keep // 2:
                    found.append(f"{policy.name} keeps {kept:,} of {keep:,} behind {view.tokens:,} tokens")
    return found


@pytest.mark.parametrize("path", FEWER, ids=lambda path: path.name)
def test_a_turn_start_of_the_sample_keeps_half_of_what_the_policy_keeps(path):
    assert too_little(path) == []


@pytest.mark.corpus
@pytest.mark.parametrize("path", [*SESSIONS, *NATIVE], ids=lambda path: path.name)
def test_every_turn_start_keeps_half_of_what_the_policy_keeps(path):
    assert too_little(path) == []


@pytest.mark.skipif(
    not SESSIONS, reason="no recorded sessions beside the checkout (../shared/data, or FOLDLINE_CORPUS)"
)
def test_the_sample_has_large_views_and_every_preset_that_keeps_tokens():
    assert sum(1 for path in FEWER for _ in turn_starts(path)) >= 10
    assert {policy.name for policy in KEEPING} == {"foldline", "coop", "klaude", "pi"}
