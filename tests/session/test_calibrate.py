"""A model that counts otherwise than we do: learnt from its usage, kept in the log."""

import pytest
from tests.support.live import answer, prompt, session_on

import foldline
from foldline.core.log.entries import Noted
from foldline.core.measure.accounting import Calibration
from foldline.summarizers import OfflineSummarizer


def reply(number, prompt_tokens, lines=20):
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 10}
    return {"choices": [{"message": answer(number, lines), "finish_reason": "stop"}], "usage": usage}


async def talk(session, count, ratio, start=0):
    for number in range(start, start + count):
        await session.append(prompt(number))
        await session.context()
        await session.append(reply(number, round(session.view_tokens * ratio)))


async def test_what_a_provider_counts_teaches_how_to_estimate_what_follows(store):
    session = session_on(store)
    await talk(session, 5, 1.5)
    ratio = session._shared.model.calibrator.ratio
    assert ratio == pytest.approx(1.5, abs=0.1)
    state, model = session._shared.cursor.state, session._shared.model
    before = model.trigger_size(state)
    await session.append(prompt(9))
    grown = model.trigger_size(state) - before
    assert grown == pytest.approx(state.kept[-1].tokens * ratio, abs=1)


async def test_it_survives_a_boundary_and_a_restart(store):
    session = session_on(store)
    await talk(session, 6, 1.4)
    await session.compact()
    ratio = session._shared.model.calibrator.ratio
    [note] = [e async for e in store.path("s") if isinstance(e, Noted) and e.kind == "calibration"]
    assert note.data["ratio"] == ratio
    again = session_on(store)
    await again.context()
    assert again._shared.model.calibrator.ratio == pytest.approx(ratio)
    other = session_on(store, model="another")
    await other.context()
    assert other._shared.model.calibrator.now == Calibration()


async def test_without_a_boundary_it_is_read_from_the_replies(store):
    session = session_on(store)
    await talk(session, 5, 1.3)
    again = session_on(store)
    await again.context()
    assert again._shared.model.calibrator.now == session._shared.model.calibrator.now


def opened(store, model=None, **more):
    return foldline.open(store, "s", model=model, summarizer=OfflineSummarizer(), **more)


async def test_the_stored_model_has_its_calibration_after_a_restart_without_naming_it(store):
    async with opened(store, "openai:gpt-4.1", window=10_000) as session:
        await talk(session, 6, 1.4)
        await session.compact(target=2_000)
        learnt = session._shared.model.calibrator.now
    assert learnt.samples
    async with opened(store) as again:
        assert again._shared.model.calibrator.now == learnt


@pytest.mark.parametrize("how", ["use_model", "open"])
async def test_a_model_learns_nothing_from_the_replies_of_the_one_before(store, how):
    async with opened(store, "openai:gpt-4.1", window=30_000) as session:
        await talk(session, 5, 1.5)
        if how == "use_model":
            await session.use_model("openai:gpt-5")
    async with opened(store, "openai:gpt-5", window=30_000) if how == "open" else opened(store) as session:
        await session.append(prompt(5))
        assert session._shared.model.calibrator.now == Calibration()
        await session.append(reply(5, round(session.view_tokens * 1.2)))
        assert session._shared.model.calibrator.now.samples == 1
        await session.use_model("openai:gpt-5", window=20_000)
        assert session._shared.model.calibrator.now.samples == 1


async def test_a_model_that_counts_more_is_compacted_for_in_time(store):
    """By our count the view is far below the trigger; by the model's it is above."""
    session = session_on(store)
    await talk(session, 18, 2.0)
    assert (await session.stats()).summaries >= 1
    assert session.view_tokens * 2 <= 10_000


async def test_usage_of_nothing_and_notes_that_make_no_sense_teach_nothing(store):
    session = session_on(store)
    await session.note("calibration", model="", ratio="high", samples=3)
    await talk(session, 3, 0)
    assert session._shared.model.calibrator.now == Calibration()
