"""Clients that compact by themselves: they go on in a new session, found by its name or by their summary."""

from __future__ import annotations

import openai
import pytest
from tests.service.chats import answers, opened
from tests.service.served import run_gateway
from tests.support import patient

import foldline
from foldline.service.gateway.agent_session import AgentSession
from foldline.service.gateway.session_finder import goes_on_from
from foldline.session.links import links
from foldline.testing import Refusal, Scripted


async def test_a_session_that_the_client_names_is_that_one(chat, tmp_path):
    file = tmp_path / "s.db"
    with run_gateway(answers, store=f"sqlite:///{file}") as (url, _):
        talk = chat(url, **{"foldline-session": "mine"})
        talk.ask("One.")
        talk.ask("Two.")
        # it has compacted by itself: what it goes on with has nothing in common
        talk.messages = [{"role": "user", "content": "A summary of what we did."}]
        talk.ask("Go on.")
        talk.ask("And on.")
    async with opened(file) as store:
        assert {one.id: one.messages for one in await store.sessions()} == {"mine": 4, "mine.2": 5}
        assert [(one.session, one.how) for one in await links(store, "mine.2")] == [("mine", "compacted")]


@pytest.mark.parametrize("name", ["mine", "v1.5"])
async def test_a_new_conversation_of_a_name_follows_the_newest_one_also_where_one_was_deleted(
    chat, tmp_path, name
):
    file = tmp_path / "s.db"
    with run_gateway(answers, store=f"sqlite:///{file}") as (url, _):

        def converse(about):
            talk = chat(url, **{"foldline-session": name})
            talk.messages = [{"role": "user", "content": f"A summary of {about}."}]
            talk.ask("Go on.")
            talk.ask("And on.")

        for about in ("the parser", "its tests", "the tides"):
            converse(about)
        assert patient.delete(f"{url}/api/sessions/{name}").status_code == 204
        converse("the berths")
    async with opened(file) as store:
        sizes = {one.id: one.messages for one in await store.sessions()}
        found = {number: await links(store, f"{name}.{number}") for number in (3, 4)}
    assert sizes == {f"{name}.{number}": 5 for number in (2, 3, 4)}
    assert [(one.session, one.way) for one in found[3]] == [(f"{name}.2", "from"), (f"{name}.4", "to")]
    assert [(one.session, one.way) for one in found[4]] == [(f"{name}.3", "from")]


def test_of_a_named_conversation_no_older_generation_is_read(chat, monkeypatch):
    read, catch_up = [], AgentSession.catch_up

    async def noted(talk):
        read.append(talk.session.id)
        return await catch_up(talk)

    with run_gateway(answers) as (url, _):
        talk = chat(url, **{"foldline-session": "mine"})
        talk.ask("One.")
        talk.messages = [{"role": "user", "content": "A summary of what we did."}]
        talk.ask("Go on.")
        monkeypatch.setattr(AgentSession, "catch_up", noted)
        talk.ask("And on.")
    assert set(read) == {"mine.2"}


SUMMARY = """<analysis>
The user asked for a parser first, and then for its tests; both were written and pass.
</analysis>
<summary>
1. Primary request: write a parser for the schedule of the harbour office, without a dependency.
2. Files: src/harbour/schedule.py holds parse() and Berth; tests/test_schedule.py has eleven tests.
3. Never push to main. The user said so at the beginning, and it holds for the rest of the work.
4. Next: read the tide tables, whose format is described in docs/tides.md, and join them by hour.
</summary>"""


async def test_a_client_that_compacts_by_itself_goes_on_in_a_child(chat, tmp_path):
    def reply(asked):
        return SUMMARY if "Summarize" in str(asked.messages[-1]) else answers(asked)

    file = tmp_path / "s.db"
    with run_gateway(reply, store=f"sqlite:///{file}") as (url, _):
        talk = chat(url)
        for text in ("Write a parser.", "And its tests.", "Summarize what was done, in tags."):
            talk.ask(text)
        inner = talk.messages[-1]["content"].split("<summary>")[1].removesuffix("</summary>")
        talk.messages = [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": f"This session goes on from an earlier one.\n\n{inner}"},
        ]
        talk.ask("Go on with the tides.")
        talk.ask("And then?")
        other = chat(url)
        other.ask("Something else.")
    async with opened(file) as store:
        parent, child, apart = [one.id for one in sorted(await store.sessions(), key=lambda one: one.created)]
        (link,) = await links(store, child)
        assert (link.session, link.how, link.way) == (parent, "compacted", "from")
        (back,) = await links(store, parent)
        assert (back.session, back.how, back.way) == (child, "compacted", "to")
        assert await links(store, apart) == []
        async with foldline.open(store, child) as session:
            assert await session.recall("parser tests")  # what was said before its client's summary too


@pytest.mark.parametrize("headers", [{}, {"foldline-session": "mine"}])
async def test_a_child_whose_first_request_is_refused_is_not_stored(chat, tmp_path, headers):
    file = tmp_path / "s.db"
    script = Scripted([SUMMARY, Refusal(429), "Hello."], window=12_000)
    async with opened(file) as store:
        with run_gateway(script, store=f"sqlite:///{file}") as (url, _):
            talk = chat(url, **headers)
            talk.ask("Summarize what was done.")
            beginning = [{"role": "user", "content": f"It goes on.\n\n{talk.messages[-1]['content']}"}]
            talk.messages = list(beginning)
            with pytest.raises(openai.RateLimitError):
                talk.ask("Go on.")
            (parent,) = [one.id for one in await store.sessions()]
            assert await links(store, parent) == []
            talk.messages = list(beginning)
            talk.ask("Go on.")
        (child,) = {one.id for one in await store.sessions()} - {parent}
        assert [(link.session, link.way) for link in await links(store, parent)] == [(child, "to")]
        assert [(link.session, link.way) for link in await links(store, child)] == [(parent, "from")]


@pytest.mark.parametrize(
    ("reply", "beginning", "carried"),
    [
        (SUMMARY, f"Another model wrote this:\n{SUMMARY}\nGo on.", True),
        (SUMMARY, "\n".join(f"> {line}" for line in SUMMARY.splitlines()), True),
        (
            SUMMARY,
            "2. Files: src/harbour/schedule.py holds parse() and Berth; tests/test_schedule.py.",
            False,
        ),
        (SUMMARY, "Write a parser for the schedule of the harbour office.", False),
        ("Done.\n\nOk.", "Done.\n\nOk. And now?", False),
        ("", "anything", False),
    ],
)
def test_a_summary_is_known_again_by_its_lines(reply, beginning, carried):
    assert goes_on_from(reply, beginning) is carried
