"""Clients that keep their own history: what they send is folded, and they are told from where on."""

from __future__ import annotations

import json

import httpx2
import pytest
from tests.service.api.client import FILLER
from tests.service.served import run_gateway, run_service
from tests.support import patient
from tests.support.ui_chunks import chunks_of

from foldline.testing import Answer, Refusal, Scripted, call


def said(role, number, text=FILLER):
    return {
        "id": f"{role}-{number}",
        "role": role,
        "parts": [{"type": "text", "text": f"{role} {number}. {text}"}],
    }


def history(turns):
    return [said(role, number) for number in range(turns) for role in ("user", "assistant")][:-1]


def text_of(message):
    return message["parts"][0]["text"]


@pytest.fixture
def url():
    with run_service(window=8_000, store="memory://") as at:
        yield at


def fold(url, **body):
    answer = httpx2.post(f"{url}/api/fold", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_fresh_history_is_sent_as_it_is(url):
    messages = history(2)
    assert fold(url, messages=messages) == {
        "messages": messages,
        "compactionState": None,
        "compacted": False,
        "warnings": [],
    }


def test_a_long_one_is_folded_and_the_state_says_from_where_on(url):
    messages = history(12)
    found = fold(url, messages=messages)
    state = found["compactionState"]
    assert found["compacted"]
    assert state["version"] == 1
    assert state["compactedAt"].endswith("Z")
    assert state["summaryMessage"]["id"] == "compaction-summary-v1"
    assert state["summaryMessage"]["role"] == "user"
    start = state["apiStartIndex"]
    assert state["summarizedRange"] == {"fromIndex": 0, "toIndex": start - 1, "messageCount": start}
    assert 0 < start < len(messages)
    assert [text_of(one) for one in found["messages"][1:]] == [text_of(one) for one in messages[start:]]
    assert text_of(found["messages"][0]) == text_of(state["summaryMessage"])


def test_the_state_goes_on_with_the_next_turn_and_a_second_fold_stacks(url):
    messages = history(12)
    first = fold(url, messages=messages)["compactionState"]
    messages += [said("assistant", 99), said("user", 100)]
    again = fold(url, messages=messages, compactionState=first)
    if not again["compacted"]:
        assert again["compactionState"] == first
        assert text_of(again["messages"][0]) == text_of(first["summaryMessage"])
    state = first
    for number in range(101, 140):
        messages += [said("assistant", number), said("user", number)]
        state = fold(url, messages=messages, compactionState=state)["compactionState"]
        if state["version"] > 1:
            break
    assert state["version"] == 2
    assert state["summaryMessage"]["id"] == "compaction-summary-v2"
    assert state["apiStartIndex"] > first["apiStartIndex"]


def test_what_the_user_marked_stays_word_for_word_from_fold_to_fold(url):
    messages, state = [said("user", 0, "<keep>The crane is B-48151.</keep>"), *history(12)[1:]], None
    for number in range(100, 140):
        state = fold(url, messages=messages, compactionState=state)["compactionState"]
        (block,) = text_of(state["summaryMessage"]).split("<kept-words ")[1:]
        assert block.split("\n")[1] == "The crane is B-48151."
        if state["version"] > 1:
            break
        messages += [said("assistant", number), said("user", number)]
    assert state["version"] == 2


def test_a_system_message_stands_before_all_and_the_index_counts_it(url):
    messages = [{"id": "s", "role": "system", "parts": [{"type": "text", "text": "You help."}]}, *history(12)]
    state = fold(url, messages=messages)["compactionState"]
    plain = fold(url, messages=messages[1:])["compactionState"]
    assert state["apiStartIndex"] == plain["apiStartIndex"] + 1


def test_snake_case_is_taken_and_the_answer_is_camel_case(url):
    messages = history(12)
    state = fold(url, messages=messages)["compactionState"]
    snake = {
        "version": state["version"],
        "compacted_at": state["compactedAt"],
        "summary_message": state["summaryMessage"],
        "api_start_index": state["apiStartIndex"],
        "summarized_range": {"from_index": 0, "to_index": 1, "message_count": 2},
    }
    found = fold(url, messages=messages, compaction_state=snake, api_messages=None)
    assert found["compactionState"]["apiStartIndex"] == state["apiStartIndex"]
    assert found["warnings"] == []


def test_what_the_client_believes_to_be_sent_does_not_count(url):
    found = fold(url, messages=history(2), apiMessages=[said("user", 7)])
    assert [text_of(one) for one in found["messages"]] == [text_of(one) for one in history(2)]
    assert "apiMessages" in found["warnings"][0]


@pytest.mark.parametrize(
    "state", [5, [], {}, {"apiStartIndex": "x"}, {"apiStartIndex": 2, "summaryMessage": {}}]
)
def test_a_state_that_cannot_be_read_is_a_warning_and_all_is_sent(url, state):
    found = fold(url, messages=history(2), compactionState=state)
    assert len(found["messages"]) == 3
    assert "is invalid" in found["warnings"][0]


def test_with_fewer_messages_than_before_the_index_is_worked_out_anew(url):
    state = fold(url, messages=history(12))["compactionState"]
    found = fold(url, messages=history(3), compactionState=state)
    assert found["compactionState"]["apiStartIndex"] == 4
    assert text_of(found["messages"][-1]) == text_of(history(3)[-1])
    assert "fewer" in found["warnings"][0]


def test_it_can_be_asked_for_with_instructions(url):
    found = fold(url, messages=history(8), compact=True, instructions="the tests")
    assert found["compacted"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"messages": 5}', "messages"),
        (b'{"messages": [5]}', "message 0"),
        (b'{"messages": [], "policy": "nope"}', "no policy"),
        (b'{"messages": [], "window": -1}', "window"),
        (b'{"messages": ' + b"[" * 5_000, "cannot be read"),
    ],
)
def test_what_is_wrong_is_told_as_a_problem(url, body, words):
    answer = patient.post(f"{url}/api/fold", content=body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]


# ---- turns


def events(answer):
    return chunks_of(answer.text)


def of_kind(found, kind):
    return [one for one in found if one["type"] == kind]


def turn(url, messages, path="turn", **body):
    given = {"messages": messages, "model": "openai:scripted", **body}
    return httpx2.post(f"{url}/api/{path}", json=given, headers={"authorization": "Bearer k"}, timeout=60)


def test_a_turn_streams_its_reply():
    with run_gateway(["It is done."], window=8_000) as (url, model):
        answer = turn(url, history(1), system="You help.")
    found = events(answer)
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert [one["type"] for one in found if one["type"] != "text-delta"] == [
        "start",
        "start-step",
        "text-start",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert "".join(one["delta"] for one in found if one["type"] == "text-delta") == "It is done."
    assert model.requests[0].messages[0] == {"role": "system", "content": "You help."}


def folded_to(messages, state):
    """The number of messages of a folded view: what is kept, and the checkpoint, with which a user's message is one."""
    kept = messages[state["apiStartIndex"] :]
    return len(kept) + (kept[0]["role"] != "user")


def test_a_compaction_stands_before_the_reply_of_its_turn():
    with run_gateway(["Go on."], window=8_000) as (url, model):
        found = events(turn(url, history(12)))
    assert [one["type"] for one in found[:3]] == ["start", "data-compaction-started", "data-compaction"]
    assert found[1]["transient"]
    state = found[2]["data"]
    assert state["version"] == 1
    sent = model.requests[0].messages
    assert len(sent) == folded_to(history(12), state)


def test_the_chunk_of_moldables_proposal_is_sent_where_the_client_asks_for_it():
    with run_gateway(["Go on."], window=8_000) as (url, _):
        answer = turn(url, history(12), chunks="moldable")
    (told,) = [
        json.loads(line.removeprefix("data: "))
        for line in answer.text.splitlines()
        if line.startswith('data: {"type":"compaction"')
    ]
    assert told["compaction"]["version"] == 1


def test_without_a_state_the_newest_that_the_messages_carry_counts():
    messages = history(12)
    with run_gateway(["Go on.", "And on."], window=8_000) as (url, model):
        (told,) = of_kind(events(turn(url, messages)), "data-compaction")
        reply = {"id": "r", "role": "assistant", "parts": [told, {"type": "text", "text": "Go on."}]}
        found = events(turn(url, [*messages, reply, said("user", 99, "Short.")]))
        assert not of_kind(found, "data-compaction")
        assert len(model.requests[1].messages) == folded_to(messages, told["data"]) + 2
        assert "apiStartIndex" not in str(model.requests[1].messages)
        refolded = events(turn(url, [*messages, reply, said("user", 99, "Short.")], compactionState=None))
        assert of_kind(refolded, "data-compaction")


def test_what_the_text_says_of_its_version_is_what_the_state_says():
    messages, state = history(12), None
    with run_service(window=8_000, store="memory://") as url:
        for number in range(1, 4):
            found = fold(url, messages=messages, compactionState=state, compact=True)
            state = found["compactionState"]
            assert state["version"] == number
            assert f"Checkpoint {number} of this conversation." in text_of(state["summaryMessage"])
            assert state["summaryMessage"]["id"] == f"compaction-summary-v{number}"
            assert found["messages"] == [state["summaryMessage"], *messages[state["apiStartIndex"] :]]
            messages = [*messages, *[{**one, "id": f"{number}-{one['id']}"} for one in history(8)]]


def with_result(turns, size):
    """A short history, of which tool results take nearly all."""
    part = {"type": "tool-read", "toolCallId": "c", "state": "output-available", "input": {"path": "a.py"}}
    found = []
    for number in range(turns):
        found.append(said("user", number, "Read the next file."))
        output = f"file {number}: " + "word " * size
        parts = [{**part, "toolCallId": f"c{number}", "output": output}, {"type": "text", "text": "Read."}]
        found.append({"id": f"a{number}", "role": "assistant", "parts": parts})
    return [*found, said("user", turns, "Go on.")]


@pytest.mark.parametrize("messages", [with_result(3, 4_000), [*history(3), said("user", 9, FILLER * 16)]])
def test_what_moldables_own_count_overlooks_is_folded_before_it_overflows(messages):
    with run_gateway(["Go on."], window=8_000) as (url, model):
        found = fold(url, messages=messages)
        assert found["compacted"]
        told = events(turn(url, messages))
    assert told[-1]["type"] == "finish"
    assert of_kind(told, "data-compaction")
    assert len(model.requests) == 1


def test_what_overflows_all_the_same_is_folded_and_asked_again():
    messages = with_result(4, 1_200)
    with run_gateway(Scripted(["Go on."], window=4_000), window=20_000) as (url, model):
        told = events(turn(url, messages))
    assert told[-1]["type"] == "finish"
    assert of_kind(told, "data-compaction")
    assert len(model.requests) == 2


def test_what_cannot_be_made_to_fit_is_warned_of():
    with run_service(window=2_000, store="memory://") as url:
        found = fold(url, messages=[said("user", 1, FILLER * 12)], system="Never guess. " * 900)
    assert "fit" in " ".join(found["warnings"])


def test_a_summariser_that_is_dead_is_a_warning_in_the_answer():
    def says(asked):
        return Refusal(500, "no summary today") if len(asked.messages) == 2 else "Go on."

    with run_gateway(says, window=8_000, summaries="upstream") as (url, _):
        folded = turn(url, history(12), path="fold").json()
        told = events(turn(url, history(12)))
    assert "no summary today" in " ".join(folded["warnings"])
    assert "no summary today" in " ".join(one["data"]["text"] for one in of_kind(told, "data-warning"))
    assert "".join(one.get("delta", "") for one in told) == "Go on."


def test_system_messages_at_the_head_are_sent():
    rule = {"id": "s", "role": "system", "parts": [{"type": "text", "text": "Answer in Latin."}]}
    with run_gateway(["Ita."], window=8_000) as (url, model):
        events(turn(url, [rule, *history(1)], system="You help."))
        assert fold(url, messages=[rule, *history(12)])["messages"][0] == rule
    assert model.requests[0].messages[0]["content"] == "You help.\n\nAnswer in Latin."


@pytest.mark.parametrize("name", ["openai:own", None])
def test_the_services_own_model_is_asked_where_the_service_was_told(name, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "service-key")
    with run_gateway(["It is done."], window=8_000, model="openai:own") as (url, model):
        found = events(turn(url, history(12), model=name))
    assert found[-1]["type"] == "finish"
    assert of_kind(found, "data-compaction")  # by the window that the service was told
    assert model.requests[0].body["model"] == "own"


@pytest.mark.parametrize(
    "name",
    ["openai/gpt-5.2", "openrouter/minimax/minimax-m2.1", "openrouter/google/gemini-3-flash-preview"],
)
def test_models_as_moldable_names_them_are_known(name):
    with run_gateway(["It is done."], window=8_000) as (url, model):
        found = events(turn(url, history(1), model=name))
        assert fold(url, messages=history(1), model=name)["warnings"] == []
    assert found[-1]["type"] == "finish"
    assert model.requests[0].body["model"] == name.partition("/")[2]


@pytest.mark.parametrize(
    ("answer", "told"), [(Answer(stop="refused"), "empty reply"), (Refusal(401, "not today"), "not today")]
)
def test_a_reply_of_nothing_and_a_refusal_are_errors_of_the_stream(answer, told):
    with run_gateway([answer], window=8_000) as (url, _):
        found = events(turn(url, history(1)))
    assert found[-1]["type"] == "error"
    assert told in found[-1]["errorText"]


def test_calls_and_thoughts_are_told():
    reply = Answer(text="I read it.", thinking="Hm.", calls=call("read", path="a.py").calls)
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    with run_gateway([reply], window=8_000) as (url, _):
        found = events(turn(url, history(1), tools=tools))
    (told,) = [one for one in found if one["type"] == "tool-input-available"]
    assert (told["toolName"], told["input"]) == ("read", {"path": "a.py"})
    assert found[-1]["messageMetadata"]["finishReason"] == "tools"


@pytest.mark.parametrize("model", ["nobody", "openai-compatible:x@http://10.0.0.1/v1", "openai:", None])
def test_where_a_model_is_the_settings_say_alone(url, model):
    answer = turn(url, history(1), model=model)
    assert answer.status_code == 400
    assert "model" in answer.json()["detail"]


def test_a_token_is_needed_where_tokens_are_set():
    with run_service(store="memory://", tokens={"token-for-tests-1": "a"}) as url:
        assert patient.post(f"{url}/api/fold", json={"messages": []}).status_code == 401
        headers = {"authorization": "Bearer token-for-tests-1"}
        assert patient.post(f"{url}/api/fold", json={"messages": []}, headers=headers).status_code == 200
