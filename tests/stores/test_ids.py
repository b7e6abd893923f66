"""Short ids: what lists show of an id, and what a part of one names."""

from __future__ import annotations

import pytest

from foldline.core.log.log import said
from foldline.core.log.messages import Message, Text
from foldline.errors import SessionNotFound
from foldline.stores import MemoryStore
from foldline.stores.ids import ShortIds, find_session, short_ids

CHATS = ["work-5f2a9c11-1129-130409-0dad", "work-5f2a9c11-1129-130409-0dae", "work-5f2a9c11-1128-130409-0dad"]
IDS = [*CHATS, "9f790975-9fa4-4ca4-b039-145649d00000", "9f790975a-fa4-4ca4-b039-145649d00001", "login-bug"]


@pytest.fixture
async def store():
    made = MemoryStore()
    for name in IDS:
        await made.append(name, [said(Message("user", (Text("Hello."),)), parent=None)], seen=None)
    yield made
    await made.close()


async def test_a_short_id_names_its_session_and_has_eight_characters_at_least(store):
    short = await short_ids(store)
    told = [short(one) for one in IDS]
    assert told == [
        "1129-130409-0dad",
        "130409-0dae",
        "1128-130409-0dad",
        "9f790975-",
        "9f790975a",
        "login-bug",
    ]
    assert [await find_session(store, one) for one in told] == IDS


async def test_any_part_at_the_beginning_or_the_end_names_a_session_alone(store):
    assert await find_session(store, "0dae") == CHATS[1]
    assert await find_session(store, "login") == "login-bug"
    with pytest.raises(SessionNotFound, match="no session '5f2a9c11'"):
        await find_session(store, "5f2a9c11")
    with pytest.raises(SessionNotFound, match="no session ''"):
        await find_session(store, "")


async def test_an_ambiguous_part_says_which_sessions_it_could_mean(store):
    with pytest.raises(SessionNotFound) as caught:
        await find_session(store, "work-")
    assert f"matches 3 sessions: {', '.join(sorted(CHATS))}" in str(caught.value)


def test_a_new_session_that_is_not_stored_yet_has_its_whole_id():
    assert ShortIds([])(CHATS[0]) == CHATS[0]
