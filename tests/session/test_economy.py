"""What a session knows of its provider's cache: in receipts, for the choice of a form, and for when a draft is committed."""

import asyncio
import time

import msgspec
import pytest
from tests.support.live import Gate, answer, context_at, grow_to, prompt, run_turns, session_on
from tests.support.waiting import until as settled

from foldline.core.decide.ask import Nothing
from foldline.core.decide.price import Cache
from foldline.core.log.entries import Compacted
from foldline.core.log.messages import Message, Text, Usage

SOFT = 5_950
MODEL = "anthropic:claude-sonnet-4-6"


@pytest.fixture
def later(monkeypatch):
    """Lets minutes pass on the wall clock."""
    now = time.time

    def pass_by(seconds):
        monkeypatch.setattr(time, "time", lambda: now() + seconds)

    return pass_by


def reply(number, usage):
    text = f"Answer {number}: it looks fine."
    return Message("assistant", (Text(text),), usage=usage, stop="end")


async def drafted(store, usage):
    """A session with a draft that is ready, whose last reply had this usage."""
    gate = Gate(opened=True)
    session = session_on(store, gate, model=MODEL, dialect="anthropic")
    number = await grow_to(session, SOFT)
    await session.append(prompt(number, 1))
    await session.append(reply(number, usage))
    await session.append(prompt(number + 1, 1))
    await session.context()
    await settled(lambda: session._compactor.drafts.ready is not None)
    return session, number + 2


async def compactions(session):
    return [entry async for entry in session.store.path(session.id) if isinstance(entry, Compacted)]


async def test_while_the_cache_is_warm_a_draft_waits_for_the_hard_trigger(store, later):
    session, number = await drafted(store, Usage(input=50, cache_read=6_000, output=20))
    later(200)
    await session.append(answer(number, 1), prompt(number, 1))
    await session.context()
    assert await compactions(session) == []


async def test_once_the_cache_is_cold_the_draft_is_committed_at_the_soft_trigger(store, later):
    session, number = await drafted(store, Usage(input=50, cache_read=6_000, output=20))
    later(400)
    await session.append(prompt(number, 1))
    await session.context()
    (found,) = await compactions(session)
    assert found.receipt.reason == "threshold"
    assert next(note for note in found.receipt.notes if "pays" in note).startswith("pays at once: ")
    assert sum("pays" in note for note in found.receipt.notes) == 1, "the draft's own balance is out of date"


async def test_a_provider_that_cached_nothing_has_no_cache_to_go_cold(store, later):
    session, number = await drafted(store, Usage(input=6_050, output=20))
    later(400)
    await session.append(prompt(number, 1))
    await session.context()
    assert await compactions(session) == []


async def test_what_the_cache_holds_is_read_from_the_newest_reply_since_the_boundary(store):
    session = session_on(store, model=MODEL, dialect="anthropic")
    assert session.cache == Cache()
    await session.append(prompt(0), reply(0, Usage(input=10, cache_read=500, cache_write=70, output=5)))
    cache = session.cache
    assert (cache.tokens, cache.idle < 60) == (570, True)
    await grow_to(session, SOFT, 1)
    receipt = await session.compact()
    assert session.cache == Cache(), "the prefix is another"
    assert any("each request costs $" in note for note in receipt.notes)


async def test_another_model_has_nothing_in_its_cache(store):
    session = session_on(store, model=MODEL, dialect="anthropic")
    await session.append(prompt(0), reply(0, Usage(input=5, cache_read=6_000, output=10)))
    assert session.cache.warm == 6_000
    await session.use_model("anthropic:claude-opus-4-6")
    assert session.cache == Cache()
    await session.append(prompt(1), reply(1, Usage(input=5, cache_read=7_000, output=10)))
    assert session.cache.warm == 7_000


async def test_openai_caches_all_of_a_prompt(store):
    session = session_on(store, model="openai:gpt-5.2", dialect="openai-chat")
    await session.append(prompt(0), reply(0, Usage(input=1_000, cache_read=500, output=5)))
    assert session.cache.tokens == 1_500


async def test_a_summary_is_asked_for_with_the_sessions_next_request_as_it_was_then(store):
    gate = Gate()
    session = session_on(store, gate, model=MODEL, dialect="anthropic", system="Be brief.")
    await session.append(prompt(0), reply(0, Usage(input=10, cache_read=500, output=5)), prompt(1))
    messages, tokens = await session.context(), session.view_tokens
    compacting = asyncio.create_task(session.compact(target=500))
    await asyncio.wait_for(gate.begun.wait(), 60)
    await session.append(answer(1))
    gate.go.set()
    await compacting
    prefix = gate.requests[0].prefix
    assert (prefix.model, prefix.dialect, prefix.window) == (MODEL, "anthropic", session.setup.window)
    assert (prefix.messages, prefix.system, prefix.tools) == (messages, "Be brief.", None)
    assert (prefix.tokens, prefix.cache.tokens) == (tokens, 500)


# ---- what was paid for summaries that are not used


class Paid(Gate):
    """Each reply costs a quarter of a dollar."""

    async def summarize(self, request):
        reply = await super().summarize(request)
        return msgspec.structs.replace(reply, usage=Usage(input=1_000, output=100), price=0.25)


def costs_all(paid, receipt):
    """Whether a receipt has the cost of all replies so far, and says that some were not used."""
    told = [note for note in receipt.notes if note.endswith("for earlier summaries that were not used")]
    assert (receipt.price, receipt.usage.input) == (paid.asked * 0.25, paid.asked * 1_000)
    return told == [
        f"the figures include ${(paid.asked - 1) * 0.25:.4f} for earlier summaries that were not used"
    ]


async def test_the_next_fold_has_the_cost_of_a_summary_that_gained_nothing(store):
    model = Paid(opened=True)
    session = session_on(store, model)
    await run_turns(session, 2, lines=0)
    outcome = await session.compact()
    assert isinstance(outcome, Nothing)
    assert (outcome.why, model.asked) == ("no_gain", 1)
    await run_turns(session, 6, 2)
    assert costs_all(model, await session.compact())
    await run_turns(session, 6, 8)
    assert (await session.compact()).price == 0.25, "it is counted once"


@pytest.mark.parametrize("undo", [False, True])
async def test_the_next_fold_has_the_cost_of_a_draft_that_was_dropped(store, undo):
    model = Paid(opened=True)
    session = session_on(store, model)
    await run_turns(session, 6)
    await session.compact()
    before, model.asked = model.asked, 0
    number = await context_at(session, SOFT, 6)
    await settled(lambda: session._compactor.drafts.ready is not None)
    await session.append(answer(number))
    if undo:
        await session.undo()
    receipt = await session.compact()
    assert (before, model.asked) == (1, 2)
    assert costs_all(model, receipt)
