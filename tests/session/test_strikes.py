"""No loops: failures are entries of the log, so a restart does not begin to fail anew; by hand it always may."""

import msgspec
import pytest
from tests.support.live import Events, answer, grow_to, policy_with, prompt, run_turns, session_on

from foldline.core.decide.ask import Nothing
from foldline.core.decide.breaker import STRIKES
from foldline.core.log.entries import Compacted, Noted
from foldline.core.measure.window import Amount
from foldline.errors import CompactionFailed, FloorExceeded
from foldline.session import boundary

GREEDY = policy_with(min_gain=Amount(tokens=9_500), background=False, enable_pruning=False)


async def noted(store, kind):
    return [e async for e in store.path("s") if isinstance(e, Noted) and e.kind == kind]


async def test_three_failures_in_a_row_stop_it_for_a_while_also_after_a_restart(store):
    session = session_on(store, policy=GREEDY)
    heard = Events(session)
    number = await grow_to(session, 7_650)
    for _ in range(60):
        await session.append(prompt(number, 6))
        await session.context()
        await session.append(answer(number, 6))
        number += 1
        if len(heard.named("strike")) == STRIKES:
            break
    assert [event.strikes for event in heard.named("strike")] == [1, 2, 3]
    assert {event.why for event in heard.named("strike")} == {"no_gain"}
    assert len(await noted(store, "strike")) == STRIKES
    again = session_on(store, policy=GREEDY)
    later = Events(again)
    await run_turns(again, 4, number, lines=6)
    assert not later.named("compaction_started"), "the breaker is open"
    receipt = await again.compact()
    assert not isinstance(receipt, Nothing), "by hand it always may"
    assert later.named("compacted")


async def test_a_no_op_is_no_strike(store):
    session = session_on(store, policy=policy_with(background=False))
    await run_turns(session, 3)
    await session.compact()
    for _ in range(4):
        assert isinstance(await session.compact(), Nothing)
    assert await noted(store, "strike") == []


async def test_a_session_that_starts_short_is_never_locked_out(store):
    session = session_on(store, policy=policy_with(background=False))
    for _ in range(5):
        await session.context()
    await session.append(prompt(0, 1))
    for _ in range(5):
        await session.context()
        await session.compact()
    heard = Events(session)
    await run_turns(session, 16, 1)
    assert heard.named("compacted")
    assert await noted(store, "strike") == []


async def test_an_error_within_leaves_the_session_as_it_was_and_cools_down(store, monkeypatch):
    session = session_on(store, policy=policy_with(background=False))
    number = await grow_to(session, 7_650)
    before = session.view()

    def broken(*_):
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(boundary, "plan", broken)
        heard = Events(session)
        with pytest.raises(CompactionFailed, match="ZeroDivisionError"):
            await session.compact()
        assert session.view() == before
        assert heard.names == ["compaction_started"], "who asked was told, and it is no strike"
        await session.append(prompt(number, 1))
        messages = await session.context()
        assert heard.names[2:] == ["compaction_started", "strike", "cooldown", "warning"]
        assert len(messages) == 2 * number + 1, "what fits goes on, whatever failed"
    assert [note.data["why"] for note in await noted(store, "cooldown")] == ["error"]
    again = session_on(store, policy=policy_with(background=False))
    later = Events(again)
    await again.context()
    assert not later.named("compaction_started"), "it cools down, also after a restart"
    assert not isinstance(await again.compact(), Nothing)
    await again.append(answer(number))
    await run_turns(again, 12, number + 1)
    assert len([e async for e in store.path("s") if isinstance(e, Compacted)]) > 1, "a success ends it"


@pytest.mark.parametrize(("size", "fits"), [(8_900, True), (10_000, False)])
async def test_a_failed_compaction_stops_only_what_the_model_cannot_take(store, size, fits):
    """A view between usable, 8,500, and the input limit is sent whole; a larger one is not sent at all."""
    session = session_on(store, policy=policy_with(background=False, check_at=("turn_start",)))
    session.before_compaction(lambda _planned: 1 / 0)
    number = await grow_to(session, size)
    await session.append(prompt(number, 1))
    before = session.view()
    if fits:
        assert len(await session.context()) == 2 * number + 1
    else:
        with pytest.raises(CompactionFailed, match="ZeroDivisionError"):
            await session.context()
    assert session.view() == before


async def test_a_draft_that_gains_too_little_is_a_strike_and_not_begun_at_every_turn(store):
    session = session_on(store, policy=msgspec.structs.replace(GREEDY, background=True))
    heard = Events(session)
    number = await grow_to(session, 5_950)
    for _ in range(6):
        await session.append(prompt(number, 1))
        await session.context()
        await session._compactor.drafts.finished()
        await session.append(answer(number, 1))
        number += 1
    assert len(heard.named("draft_started")) == 1
    assert heard.named("draft_failed")[0].why == "no_gain"
    assert len(heard.named("strike")) == 1


async def test_a_floor_above_usable_is_refused_at_once_and_never_tried(store):
    session = session_on(store)
    heard = Events(session)
    [entry] = await session.append({"role": "user", "content": "pin me " * 6_000})
    await session.append(answer(0, 1))
    await session.pin(entry)
    await session.append(prompt(1, 1))
    for _ in range(3):
        with pytest.raises(FloorExceeded) as caught:
            await session.context()
        assert caught.value.breakdown["pins"] > 5_000
    assert not heard.named("compaction_started")
    assert await noted(store, "strike") == []


async def test_a_draft_that_raises_is_told_struck_and_cooled_down(store, monkeypatch):
    session = session_on(store)
    heard = Events(session)

    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(boundary, "plan", broken)
    number = await grow_to(session, 5_950)
    await session.append(prompt(number, 1))
    await session.context()
    await session._compactor.drafts.finished()
    monkeypatch.undo()
    assert [event.name for event in heard if event.name != "message"] == [
        "draft_started", "draft_failed", "strike", "cooldown",
    ]  # fmt: skip
    assert heard.named("draft_failed")[0].why == "error"
    await session.append(answer(number))
    assert len(await session.context()) == 2 * number + 2


async def test_a_floor_by_hand_is_raised_as_it_is_and_is_no_strike(store):
    session = session_on(store)
    await run_turns(session, 4)
    with pytest.raises(FloorExceeded) as caught:
        await session.compact(target=20)
    assert caught.value.__cause__ is None
    assert await noted(store, "strike") == []
    assert len(await session.context()) == 8


async def test_a_preview_changes_nothing_and_strikes_nobody(store):
    session = session_on(store)
    heard = Events(session)
    await run_turns(session, 6)
    before, leaf = await session.context(), session.leaf
    assert isinstance((await session.preview(target=2_000)).boundary, Compacted)
    assert (await session.context(), session.leaf) == (before, leaf)
    assert set(heard.names) == {"message"}
