"""Recorded sessions: as they were within a dialect, valid after a conversion where they were valid before."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
from tests.dialects.ui_samples import STEP

import foldline
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.dialects import decode_all, detect, get
from foldline.loading import from_messages

ROOT = Path(os.environ.get("FOLDLINE_CORPUS") or Path(__file__).parents[3] / "shared" / "data")
PLAIN = sorted(ROOT.glob("sessions/*/*.jsonl.gz"))
SAMPLE = [path for path in PLAIN if hashlib.sha256(path.name.encode()).digest()[0] < 16]
NATIVE = sorted(ROOT.glob("native/claude-code-*.jsonl"))

pytestmark = pytest.mark.skipif(
    not PLAIN, reason="no recorded sessions beside the checkout (../shared/data, or FOLDLINE_CORPUS)"
)


def rendered(name, messages):
    return get(name).render([(message, ()) for message in messages])


def chat_of(path):
    """A session of the plain form as Chat Completions messages."""
    messages = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            role, said = line.get("role"), line.get("text")
            if role in ("user", "system"):
                messages.append({"role": role, "content": said})
            elif role == "tool":
                messages.append({"role": "tool", "tool_call_id": line["call_id"], "content": said})
            elif role == "assistant":
                messages.append({"role": "assistant", "content": said, **calls_of(line)})
    return messages


def calls_of(line):
    calls = [
        {
            "id": c["id"],
            "type": "function",
            "function": {"name": c["name"], "arguments": json.dumps(c["args"])},
        }
        for c in line.get("calls") or ()
    ]
    return {"tool_calls": calls} if calls else {}


def claude_of(path):
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [line["message"] for line in lines if isinstance(line.get("message"), dict)]


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.name)
def test_plain_sessions(path):
    messages = chat_of(path)
    read = decode_all(messages)
    assert rendered("openai-chat", read).messages == messages
    there = rendered("anthropic", read)
    back = rendered("openai-chat", decode_all(there.messages, "anthropic"))
    problems = get("openai-chat").validate(messages), get("anthropic").validate(there.messages, there.system)
    assert problems[1] == [] or problems[0] != []
    assert get("openai-chat").validate(back.messages) == [] or problems[1] != []


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.name)
def test_claude_code_messages(path):
    messages = claude_of(path)
    assert detect(messages) == "anthropic"
    read = decode_all(messages)
    out = rendered("anthropic", read)
    assert (out.messages, out.warnings) == (messages, ())
    pairing = {problem.rule for problem in get("anthropic").validate(messages)} - {"text-empty"}
    converted = {
        problem.rule for problem in get("openai-chat").validate(rendered("openai-chat", read).messages)
    }
    assert converted == pairing


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.name)
def test_claude_code_replies_carry_usage(path):
    replies = [get("anthropic").decode_reply(m) for m in claude_of(path) if m["role"] == "assistant"]
    assert all(reply.model for reply in replies)
    assert sum(reply.usage.total for reply in replies if reply.usage) > 100_000
    assert all(set(body) == {"role", "content"} for body in rendered("anthropic", replies).messages)


def whole_turns(messages):
    """UI messages as the AI SDK keeps them: all steps of a turn in one."""
    turns = []
    for message in messages:
        if turns and turns[-1]["role"] == message["role"] == "assistant":
            turns[-1]["parts"] += [STEP, *message["parts"]]
        else:
            turns.append(message)
    return turns


@pytest.mark.parametrize("path", SAMPLE[::3], ids=lambda path: path.name)
def test_plain_sessions_as_ui_messages(path):
    """Whole turns in one message fold to a fifth, stay valid, and split into the same calls and results again."""
    loaded = from_messages(chat_of(path), OFFLINE)
    items = native_items(ViewState(loaded.entries, counter=OFFLINE).view())
    chat = decode_all(get("openai-chat").render(items, whole=True).messages, "openai-chat")
    turns = whole_turns(get("ui-message").render(items, whole=True).messages)
    assert get("ui-message").validate(turns) == []
    read = decode_all(turns)
    back = decode_all(rendered("openai-chat", read).messages, "openai-chat")
    assert [call for m in back for call in m.calls] == [call for m in chat for call in m.calls]
    told = [(result.call_id, result.text) for m in back for result in m.results]
    assert sorted(told) == sorted((result.call_id, result.text) for m in chat for result in m.results)
    target = max(2_000, sum(message_tokens(message, OFFLINE) for message in read) // 5)
    done = foldline.compact(turns, target=target)
    assert done.view_tokens <= target
    assert get("ui-message").validate(done.messages, done.system) == []
