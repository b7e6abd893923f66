"""The gateway: which session a request is of, and what is folded."""

from __future__ import annotations

import asyncio

import pytest
from tests.service.api.client import FILLER
from tests.service.chats import answers, claude, stored
from tests.service.served import SIBLINGS, run_gateway
from tests.support import patient

from foldline.service.gateway import session_finder
from foldline.service.gateway.client import SUBAGENT, agent_of
from foldline.service.gateway.session_finder import SessionFinder
from foldline.testing import Scripted

RULE = "Never push to main."


def texts(messages):
    return [message["content"] for message in messages]


def test_a_chat_goes_on_past_its_window(chat):
    with run_gateway(answers, window=12_000) as (url, model):
        talk = chat(url)
        talk.ask(RULE)
        plain = talk.ask("Begin.")
        assert not [name for name in plain if name.startswith("foldline")]
        heads = [talk.ask(f"Question {number}. {FILLER}") for number in range(40)]
    sent = model.requests[-1].messages
    assert sent[0] == {"role": "system", "content": "You help."}
    assert len(sent) < 30 < len(talk.messages)
    assert RULE in str(sent)
    assert sent[-1] == talk.messages[-2]
    folded = [one for one in heads if "reason=" in one.get("foldline-view", "")]
    assert folded
    assert all(one["foldline-session"] == folded[0]["foldline-session"] for one in folded)


def test_what_the_user_marked_goes_up_word_for_word_behind_a_fold(chat):
    with run_gateway(answers, window=12_000) as (url, model):
        talk = chat(url)
        talk.ask(f"The crane:\n\n<keep>\nB-48151, {FILLER}\n</keep>\n\nBegin.")
        for number in range(16):
            talk.ask(f"Question {number}. {FILLER}")
    (block,) = str(model.requests[-1].messages[1]["content"]).split("<kept-words ")[1:]
    assert block.split("\n")[1] == f"B-48151, {FILLER}".strip()


async def test_every_fold_is_told_once_and_counted(chat, tmp_path):
    file = tmp_path / "s.db"
    with run_gateway(answers, window=12_000, store=f"sqlite:///{file}") as (url, _):
        talk = chat(url)
        heads = []
        for number in range(40):
            heads.append(talk.ask(f"Question {number}. {FILLER}"))
            if url in SIBLINGS:
                # what one folds behind a reply is told by the other, once it is stored
                await asyncio.sleep(0.2)
        figures = "\n".join(patient.get(f"{one}/metrics").text for one in SIBLINGS.get(url, [url]))
    ((_, compactions, _),) = await stored(file)
    assert compactions > 3
    told = sum("reason=" in one.get("foldline-view", "") for one in heads)
    assert told in (compactions, compactions - 1)  # one behind the last reply is told with the next
    counted = [line for line in figures.splitlines() if line.startswith("foldline_folds_total{")]
    # that one may have been stored before the figures were read, or while the service ended
    assert told <= sum(float(line.split()[-1]) for line in counted) <= compactions


async def test_a_conversation_is_one_session_and_is_found_again_after_a_restart(chat, tmp_path):
    model, file = Scripted(answers, window=12_000), tmp_path / "s.db"
    with run_gateway(model, window=12_000, store=f"sqlite:///{file}") as (url, _):
        talk = chat(url)
        for number in range(12):
            talk.ask(f"Question {number}. {FILLER}")
    with run_gateway(model, window=12_000, store=f"sqlite:///{file}") as (url, _):
        again = chat(url)
        again.messages = talk.messages
        for number in range(12, 16):
            again.ask(f"Question {number}. {FILLER}")
    ((messages, compactions, _),) = await stored(file)
    assert messages == 32
    assert compactions > 1


async def test_conversations_that_begin_alike_are_told_apart(chat, tmp_path):
    file = tmp_path / "s.db"
    with run_gateway(answers, store=f"sqlite:///{file}") as (url, _):
        one, two = chat(url), chat(url)
        for text in ("Hello.", "And now?", "Then?"):
            one.ask(text)
            two.ask(text)
    assert [found[0] for found in await stored(file)] == [6, 6]


async def test_a_conversation_in_use_is_found_among_many_that_begin_alike(chat, tmp_path, monkeypatch):
    monkeypatch.setattr(session_finder, "CANDIDATES", 3)
    file = tmp_path / "s.db"
    with run_gateway(answers, store=f"sqlite:///{file}") as (url, _):
        talk = chat(url)
        talk.ask("Hello.")
        for n in range(5):
            chat(url).ask("Hello.")
            talk.ask(f"And now, {n}?")
    assert sorted(found[0] for found in await stored(file)) == [2, 2, 2, 2, 2, 12]


async def test_of_the_conversations_that_are_looked_at_only_the_one_found_stays_in_use(chat, monkeypatch):
    find, held = SessionFinder.find, []

    async def found(self, *given):
        talk = await find(self, *given)
        held.append(sum(one.users for one in self._sessions._open.values()))
        return talk

    monkeypatch.setattr(SessionFinder, "find", found)
    with run_gateway(answers) as (url, _):
        talks = [chat(url) for _ in range(5)]
        for text in ("Hello.", "And now?"):
            for talk in talks:
                talk.ask(text)
    assert held == [1] * 10


async def test_an_edited_history_becomes_a_branch(chat, tmp_path):
    file = tmp_path / "s.db"
    with run_gateway(answers, store=f"sqlite:///{file}") as (url, model):
        talk = chat(url)
        for text in ("One.", "Two.", "Three."):
            talk.ask(text)
        talk.messages = [*talk.messages[:3], {"role": "user", "content": "Two, otherwise."}]
        talk.ask("And three.")
        assert texts(model.requests[-1].messages)[-2:] == ["Two, otherwise.", "And three."]
    ((messages, _, entries),) = await stored(file)
    assert (messages, entries) == (5, 9 + 1)  # and a note of the model


async def test_a_request_that_is_sent_twice_is_answered_twice_and_stored_once(chat, tmp_path):
    file = tmp_path / "s.db"
    with run_gateway(answers, store=f"sqlite:///{file}") as (url, _):
        talk = chat(url)
        talk.ask("One.")
        talk.ask("Two.")
        del talk.messages[-2:]
        talk.ask("Two.")
        talk.ask("Three.")
    ((messages, _, entries),) = await stored(file)
    assert (messages, entries) == (6, 7 + 1)


@pytest.mark.parametrize("header", [*SUBAGENT, "x-nobody"])
def test_a_sub_agent_is_not_folded_by_a_threshold(chat, header):
    with run_gateway(answers, window=12_000) as (url, _):
        talk = chat(url, **{header: "1"})
        views = [talk.ask(f"Question {number}. {FILLER}").get("foldline-view", "") for number in range(16)]
    reasons = {word for view in views for word in view.split("; ") if word.startswith("reason=")}
    assert reasons == {"reason=threshold" if header == "x-nobody" else "reason=overflow"}


def test_marks_that_moved_go_up_as_they_are_now():
    with run_gateway(answers, window=14_000) as (url, model):
        with claude(url) as ask:
            for number in range(30):
                mark = {"type": "text", "text": f"Question {number}. {FILLER}"}
                mark["cache_control"] = {"type": "ephemeral"}
                ask([mark], max_tokens=500)
                del mark["cache_control"]
    sent = model.requests[-1].messages
    assert len(sent) < 40
    assert str(sent).count("cache_control") == 1
    assert "cache_control" in sent[-1]["content"][-1]


@pytest.mark.parametrize(
    ("header", "agent"),
    [
        ("claude-cli/2.1.0 (external, cli)", "claude-code"),
        ("codex_cli_rs/0.169.0 (Linux)", "codex"),
        ("OpenAI/Python 2.1", "OpenAI"),
        ("<script>", ""),
        ("", ""),
    ],
)
def test_an_agent_is_known_by_the_product_that_it_names(header, agent):
    assert agent_of(header) == agent
