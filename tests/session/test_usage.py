"""Usage that cannot be true decides nothing; stats count what stands."""

from __future__ import annotations

import pytest
from tests.support.live import Events, answer, context_at, prompt, run_turns, session_on

import foldline
from foldline.core.log.entries import Compacted
from foldline.core.log.messages import Message, Text, Usage
from foldline.core.measure.accounting import is_credible, is_too_small
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.stores import MemoryStore

FALSE = [Usage(input=10**9, output=5), Usage(cache_read=10**9, output=5), Usage(input=-4_000, output=5)]


def counted(number, usage):
    """An answer with what its provider says that it counted."""
    return Message("assistant", (Text(answer(number, 2)["content"]),), usage=usage)


class Noting:
    """The offline counter, which notes the texts that it counts."""

    name = "noting"

    def __init__(self):
        self.texts = []

    def count(self, text):
        self.texts.append(text)
        return OFFLINE.count(text)


async def test_a_message_that_is_appended_is_counted_once():
    counter, said = Noting(), [prompt(0), answer(0), prompt(1)]
    async with foldline.open("memory://", "counted", window=100_000, counter=counter) as session:
        counter.texts.clear()
        await session.append(*said)
    assert counter.texts == [one["content"] for one in said]


async def test_a_usage_is_compared_with_all_that_stands_before_its_reply_in_the_same_append(store):
    session = session_on(store)
    heard, long = Events(session), {"role": "user", "content": "a long look at the plan " * 8_000}
    await session.append(prompt(0), long, counted(0, Usage(input=40_000, output=5)))
    assert not heard.named("warning")


@pytest.mark.parametrize("usage", FALSE)
@pytest.mark.parametrize("policy", ["foldline", "coop", "codex", "pi"])
async def test_usage_that_cannot_be_true_folds_nothing_and_is_told_once(store, policy, usage):
    session = session_on(store, policy=policy)
    heard, ratio = Events(session), session._shared.model.calibrator.ratio
    for number in range(20):
        await session.append(prompt(number, 2))
        await session.context()
        await session.append(counted(number, usage))
        await session.settled()
    assert (
        not heard.named("compacted")
        + heard.named("pruned")
        + heard.named("overflow")
        + heard.named("compaction_started")
    )
    assert [event.kind for event in heard.named("warning")] == ["usage"]
    assert session._shared.model.calibrator.ratio == ratio
    assert session.view_tokens < 9_000
    assert len(await session.history()) == 40


async def test_the_usage_of_a_reply_to_a_view_that_was_folded_meanwhile_folds_nothing(store):
    session = session_on(store)
    heard, number = Events(session), await context_at(session, 5_000)
    await session.compact()  # by hand, while the model replies
    folded = session.view_tokens
    await session.append(counted(number, Usage(input=7_800, output=50)))
    ratio = session._shared.model.calibrator.ratio
    await run_turns(session, 2, number + 1, lines=2)
    await session.settled()
    assert len(heard.named("compacted")) == 1
    assert ratio == 1
    again = session_on(store, name=session.id)
    await again.context()
    for one in (session, again):
        assert folded < (await one.stats()).context_tokens < folded + 1_000
    (said,) = [item.message.usage for item in again.view() if item.message.usage]
    assert (said.input, said.output, said.outdated) == (7_800, 50, True)


async def test_the_usage_of_a_reply_to_a_view_that_another_process_folded_meanwhile_counts_for_nothing(store):
    session, other = session_on(store), session_on(store)
    number = await context_at(session, 5_000)
    await other.compact()
    await session.append(counted(number, Usage(input=7_800, output=50)))
    for one in (session, other):
        assert (await one.stats()).context_tokens == one.view_tokens
    assert session._shared.model.calibrator.ratio == 1


async def test_usage_a_little_above_the_window_is_still_a_silent_overflow(store):
    session = session_on(store)
    heard = Events(session)
    await run_turns(session, 10)
    await session.append(prompt(10))
    await session.append(counted(10, Usage(input=11_000, output=5)))
    await session.append(prompt(11))
    await session.context()
    assert heard.named("compacted")[-1].receipt.reason == "overflow"
    assert not heard.named("warning")


def test_a_large_usage_is_believed_where_our_own_estimate_is_large_too():
    window = Window(10_000, output=1_000)
    assert is_credible(Usage(input=20_000), 10, window), "a system prompt that we were not told"
    assert not is_credible(Usage(input=20_001), 5_000, window)
    assert is_credible(Usage(input=60_000), 15_000, window), "the window is smaller than the model's"
    assert not is_credible(Usage(input=100, output=-1), 100, window)
    assert is_credible(Usage(input=100, output=20_000), 100, window)
    assert not is_credible(Usage(input=100, output=20_001), 100, window)


async def test_stats_leave_undone_compactions_out(store):
    session = session_on(store)
    await run_turns(session, 12)
    await session.compact()
    made = len([entry async for entry in store.path("s") if isinstance(entry, Compacted)])
    assert (await session.stats()).summaries == made >= 1
    await session.undo()
    assert (await session.stats()).summaries == made - 1
    await session.redo()
    assert (await session.stats()).summaries == made


SMALL = [Usage(input=1, output=5), Usage(cache_read=40, output=5), Usage(input=3, cache_write=9, output=5)]


@pytest.mark.parametrize(
    ("policy", "usage"),
    [*(("foldline", usage) for usage in SMALL), *((policy, SMALL[0]) for policy in ("coop", "codex", "pi"))],
)
async def test_usage_that_is_far_too_small_does_not_switch_folding_off(policy, usage):
    session = session_on(MemoryStore(), policy=policy)
    heard, ratio = Events(session), session._shared.model.calibrator.ratio
    for number in range(40):
        await session.append(prompt(number, 20))
        await session.context()
        await session.append(counted(number, usage))
        await session.settled()
    assert heard.named("compacted")
    assert session.view_tokens < 10_000
    assert session._shared.model.context_tokens > session.view_tokens // 2
    assert [event.kind for event in heard.named("warning")].count("usage") == 1
    assert session._shared.model.calibrator.ratio >= ratio


def test_a_small_usage_is_believed_where_it_hides_little_or_our_estimate_may_be_off():
    window = Window(80_000, output=1_000)
    assert is_too_small(Usage(input=100), 12_000, window)
    assert is_too_small(Usage(cache_read=2_000, cache_write=999, output=50_000), 13_000, window)
    assert not is_too_small(Usage(input=3_250), 13_000, window), "we count four times as much"
    assert not is_too_small(Usage(input=100), 10_100, window), "an eighth of the window"
    assert not is_too_small(Usage(output=100), 50_000, window), "nothing was counted"
    assert not is_too_small(Usage(input=200_000), 500_000, window)
