"""The gateway: which session a request is of, what is folded, and what happens where something fails."""

from __future__ import annotations

import asyncio
import json

import anthropic
import httpx2
import openai
import pytest
from tests.service.api.client import FILLER
from tests.service.served import SIBLINGS, AlternatingClients, freeze_rate_clock, run_gateway, run_service
from tests.service.upstream import Prepared, served_upstream, upstream
from tests.support import patient

import foldline
from foldline.errors import InputError
from foldline.service.gateway import session_finder
from foldline.service.gateway.agent_session import AgentSession
from foldline.service.gateway.client import SUBAGENT
from foldline.service.gateway.session_finder import SessionFinder, goes_on_from
from foldline.session.links import links
from foldline.testing import Answer, Refusal, Scripted

RULE = "Never push to main."


def answers(asked):
    return f"Answer {asked.index}. " + FILLER


class Chat:
    """An agent that keeps its whole history and sends it again with every request."""

    def __init__(self, url, **headers):
        self.client = AlternatingClients(
            lambda one: openai.OpenAI(
                base_url=f"{one}/v1", api_key="test", max_retries=0, timeout=60, default_headers=headers
            ),
            url,
        )
        self.messages = [{"role": "system", "content": "You help."}]

    def ask(self, text):
        self.messages.append({"role": "user", "content": text})
        raw = self.client.chat.completions.with_raw_response.create(model="scripted", messages=self.messages)
        self.messages.append({"role": "assistant", "content": raw.parse().choices[0].message.content})
        return raw.headers

    def close(self):
        self.client.close()


@pytest.fixture
def chat():
    made = []

    def make(url, **headers):
        made.append(Chat(url, **headers))
        return made[-1]

    yield make
    for one in made:
        one.close()


async def stored(path):
    """The sessions of a store file: how many messages and compactions each has, the oldest first."""
    store = foldline.stores.open_store(f"sqlite:///{path}")
    found = [(one.messages, one.compactions, one.entries) for one in reversed(await store.sessions())]
    assert await store.verify() == []
    await store.close()
    return found


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
    store = foldline.stores.open_store(f"sqlite:///{file}")
    assert {one.id: one.messages for one in await store.sessions()} == {"mine": 4, "mine.2": 5}
    assert [(one.session, one.how) for one in await links(store, "mine.2")] == [("mine", "compacted")]
    await store.close()


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
    store = foldline.stores.open_store(f"sqlite:///{file}")
    assert {one.id: one.messages for one in await store.sessions()} == {
        f"{name}.{number}": 5 for number in (2, 3, 4)
    }
    found = {number: await links(store, f"{name}.{number}") for number in (3, 4)}
    assert [(one.session, one.way) for one in found[3]] == [(f"{name}.2", "from"), (f"{name}.4", "to")]
    assert [(one.session, one.way) for one in found[4]] == [(f"{name}.3", "from")]
    await store.close()


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
    store = foldline.stores.open_store(f"sqlite:///{file}")
    parent, child, apart = [one.id for one in sorted(await store.sessions(), key=lambda one: one.created)]
    (link,) = await links(store, child)
    assert (link.session, link.how, link.way) == (parent, "compacted", "from")
    (back,) = await links(store, parent)
    assert (back.session, back.how, back.way) == (child, "compacted", "to")
    assert await links(store, apart) == []
    async with foldline.open(store, child) as session:
        assert await session.recall("parser tests")  # what was said before its client's summary too
    assert await store.verify() == []
    await store.close()


@pytest.mark.parametrize("headers", [{}, {"foldline-session": "mine"}])
async def test_a_child_whose_first_request_is_refused_is_not_stored(chat, tmp_path, headers):
    store = foldline.stores.open_store(f"sqlite:///{tmp_path / 's.db'}")
    script = Scripted([SUMMARY, Refusal(429), "Hello."], window=12_000)
    with run_gateway(script, store=f"sqlite:///{tmp_path / 's.db'}") as (url, _):
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
    await store.close()


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


@pytest.mark.parametrize("header", [*SUBAGENT, "x-nobody"])
def test_a_sub_agent_is_not_folded_by_a_threshold(chat, header):
    with run_gateway(answers, window=12_000) as (url, _):
        talk = chat(url, **{header: "1"})
        views = [talk.ask(f"Question {number}. {FILLER}").get("foldline-view", "") for number in range(16)]
    reasons = {word for view in views for word in view.split("; ") if word.startswith("reason=")}
    assert reasons == {"reason=threshold" if header == "x-nobody" else "reason=overflow"}


def test_marks_that_moved_go_up_as_they_are_now():
    with run_gateway(answers, window=14_000) as (url, model):
        client = anthropic.Anthropic(base_url=url, api_key="test", max_retries=0, timeout=60)
        messages = []
        with client:
            for number in range(30):
                mark = {
                    "type": "text",
                    "text": f"Question {number}. {FILLER}",
                    "cache_control": {"type": "ephemeral"},
                }
                messages.append({"role": "user", "content": [mark]})
                reply = client.messages.create(model="claude-scripted", max_tokens=500, messages=messages)
                del mark["cache_control"]
                messages.append({"role": "assistant", "content": [one.to_dict() for one in reply.content]})
    sent = model.requests[-1].messages
    assert len(sent) < 40
    assert str(sent).count("cache_control") == 1
    assert "cache_control" in sent[-1]["content"][-1]


# ---- overflows


OPENAI = "This model's maximum context length is 9000 tokens. However, your messages resulted in 9400 tokens."
ANTHROPIC = "prompt is too long: 9400 tokens > 9000 maximum"
REFUSALS = {
    "openai": (400, json.dumps({"error": {"message": OPENAI, "code": "context_length_exceeded"}}).encode()),
    "anthropic": (400, json.dumps({"type": "error", "error": {"message": ANTHROPIC}}).encode()),
    "empty": (413, b""),
}
DONE = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
    "object": "chat.completion",
}
HISTORY = [
    {"role": role, "content": f"{role} {number}. {FILLER}"}
    for number in range(8)
    for role in ("user", "assistant")
]


class Refusing:
    """An upstream that refuses what has more than so many messages."""

    def __init__(self, refusal, most):
        self.refusal, self.most, self.sent = refusal, most, []

    async def __call__(self, scope, receive, send):
        body = b""
        while (event := await receive()).get("more_body") or event.get("body"):
            body += event["body"]
            if not event.get("more_body"):
                break
        messages = json.loads(body)["messages"]
        self.sent.append(messages)
        status, kind, answer = self.refusal if len(messages) > self.most else self.answer(json.loads(body))
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def answer(self, body):
        del body
        return 200, b"application/json", json.dumps(DONE).encode()


def asked(url, messages, **more):
    body = {"model": "scripted", "messages": messages, **more}
    return httpx2.post(
        f"{url}/v1/chat/completions", json=body, headers={"authorization": "Bearer k"}, timeout=60
    )


@pytest.mark.parametrize("kind", REFUSALS)
def test_an_overflow_is_mended_inside(kind):
    status, body = REFUSALS[kind]
    model = Refusing((status, b"application/json", body), 10)
    with (
        upstream(model) as (url, _),
        run_service(openai_upstream=url, store="memory://", window=200_000) as at,
    ):
        answer = asked(at, [*HISTORY, {"role": "user", "content": "Go on."}])
    assert answer.status_code == 200
    assert answer.json() == DONE
    assert "reason=overflow" in answer.headers["foldline-view"]
    whole, folded = model.sent
    assert len(folded) < 10 < len(whole) == 17


def thinking(asked):
    return Answer(text=f"Answer {asked.index}. " + FILLER, thinking="I think so.")


@pytest.mark.parametrize("budget", [1_024, 7_999])
def test_a_reply_made_shorter_keeps_a_budget_for_thinking_below_it(budget):
    with run_gateway(thinking, window=14_000) as (url, model):
        client = anthropic.Anthropic(base_url=url, api_key="test", max_retries=0, timeout=60)
        messages = []
        asked = {"max_tokens": 8_000, "thinking": {"type": "enabled", "budget_tokens": budget}}
        with client:
            for number in range(24):
                messages.append({"role": "user", "content": f"Question {number}. {FILLER}"})
                reply = client.messages.create(model="claude-scripted", messages=messages, **asked)
                messages.append({"role": "assistant", "content": [one.to_dict() for one in reply.content]})
    sent = [(one.max_tokens, one.body["thinking"]["budget_tokens"]) for one in model.requests]
    assert sent[0] == (8_000, budget)
    shorter = [one for one in sent if one[0] < 8_000]
    assert shorter
    assert all(1_024 <= thought < most for most, thought in shorter)
    assert {one.refused[:12] for one in model.requests if one.refused} == {"input length"}


def test_a_limit_that_a_longer_reply_was_given_never_raises_a_shorter_one():
    with run_gateway(answers, window=14_000) as (url, model):
        client = anthropic.Anthropic(base_url=url, api_key="test", max_retries=0, timeout=60)
        messages, limits = [], []
        with client:
            for number in range(12):
                messages.append({"role": "user", "content": f"Question {number}. {FILLER}"})
                limits.append(8_000 if number % 2 else 700)
                asked = {"model": "claude-scripted", "messages": messages, "max_tokens": limits[-1]}
                reply = client.messages.create(**asked)
                messages.append({"role": "assistant", "content": [one.to_dict() for one in reply.content]})
    answered = [one.max_tokens for one in model.requests if not one.refused]
    assert all(sent <= given for sent, given in zip(answered, limits, strict=True))
    assert any(sent < given for sent, given in zip(answered, limits, strict=True))


def test_an_overflow_that_remains_is_told_as_it_came():
    status, body = REFUSALS["openai"]
    model = Refusing((status, b"application/json", body), 0)
    with (
        upstream(model) as (url, _),
        run_service(openai_upstream=url, store="memory://", window=200_000) as at,
    ):
        answer = asked(at, [*HISTORY, {"role": "user", "content": "Go on."}])
    assert (answer.status_code, answer.content) == (status, body)
    assert len(model.sent) == 2


def test_an_overflow_inside_a_stream_is_mended_before_a_byte_is_sent():
    failed = (
        b'data: {"error": {"message": "prompt is too long: 9400 tokens > 9000 maximum", "code": 400}}\n\n'
    )
    model = Refusing((200, b"text/event-stream", failed), 10)
    said = b'data: {"choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    model.answer = lambda _: (200, b"text/event-stream", said)
    with (
        upstream(model) as (url, _),
        run_service(openai_upstream=url, store="memory://", window=200_000) as at,
    ):
        answer = asked(at, [*HISTORY, {"role": "user", "content": "Go on."}], stream=True)
    assert answer.content.startswith(said)
    assert answer.content[len(said) :].startswith(b": foldline {")


@pytest.mark.slow
def test_a_failed_compaction_never_fails_the_request(chat):
    def says(asked):
        return Refusal(500, "no summary today") if "checkpoint" in str(asked.messages[0]) else answers(asked)

    with run_gateway(says, window=12_000, summaries="upstream") as (url, _):
        talk = chat(url)
        for number in range(30):
            talk.ask(f"Question {number}. {FILLER}")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("headers", [{}, {"foldline-session": "mine", "foldline-user": "ann"}])
async def test_a_session_whose_first_request_is_refused_is_not_stored(chat, tmp_path, headers, streamed):
    file = tmp_path / "s.db"
    script = Scripted([Refusal(429), "Hello.", Refusal(429)], window=12_000)
    with run_gateway(script, store=f"sqlite:///{file}") as (url, _):
        talk = chat(url, **headers)
        messages = [{"role": "user", "content": "Hello."}]
        with pytest.raises(openai.RateLimitError):
            talk.client.chat.completions.create(model="scripted", messages=messages, stream=streamed)
        assert await stored(file) == []
        talk.ask("Hello.")
        with pytest.raises(openai.RateLimitError):
            talk.ask("Again.")
    ((messages, _, _),) = await stored(file)
    assert messages == 3


async def test_a_session_whose_model_cannot_be_reached_is_not_stored(tmp_path):
    file = tmp_path / "s.db"
    with run_service(openai_upstream="http://127.0.0.1:1", store=f"sqlite:///{file}") as url:
        assert asked(url, [{"role": "user", "content": "Hello."}]).status_code == 502
    assert await stored(file) == []


@pytest.mark.parametrize("wrong", [{"policy": "none"}, {"summaries": "nobody"}, {"tokens": {"t": "A B"}}])
def test_what_is_set_wrongly_is_told_at_the_start(wrong):
    with pytest.raises(InputError), run_service(**wrong):
        pass


# ---- who may ask


def test_an_upstream_that_is_not_there_is_an_error_in_the_clients_form():
    with run_service(openai_upstream="http://127.0.0.1:9/v1", store="memory://") as at:
        answer = asked(at, [{"role": "user", "content": "Hello."}])
    assert answer.status_code == 502
    assert "cannot be reached" in answer.json()["error"]["message"]


def test_a_token_is_needed_where_tokens_are_set_and_never_goes_on_to_the_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-server")
    with (
        upstream() as (url, model),
        run_service(
            openai_upstream=url,
            store="memory://",
            tokens={"secret-of-tenant-a": "a", "secret-of-tenant-b": "b"},
        ) as at,
    ):
        model.prepared[""] = Prepared(
            200, [("content-type", "application/json")], [json.dumps(DONE).encode()]
        )
        body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
        path = f"{at}/v1/chat/completions"
        assert patient.post(path, json=body).status_code == 401
        assert patient.post(path, json=body, headers={"authorization": "Bearer wrong"}).status_code == 401
        assert (
            patient.post(path, json=body, headers={"authorization": "Bearer secret-of-tenant-a"}).status_code
            == 200
        )
        own = {"authorization": "Bearer mine", "foldline-token": "secret-of-tenant-b"}
        assert patient.post(path, json=body, headers=own).status_code == 200
        first, second = model.received[""]
        assert ("authorization", "Bearer key-of-the-server") in first.headers
        assert ("authorization", "Bearer mine") in second.headers
        assert "secret" not in str((first, second))


def test_a_body_over_the_limit_and_too_many_requests_are_refused(monkeypatch):
    freeze_rate_clock(monkeypatch)
    with served_upstream(store="memory://", max_body=1_000, rate=2) as (at, model):
        model.prepared[""] = Prepared(
            200, [("content-type", "application/json")], [json.dumps(DONE).encode()]
        )
        assert asked(at, HISTORY).status_code == 413
        small = [{"role": "user", "content": "Hello."}]
        assert asked(at, small).status_code == 200
        refused = asked(at, small)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1


def test_who_asks_for_a_websocket_is_told_at_once_that_there_is_none():
    with run_service() as url:
        headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        assert patient.get(f"{url}/v1/responses", headers=headers).status_code == 426
