"""A session that is idle: the draft that is ready is committed before the provider forgets the view."""

import pytest
from tests.support.live import Events, Gate, answer, grow_to, policy_with, prompt, session_on
from tests.support.waiting import until as settled

from foldline.core.decide.triggers import idle_in
from foldline.core.log.messages import Message, Text, ToolCall

SOFT = 5_950
REPLY = Message("assistant", (Text("Done."),))


async def drafted(store, idle):
    """A session with a draft that is ready, and nothing said behind its newest prompt."""
    session = session_on(store, Gate(opened=True), policy=policy_with(idle=None))
    number = await grow_to(session, SOFT)
    await session.use_policy(policy_with(idle=idle))
    await session.append(prompt(number, 1))
    await session.context()
    await settled(lambda: session._compactor.drafts.ready is not None)
    return session, number


async def test_a_draft_is_committed_while_nobody_asks(store):
    session, number = await drafted(store, 0)
    heard = Events(session)
    await session.append(answer(number, 1))
    await settled(lambda: heard.named("compacted"))
    assert heard.named("compacted")[0].drafted
    assert session.view_tokens < SOFT
    assert await session.verify() == []


async def test_without_the_field_nothing_is_done(store):
    session, number = await drafted(store, None)
    await session.append(answer(number, 1))
    assert session._triggers.timer is None


async def test_what_is_said_next_ends_the_wait_and_so_does_the_end(store):
    session, number = await drafted(store, 3_600)
    await session.append(answer(number, 1))
    first = session._triggers.timer
    await session.append(prompt(number + 1, 1))
    assert first.cancelled(), "the user has spoken"
    assert session._triggers.timer is None
    await session.append(answer(number + 1, 1))
    last = session._triggers.timer
    assert not last.cancelled()
    await session.close()
    assert last.cancelled()


async def test_who_was_idle_and_is_no_longer_keeps_the_draft(store):
    session, number = await drafted(store, 3_600)
    await session.append(answer(number, 1))
    behind = session._triggers.newest.id
    await session.append(prompt(number + 1, 1))
    assert await session._triggers.commit_behind(behind) is None
    assert session._compactor.drafts.ready is not None


async def test_without_a_draft_an_idle_session_stays_as_it_is(store):
    session = session_on(store, policy=policy_with(idle=3_600))
    await session.append(prompt(0), answer(0))
    before = session.view_tokens
    await session._triggers.idle._run()
    assert session.view_tokens == before


@pytest.mark.parametrize(
    ("newest", "at", "now", "seconds"),
    [
        (REPLY, 100.0, 100.0, 270),
        (REPLY, 100.0, 300.0, 70),
        (REPLY, 100.0, 900.0, 0),
        (REPLY, None, 900.0, 270),
        (Message("user", (Text("And?"),)), 100.0, 900.0, None),
        (Message("assistant", (ToolCall("c", "read", {}),)), 100.0, 900.0, None),
        (None, None, 900.0, None),
    ],
)
def test_a_session_is_idle_so_long_after_a_reply(newest, at, now, seconds):
    assert idle_in(policy_with(idle=270), newest, at, now) == seconds
    assert idle_in(policy_with(idle=None), newest, at, now) is None


@pytest.mark.parametrize("off", [{"enabled": False}, {"background": False}])
def test_a_policy_that_does_nothing_by_itself_or_beside_the_session_knows_no_idleness(off):
    assert idle_in(policy_with(idle=270, **off), REPLY, 100.0, 900.0) is None
