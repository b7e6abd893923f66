"""The messages of a session as people see them: ids, sizes, where each stands, and what is pinned."""

from __future__ import annotations

import pytest
from tests.support.live import run_turns, session_on
from tests.support.talk import assistant, call, tool, user

from foldline.errors import InputError


async def test_every_message_is_listed_with_where_it_stands(store):
    session = session_on(store)
    ids = [await session.append(message) for message in (user("Read a."), assistant("", call("c1")))]
    ids.append(await session.append(tool("c1", "forty two " * 500)))
    await run_turns(session, 6)
    await session.compact(target=4_000)

    listed = await session.entries()
    assert [info.entry for info in listed[:3]] == [id_ for some in ids for id_ in some]
    assert [info.role for info in listed[:3]] == ["user", "assistant", "tool"]
    assert {info.how for info in listed} >= {"folded", "kept"}
    assert listed[0].how == "folded"
    assert all(info.tokens > 0 and info.text for info in listed)
    assert (await session.read(listed[2].entry)).text.startswith(listed[2].text.removesuffix("…"))
    assert [info for info in listed if info.how != "kept"] == await session.folded()
    assert await session.entries(limit=2) == listed[-2:]
    assert await session.entries(limit=2, before=listed[4].entry) == listed[2:4]
    with pytest.raises(InputError, match="'nowhere' is not on the path"):
        await session.entries(before="nowhere")


async def test_a_tool_result_and_a_call_can_be_pinned_and_stay_word_for_word(store):
    session = session_on(store)
    await session.append(user("What is the answer?"))
    [asked] = await session.append(assistant("", call("c1", path="deep/thought.py")))
    [found] = await session.append(tool("c1", "the answer is 42, and nothing else"))
    await session.pin(asked)
    await session.pin(found)
    for _ in range(2):
        await run_turns(session, 6)
        await session.compact(target=3_000)
        text = str(await session.context())
        assert "the answer is 42, and nothing else" in text
        assert "deep/thought.py" in text
    listed = {info.entry: info for info in await session.entries()}
    assert (listed[found].how, listed[found].pinned, listed[asked].pinned) == ("folded", True, True)
    await session.unpin(found)
    assert not {info.entry: info for info in await session.entries()}[found].pinned


async def test_what_is_no_message_cannot_be_pinned(store):
    session = session_on(store)
    await session.append(user("hello"))
    await session.note("title", title="x")
    for wrong in ("nowhere", session.leaf):
        with pytest.raises(InputError, match="no message"):
            await session.pin(wrong)
    for change in (session.pin, session.unpin):
        with pytest.raises(InputError, match="give a text"):
            await change([session.leaf])
