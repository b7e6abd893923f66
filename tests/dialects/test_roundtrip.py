"""Properties of whole conversations: nothing changes within a dialect, nothing that counts between two."""

# pyright: basic

import json
from itertools import permutations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.conversations import (
    anthropic_chats,
    converse_chats,
    gemini_chats,
    item_lists,
    openai_chats,
    ui_chats,
)

from foldline.core.log.codec import encode
from foldline.core.log.messages import Text
from foldline.dialects import decode_all, detect, get
from foldline.dialects.writer import OPENING

CHAT, CLAUDE, ITEMS = "openai-chat", "anthropic", "openai-responses"
VERCEL, CONVERSE, GEMINI = "ui-message", "bedrock-converse", "gemini"
LISTS = {
    CHAT: openai_chats(),
    CLAUDE: anthropic_chats(),
    ITEMS: item_lists(),
    VERCEL: ui_chats(),
    CONVERSE: converse_chats(),
    GEMINI: gemini_chats(),
}
# with ids that every dialect takes, and without parts that only one has
PLAIN = LISTS | {
    CHAT: openai_chats(any_ids=False),
    VERCEL: ui_chats(any_parts=False),
    GEMINI: gemini_chats(any_ids=False),
}
PAIRS = list(permutations(LISTS, 2))
RETURNS = [pair for pair in PAIRS if pair[0] in (ITEMS, VERCEL) or not {ITEMS, VERCEL} & {*pair}]


def rendered(messages, name, *, whole=False):
    return get(name).render([(message, ()) for message in messages], whole=whole)


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
    """Ids, names and arguments; those that are text as they are wrapped where a dialect takes only objects."""
    return [
        (call.id, call.name, {"input": call.arguments} if isinstance(call.arguments, str) else call.arguments)
        for message in messages
        for call in message.calls
    ]


def results(messages):
    """Ids and texts, without the placeholders of media and of empty errors."""
    found = []
    for result in (result for message in messages for result in message.results):
        kept = [
            part.text for part in result.content if isinstance(part, Text) and not part.text.startswith("[")
        ]
        found.append((result.call_id, "\n".join(kept).strip()))
    return sorted(found)


@pytest.mark.parametrize("name", LISTS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_same_dialect_gives_back_what_it_took(name, data):
    messages = data.draw(LISTS[name])
    assert get(name).validate(messages) == []
    out = rendered(decode_all(messages, name), name)
    assert (out.messages, out.system, out.warnings) == (messages, None, ())
    assert [json.dumps(message) for message in out.messages] == [json.dumps(message) for message in messages]


@pytest.mark.parametrize(("name", "into"), PAIRS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_valid_list_is_valid_in_every_dialect_and_says_the_same(name, into, data):
    before = decode_all(data.draw(LISTS[name]), name)
    out = rendered(before, into, whole=True)
    assert not out.messages or get(into).validate(out.messages, out.system) == []
    after = decode_all(out.messages, into)
    assert texts(after, "assistant") == texts(before, "assistant")
    assert [arguments for *_, arguments in calls(after)] == [arguments for *_, arguments in calls(before)]


def spoken_by(message):
    """The message with its speaker's name before its first text, as a dialect without names has it."""
    at = next((at for at, part in enumerate(message.parts) if isinstance(part, Text)), None)
    if message.name is None or at is None:
        return message
    named = Text(f"{message.name}: {message.parts[at].text}")
    return msgspec.structs.replace(message, parts=(*message.parts[:at], named, *message.parts[at + 1 :]))


@pytest.mark.parametrize(("name", "by"), RETURNS)
@given(data=st.data())
@settings(deadline=None)
def test_there_and_back_keeps_texts_calls_and_results(name, by, data):
    before = decode_all(data.draw(PLAIN[name]), name)
    there = rendered(before, by)
    back = rendered(decode_all(there.messages, by), name)
    assert get(name).validate(back.messages, back.system) == []
    after = decode_all(back.messages, name)
    assert texts(after, "assistant") == texts(before, "assistant")
    spoken = texts([spoken_by(message) for message in before], "user")
    assert [text for text in texts(after, "user") if text in spoken] == spoken
    assert calls(after) == calls(before)
    assert results(after) == results(before)


@pytest.mark.parametrize(("name", "into"), [(CHAT, CLAUDE), (CLAUDE, CHAT), (CHAT, CONVERSE)])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_longer_list_converts_to_a_longer_list(name, into, data):
    """Ids and texts of what was there already do not change when a message is appended."""
    whole = decode_all(data.draw(LISTS[name]), name)
    longer = [encode(part) for part in _flat(rendered(whole, into).messages)]
    for end in range(1, len(whole)):
        begun = rendered(whole[:end], into).messages
        if len(begun) == 1 and OPENING in str(begun):  # nothing was said yet
            continue
        shorter = [encode(part) for part in _flat(begun)]
        assert longer[: len(shorter)] == shorter


def _flat(messages):
    """Role and block, one by one: turns may grow at their end."""
    for message in messages:
        content = message["content"]
        for block in content if isinstance(content, list) else [content]:
            yield message["role"], {"type": "text", "text": block} if isinstance(block, str) else block
        for call in message.get("tool_calls", ()):
            yield message["role"], call


@pytest.mark.parametrize("name", [CHAT, CLAUDE])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_a_longer_list_converts_to_more_ui_messages(name, data):
    """What was there already does not change when a message is appended, but for results that join their calls."""
    whole = decode_all(data.draw(LISTS[name]), name)
    longer = rendered(whole, VERCEL, whole=True).messages
    assert len({message["id"] for message in longer}) == len(longer)
    for end in range(1, len(whole)):
        for old, new in zip(rendered(whole[:end], VERCEL, whole=True).messages, longer, strict=False):
            assert [part["type"] for part in old["parts"]] == [part["type"] for part in new["parts"]]
            assert (old["id"], old["role"]) == (new["id"], new["role"])


@pytest.mark.parametrize("name", [CHAT, CLAUDE, VERCEL, CONVERSE, GEMINI])
@given(data=st.data())
@settings(deadline=None)
def test_sessions_that_changed_their_dialect_are_valid_in_each(name, data):
    """A log whose messages came from one provider, then from another, then perhaps from the first again."""
    messages = []
    for dialect in data.draw(
        st.lists(st.sampled_from([CHAT, CLAUDE, VERCEL, GEMINI]), min_size=2, max_size=3)
    ):
        part = decode_all(data.draw(LISTS[dialect]), dialect)
        if dialect == CLAUDE == name and any(_ids(messages) & _ids([m]) for m in part):
            continue  # two native lists that share ids were never one valid request
        messages += [m for m in part if not messages or m.role not in ("system", "developer")]
    out = rendered(messages, name, whole=True)
    assert not out.messages or get(name).validate(out.messages, out.system) == []


def _ids(messages):
    return {call.id for message in messages for call in message.calls if message.native.dialect == CLAUDE}


@pytest.mark.parametrize("name", [CHAT, CLAUDE, CONVERSE])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_detect_reads_the_content(name, data):
    messages = data.draw(LISTS[name])
    recognised = any(get(name).recognises(message) for message in messages)
    assert detect(messages) == (name if recognised else CHAT)
