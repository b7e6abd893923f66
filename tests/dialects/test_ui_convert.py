"""Conversations of UI messages: nothing changes within the dialect, nothing that counts between any two."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.conversations import ARGUMENTS, NAMES, SOLID, anthropic_chats, openai_chats
from tests.dialects.test_roundtrip import calls, results, texts
from tests.dialects.ui_samples import STEP, file, reasoning, say

from foldline.dialects import decode_all, get, names
from foldline.dialects.dialect import lost_fields
from foldline.dialects.values import Losses

DIALECT = "ui-message"
VERCEL = get(DIALECT)
OTHERS = [name for name in names() if name != DIALECT]
CHATS = {"openai-chat": openai_chats(), "anthropic": anthropic_chats()}


@st.composite
def ui_chats(draw, *, any_parts=True):
    """A valid list of UI messages; with `any_parts` also those that only this dialect has."""
    messages, count = [], 0
    for number in range(draw(st.integers(1, 5))):
        parts = draw(st.lists(SOLID.map(say) | st.just(file()), min_size=1, max_size=2))
        role = draw(st.sampled_from(["user", "assistant", "assistant"])) if number else "user"
        if role == "assistant":
            parts = []
            for _ in range(draw(st.integers(1, 3))):
                size = draw(st.integers(0, 3))
                parts += draw(_step([f"c{count + n}" for n in range(size)], any_parts))
                count += size
        messages.append({"id": f"m{number}", "role": role, "parts": parts})
    return messages


@st.composite
def _step(draw, ids, any_parts):
    odd = st.sampled_from(
        [{"type": "data-x", "data": 1}, {"type": "source-url", "sourceId": "s", "url": "u"}, reasoning("")]
    )
    thought = st.sampled_from([reasoning("hm", signature="s"), reasoning("hm")])
    head = [STEP] if any_parts or ids else []
    words = draw(st.lists(SOLID.map(str.strip).map(say), min_size=0 if ids else 1, max_size=2))
    tools = []
    for call_id in ids:
        part = {"type": f"tool-{draw(NAMES)}", "toolCallId": call_id, "input": draw(ARGUMENTS)}
        if draw(st.booleans()):
            tools.append({**part, "state": "output-error", "errorText": draw(SOLID)})
        else:
            tools.append({**part, "state": "output-available", "output": draw(st.just("") | SOLID)})
    thoughts = draw(st.lists(thought, max_size=1)) if any_parts else []
    return [*head, *thoughts, *words, *tools, *(draw(st.lists(odd, max_size=2)) if any_parts else [])]


def rendered(messages, name):
    return get(name).render([(message, ()) for message in messages], whole=True)


@given(messages=ui_chats())
@settings(max_examples=15, deadline=None)
def test_the_same_dialect_gives_back_what_it_took(messages):
    assert VERCEL.validate(messages) == []
    out = rendered(decode_all(messages), DIALECT)
    assert (out.messages, out.system, out.warnings) == (messages, None, ())


@pytest.mark.parametrize("name", OTHERS)
@given(messages=ui_chats())
@settings(max_examples=15, deadline=None)
def test_a_valid_list_is_valid_elsewhere(name, messages):
    out = rendered(decode_all(messages), name)
    assert not out.messages or get(name).validate(out.messages, out.system) == []


@pytest.mark.parametrize("name", OTHERS)
@given(messages=ui_chats(any_parts=False))
@settings(max_examples=15, deadline=None)
def test_there_and_back_keeps_texts_calls_and_results(name, messages):
    before = decode_all(messages)
    there = rendered(before, name)
    back = rendered(decode_all(there.messages, name), DIALECT)
    assert VERCEL.validate(back.messages, back.system) == []
    after = decode_all(back.messages)
    assert texts(after, "assistant") == texts(before, "assistant")
    assert [text for text in texts(after, "user") if text in texts(before, "user")] == texts(before, "user")
    assert calls(after) == calls(before)
    assert results(after) == results(before)


@pytest.mark.parametrize("name", CHATS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_valid_lists_of_others_are_valid_here(name, data):
    before = decode_all(data.draw(CHATS[name]), name)
    out = rendered(before, DIALECT)
    assert not out.messages or VERCEL.validate(out.messages, out.system) == []
    after = decode_all(out.messages, DIALECT)
    assert texts(after, "assistant") == texts(before, "assistant")
    assert [c[1:] for c in calls(after)] == [c[1:] for c in calls(before)]
    assert len({message["id"] for message in out.messages}) == len(out.messages)


@pytest.mark.parametrize("name", CHATS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_a_longer_list_converts_to_a_longer_list(name, data):
    """What was there already does not change when a message is appended, but for results that join their calls."""
    whole = decode_all(data.draw(CHATS[name]), name)
    longer = rendered(whole, DIALECT).messages
    for end in range(1, len(whole)):
        for old, new in zip(rendered(whole[:end], DIALECT).messages, longer, strict=False):
            assert [part["type"] for part in old["parts"]] == [part["type"] for part in new["parts"]]
            assert (old["id"], old["role"]) == (new["id"], new["role"])


@pytest.mark.parametrize("name", ["openai-chat", "anthropic", DIALECT])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_sessions_that_changed_their_dialect_are_valid(name, data):
    """A log whose messages came as UI messages, then from a provider, then as UI messages again."""
    first, last = data.draw(ui_chats()), data.draw(ui_chats())
    other = data.draw(st.sampled_from(sorted(CHATS)))
    middle = decode_all(data.draw(CHATS[other]), other)
    middle = [message for message in middle if message.role not in ("system", "developer")]
    out = rendered([*decode_all(first), *middle, *decode_all(last)], name)
    assert get(name).validate(out.messages, out.system) == []


def test_every_loss_is_named_in_every_dialect():
    parts = [
        {"type": "source-url", "sourceId": "s", "url": "u"},
        {"type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": "t"},
        {"type": "data-chart", "data": 1},
        {"type": "custom", "kind": "openai.compaction"},
        say("x", providerMetadata={"openai": {"itemId": "i"}}),
    ]
    first = {"id": "u", "role": "user", "parts": [say("hi")]}
    message = {"id": "m", "role": "assistant", "metadata": {"a": 1}, "parts": [STEP, *parts]}
    for name in OTHERS:
        lost = "\n".join(rendered(decode_all([first, message]), name).warnings)
        for kind in ("step-start", "source-url", "source-document", "data-chart", "custom"):
            assert f"ui-message {kind} left out (1)" in lost
        for field in ("metadata", "providerMetadata"):
            assert f"field {field!r} left out (1)" in lost


def test_a_message_without_fields_of_its_own_loses_none():
    losses = Losses()
    lost_fields(decode_all([{"id": "u", "role": "user", "parts": [say("hi")]}])[0].native, losses)
    assert losses.lines() == ()
