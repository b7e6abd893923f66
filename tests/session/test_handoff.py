"""Links between sessions: noted, found again, followed back; and which sub-agents still run."""

import pytest
from tests.support.talk import assistant, log_of, system, user

from foldline.core.log.entries import Noted
from foldline.core.log.log import chained
from foldline.errors import InputError
from foldline.session.links import (
    CHAIN,
    LINK,
    Link,
    begin,
    handed_from,
    is_start,
    link_in,
    link_note,
    links,
    origin,
    with_child,
    without_child,
)

FROM = Link("old", "handoff", "from", "e1", "the tests")


async def begun(store, session: str, link: Link = FROM) -> None:
    await begin(store, session, [chained(link_note(link), None)])


async def test_a_link_is_found_again_as_it_was_noted(store):
    await begun(store, "new")
    assert await links(store, "new") == [FROM]
    assert await origin(store, "new") == FROM
    assert await links(store, "none") == []


async def test_a_session_that_somebody_has_is_not_begun_again(store):
    await store.append("new", log_of(user("Mine.")).path(), seen=None)
    with pytest.raises(InputError, match="a session 'new' exists already"):
        await begun(store, "new")
    assert await origin(store, "new") is None


async def test_the_chain_of_hand_offs_is_followed_back_and_ends(store):
    await store.append("s0", log_of(system(), user("Begin.")).path(), seen=None)
    for n in range(1, CHAIN + 4):
        await begun(store, f"s{n}", Link(f"s{n - 1}", "handoff", "from"))

    assert await handed_from(store, "s3") == ["s3", "s2", "s1", "s0"]
    assert len(await handed_from(store, f"s{CHAIN + 3}")) == CHAIN + 1
    await begun(store, "a", Link("b", "handoff", "from"))
    await begun(store, "b", Link("a", "handoff", "from"))
    assert await handed_from(store, "a") == ["a", "b"]


async def test_a_sub_agent_does_not_recall_what_its_parent_said(store):
    await begun(store, "child", Link("parent", "subagent", "from"))
    assert await handed_from(store, "child") == ["child"]


async def test_a_boundary_in_the_middle_is_no_start(store):
    log = log_of(user("Begin."), assistant("Yes."))
    await store.append("s", log.path(), seen=None)
    assert not await is_start(store, "s", log.path()[0].id)
    assert not await is_start(store, "s", "none")


def test_a_note_that_is_no_link_is_none():
    assert link_in(Noted("", None, "title", {"title": "t"})) is None
    assert link_in(Noted("", None, LINK, {"session": "s", "how": "magic", "way": "from"})) is None
    assert link_in(log_of(user()).path()[0]) is None


def test_running_sub_agents_are_a_line_each():
    running = with_child(with_child("", "s-1", "read\nthe docs"), "s-10", "write")
    assert running == "- s-1: read the docs\n- s-10: write"
    assert without_child(running, "s-1") == "- s-10: write"
    assert with_child(running, "s-1", "again").splitlines() == ["- s-10: write", "- s-1: again"]
    assert without_child("- s-1: x", "s-1") == without_child("- s-1:", "s-1") == ""
    assert without_child("- a: x\n- a:b: y", "a") == "- a:b: y"
