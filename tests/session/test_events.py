"""What a session tells: the right events in the right order, and callbacks that cannot hurt it."""

import asyncio
import logging

import pytest
from tests.support.live import (
    Events,
    Failing,
    Gate,
    answer,
    context_at,
    policy_with,
    prompt,
    run_turns,
    session_on,
)
from tests.support.waiting import until as settled

from foldline.core.measure.window import Window
from foldline.errors import InputError
from foldline.session.events import EVERY, KINDS, Event
from foldline.summarizers import ModelSummarizer
from foldline.testing import Scripted


async def test_a_drafted_boundary_is_told_step_by_step(store):
    gate = Gate(opened=True)
    session = session_on(store, gate)
    heard = Events(session)
    number = await context_at(session, 5_950)
    await settled(lambda: session._compactor.drafts.ready is not None)
    number = await context_at(session, 7_650, number + 1)
    told = [name for name in heard.names if name != "message"]
    assert told == ["draft_started", "draft_ready", "compacted"]
    started, [done] = heard.named("draft_started")[0], heard.named("compacted")
    assert started.threshold == 5_950
    assert started.size > 5_950
    assert done.receipt.tokens_before > done.receipt.tokens_after > 0
    assert heard.named("message")[0].roles == ("user", "assistant")
    assert len(heard.named("message")[0].entries) == 2


async def test_what_people_do_is_told(store):
    session = session_on(store)
    heard = Events(session)
    [entry, _] = await session.append(prompt(0), answer(0))
    await run_turns(session, 4, 1)
    await session.pin(entry)
    await session.unpin(entry)
    await session.compact()
    await session.compact()
    await session.undo()
    await session.redo()
    told = [name for name in heard.names if name != "message"]
    assert told == [
        "pinned", "pinned", "compaction_started", "compacted", "compaction_started", "nothing", "undone", "redone",
    ]  # fmt: skip
    assert [event.on for event in heard.named("pinned")] == [True, False]
    assert (
        heard.named("undone")[0].entry == heard.named("redone")[0].entry == heard.named("compacted")[0].entry
    )
    assert heard.named("nothing")[0].why == "nothing_new"


async def test_a_summary_that_somebody_waits_for_is_told_as_it_is_written(store):
    summarizer = ModelSummarizer(Scripted(lambda _: "## Goal\nCount the pelicans.", window=50_000))
    session = session_on(store, summarizer, policy=policy_with(background=False))
    await run_turns(session, 8)
    unheard = await session.preview()
    heard = Events(session)
    pieces = []
    assert (await session.preview(on_text=pieces.append)).summary == unheard.summary
    assert pieces[0] is None
    written = "".join("|" if one is None else one for one in pieces)  # one that is rejected comes again
    assert set(written.split("|")) == {"", "## Goal\nCount the pelicans."}
    assert heard == [], "who previews reads along alone"
    await session.compact()
    assert "".join("|" if event.anew else event.text for event in heard.named("summary")) == written
    assert heard.names[0] == "compaction_started"
    assert heard.names[-1] == "compacted"


async def test_a_callback_that_raises_is_logged_and_hurts_nobody(store, caplog):
    session = session_on(store)

    def bad(event):
        raise RuntimeError("a bug in the host")

    async def worse(event):
        raise RuntimeError("a bug in its coroutine")

    seen = []
    session.on("message", bad)
    session.on("message", worse)
    session.on("message", seen.append)
    with caplog.at_level(logging.ERROR, "foldline"):
        await session.append(prompt(0))
        await asyncio.sleep(0)
        await session.close()
    assert len(seen) == 1
    assert "RuntimeError: a bug in the host" in caplog.text
    assert "RuntimeError: a bug in its coroutine" in caplog.text


async def test_a_coroutine_runs_beside_the_session_and_may_use_it(store):
    session = session_on(store)
    answered = asyncio.Event()

    async def note(event):
        if event.roles == ("user",):
            await session.note("title", title="heard")
            answered.set()

    session.on("message", note)
    await session.append(prompt(0))
    await asyncio.wait_for(answered.wait(), 60)
    assert (await session.context())[-1] == prompt(0)


async def test_off_ends_it_and_names_are_checked(store):
    session = session_on(store)
    seen = []
    off = session.on("message", seen.append)
    await session.append(prompt(0))
    off()
    off()
    await session.append(answer(0))
    assert len(seen) == 1
    with pytest.raises(InputError, match="compacted"):
        session.on("compactd", seen.append)


def test_every_event_has_a_name_of_its_own():
    kinds = [kind for kind in Event.__subclasses__() if kind.__module__ == Event.__module__]
    assert {kind.name for kind in kinds} == set(KINDS)
    assert len(kinds) == len(KINDS), "two of one name"
    assert "" not in KINDS
    assert EVERY not in KINDS


@pytest.mark.parametrize(("policy", "warned"), [("foldline", [3]), ("codex", [1, 2, 3, 4])])
async def test_repeated_compactions_are_warned_of(store, policy, warned):
    session = session_on(store, policy=policy)
    heard = Events(session)
    for round_ in range(4):
        await run_turns(session, 3, 10 * round_)
        await session.compact()
    counts = [event.count for event in heard.named("warning")]
    assert counts == warned, "codex warns each time, the others again when they have doubled"
    assert heard.named("warning")[0].kind == "repeated_compactions"
    assert "hand-off" in heard.named("warning")[0].text


async def test_a_window_that_is_only_assumed_is_said(store, caplog):
    session = session_on(store, model="mine", known=False)
    heard = Events(session)
    with caplog.at_level(logging.WARNING, "foldline"):
        async with session:
            await session.context()
    text = session.setup.info.warning
    assert "mine is not in the catalogue: a window of 10,000 tokens" in text
    assert [(event.kind, event.text) for event in heard.named("warning")] == [("unknown_window", text)]
    assert text in caplog.text


async def test_another_model_is_told_and_a_smaller_window_is_compacted_for(store):
    session = session_on(store, window=Window(context=100_000))
    heard = Events(session)
    await run_turns(session, 20)
    await session.use_model("small", window=10_000)
    assert heard.named("model")[0].context == 10_000
    await session.append(prompt(20))
    await session.context()
    assert heard.named("compacted")[0].receipt.reason == "model_switch"
    assert session.view_tokens < 8_500
    assert session.setup.model == "small"


async def test_a_failed_summary_of_a_model_is_no_failure_of_the_compaction(store):
    session = session_on(store, Failing(), policy=policy_with(background=False))
    heard = Events(session)
    await run_turns(session, 14)
    assert heard.named("compacted")
    assert not heard.named("strike")
    told = "model:broken wrote no summary: the model is away"
    assert told in heard.named("compacted")[0].receipt.notes
    assert [(event.kind, event.text) for event in heard.named("warning")][:1] == [("summary_failed", told)]
