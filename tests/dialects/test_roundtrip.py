"""Properties of whole conversations: nothing changes within a dialect, nothing that counts between two."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.conversations import anthropic_chats, openai_chats

from foldline.core.log.messages import Text
from foldline.dialects import decode_all, detect, get
from foldline.dialects.anthropic.write import OPENING

CHATS = {"openai-chat": openai_chats(), "anthropic": anthropic_chats()}
FIXED = {"openai-chat": openai_chats(any_ids=False), "anthropic": anthropic_chats()}
OTHER = {"openai-chat": "anthropic", "anthropic": "openai-chat"}
NAMES = sorted(CHATS)


def decoded(name, messages):
    return decode_all(messages, name)


def rendered(name, messages):
    return get(name).render([(message, ()) for message in messages])


def converted(name, messages):
    """A native list in the other dialect, its system prompt put back as a message."""
    out = rendered(OTHER[name], decoded(name, messages))
    return out.messages, out.system


def texts(messages, *roles):
    return [
        part.text.strip()
        for message in messages
        for part in message.parts
        if message.role in roles
        and isinstance(part, Text)
        and part.text.strip()
        and not part.text.startswith("[")
    ]


def calls(messages):
    return [(call.id, call.name, call.arguments) for message in messages for call in message.calls]


def results(messages):
    """Ids and texts, without the placeholders of media and of empty errors."""
    found = []
    for result in (result for message in messages for result in message.results):
        kept = [
            part.text for part in result.content if isinstance(part, Text) and not part.text.startswith("[")
        ]
        found.append((result.call_id, "\n".join(kept).strip()))
    return sorted(found)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_generated_conversations_are_valid(name, data):
    assert get(name).validate(data.draw(CHATS[name])) == []


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_same_dialect_gives_back_what_it_took(name, data):
    messages = data.draw(CHATS[name])
    out = rendered(name, decoded(name, messages))
    assert out.messages == messages
    assert out.system is None
    assert out.warnings == ()
    assert [json.dumps(message) for message in out.messages] == [json.dumps(message) for message in messages]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_a_valid_list_is_valid_in_the_other_dialect(name, data):
    messages, system = converted(name, data.draw(CHATS[name]))
    assert get(OTHER[name]).validate(messages, system) == []


def spoken_by(message):
    """The message with its speaker's name before its first text, as a dialect without names has it."""
    at = next((at for at, part in enumerate(message.parts) if isinstance(part, Text)), None)
    if message.name is None or at is None:
        return message
    named = Text(f"{message.name}: {message.parts[at].text}")
    return msgspec.structs.replace(message, parts=(*message.parts[:at], named, *message.parts[at + 1 :]))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_there_and_back_keeps_texts_calls_and_results(name, data):
    messages = data.draw(FIXED[name])
    before = decoded(name, messages)
    there, _ = converted(name, messages)
    back, system = converted(OTHER[name], there)
    after = decoded(name, back)
    assert get(name).validate(back, system) == []
    assert texts(after, "assistant") == texts(before, "assistant")
    spoken = texts([spoken_by(message) for message in before], "user")
    assert [text for text in texts(after, "user") if text in spoken] == spoken
    assert [c[:2] for c in calls(after)] == [c[:2] for c in calls(before)]
    wrapped = [{"input": a} if isinstance(a, str) else a for _, _, a in calls(before)]
    assert [a for _, _, a in calls(after)] == wrapped
    assert results(after) == results(before)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_longer_list_converts_to_a_longer_list(name, data):
    """Ids and texts of what was there already do not change when a message is appended."""
    messages = data.draw(CHATS[name])
    dialect = get(OTHER[name])
    whole = decoded(name, messages)
    longer = [json.dumps(part) for part in _flat(dialect.render([(m, ()) for m in whole]).messages)]
    for end in range(1, len(whole)):
        begun = dialect.render([(m, ()) for m in whole[:end]]).messages
        if begun == [{"role": "user", "content": OPENING}]:  # nothing was said yet
            continue
        shorter = [json.dumps(part) for part in _flat(begun)]
        assert longer[: len(shorter)] == shorter


def _flat(messages):
    """Role and block, one by one: turns may grow at their end."""
    for message in messages:
        content = message["content"]
        for block in content if isinstance(content, list) else [content]:
            yield message["role"], {"type": "text", "text": block} if isinstance(block, str) else block
        for call in message.get("tool_calls", ()):
            yield message["role"], call


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_detect_reads_the_content(name, data):
    messages = data.draw(CHATS[name])
    recognised = any(get(name).recognises(message) for message in messages)
    assert detect(messages) == (name if recognised else "openai-chat")
