"""While nothing has to be folded, a client and its model see no difference: the same bytes up, the same down."""

from __future__ import annotations

import gzip
import json
import random

import httpx2
import pytest
from tests.service.upstream import Prepared, served_upstream
from tests.support import corpus

from foldline.dialects import get
from foldline.dialects.base import decode_all
from foldline.service.gateway.upstream import HOP_BY_HOP

pytestmark = pytest.mark.slow

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
EVENTS = "text/event-stream; charset=utf-8"
WORDS = "the build fails in parser.py at line 40 — naïve “quotes” 日本語 \u2028 \\ud83d 🎉 \t".split(" ")
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


class Client:
    """Sends bytes, and compares what passed on both sides."""

    def __init__(self, gateway, model):
        self.http = httpx2.Client(base_url=gateway, timeout=60)
        self.model = model
        self.count = 0

    def exchange(self, path, body, answer, headers=()):
        """One request; what the model got and what came back must be what was given."""
        case = str(self.count)
        self.count += 1
        self.model.prepared[case] = answer
        given = [
            ("content-type", "application/json"),
            ("authorization", "Bearer k"),
            *headers,
            ("x-case", case),
        ]
        with self.http.stream("POST", path, content=body, headers=given) as response:
            came = b"".join(response.iter_raw())
        (received,) = self.model.received.pop(case)
        assert received.body == body
        assert received.path == path
        for name, value in given:
            if name.lower() not in HOP_BY_HOP and name.lower() != "accept-encoding":
                assert (name.lower(), value) in received.headers
        assert came == b"".join(answer.pieces)
        assert response.status_code == answer.status
        kept = [(name.lower(), value) for name, value in response.headers.multi_items()]
        sent = [(name.lower(), value) for name, value in answer.headers if name != "content-length"]
        added = {"transfer-encoding", "content-length", "x-request-id"} - {name for name, _ in sent}
        shared = [(name, value) for name, value in kept if name not in added]
        shown = dict(sent).get("content-type", "html") in ("html", "text/html")  # no page on our origin
        inert = [("content-security-policy", "sandbox"), ("x-content-type-options", "nosniff")]
        assert shared == [*sent, *(inert if shown else [])]


@pytest.fixture
def client():
    with served_upstream(store="memory://", window=2_000_000) as (at, model):
        client = Client(at, model)
        with client.http:
            yield client


def words(some, most=40):
    return " ".join(some.choice(WORDS) for _ in range(some.randint(1, most)))


def conversation(some, dialect):
    """A conversation with calls, results and images in one of the three APIs' forms."""
    found = []
    for turn in range(some.randint(1, 4)):
        found.append(question(some, dialect))
        if some.random() < 0.5:
            found += called(some, dialect, f"call_{turn}_{some.randint(0, 999)}")
        found.append({"role": "assistant", "content": words(some)})
    return [*found, question(some, dialect)]


def question(some, dialect):
    text = words(some)
    if some.random() < 0.6:
        return {"role": "user", "content": text}
    if dialect == "openai-chat":
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}", "detail": "low"}}
        return {"role": "user", "content": [{"type": "text", "text": text}, image]}
    if dialect == "openai-responses":
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}
        return {"role": "user", "content": [{"type": "input_text", "text": text}, image]}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
    mark = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
    return {"role": "user", "content": [mark, image]}


def called(some, dialect, name):
    given, shown = {"path": words(some, 3), "n": some.random()}, words(some)
    if dialect == "openai-chat":
        function = {"name": "read", "arguments": json.dumps(given)}
        call = {"id": name, "type": "function", "function": function}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": name, "content": shown},
        ]
    if dialect == "openai-responses":
        return [
            {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": "c2VhbGVk"},
            {"type": "function_call", "call_id": name, "name": "read", "arguments": json.dumps(given)},
            {"type": "function_call_output", "call_id": name, "output": shown},
        ]
    use = {"type": "tool_use", "id": name, "name": "read", "input": given}
    result = {"type": "tool_result", "tool_use_id": name, "content": shown}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def request(some, dialect, messages, *, stream):
    """A request as bytes, in one of the ways in which JSON is written."""
    key = "input" if dialect == "openai-responses" else "messages"
    body = {
        "model": f"m{some.randint(0, 9)}",
        key: messages,
        "stream": stream,
        "x_unknown": {"ä": [1.0, None]},
    }
    if dialect == "anthropic":
        body |= {"max_tokens": 64, "system": [{"type": "text", "text": words(some)}]}
    if some.random() < 0.3:
        body["temperature"] = some.choice((0, 1.0, 1e-3))
    indent = some.choice((None, None, 1, 4))
    return json.dumps(body, ensure_ascii=some.random() < 0.5, indent=indent).encode()


def reply(some, dialect, *, stream):
    """A reply as a provider sends it, in pieces that are cut anywhere."""
    text = words(some)
    if not stream:
        body = json.dumps(whole(dialect, text), indent=some.choice((None, 2))).encode()
        headers = [
            ("content-type", "application/json"),
            ("x-request-id", "r"),
            ("x-odd", "a, b"),
            ("x-odd", "c"),
        ]
        if some.random() < 0.3:
            body = gzip.compress(body)
            headers.append(("content-encoding", "gzip"))
        return Prepared(200, headers, cut(some, body))
    if dialect == "openai-chat":
        chunks = [{"choices": [{"index": 0, "delta": {"content": one + " "}}]} for one in text.split()]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        chunks.append(
            {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}
        )
        body = (
            b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"
        )
    elif dialect == "openai-responses":
        done = whole(dialect, text)
        events = [
            {"type": "response.created", "response": {**done, "status": "in_progress", "output": []}},
            {"type": "response.output_text.delta", "output_index": 0, "delta": text},
            {"type": "response.completed", "response": done},
        ]
        body = b"".join(event(one) for one in events)
    else:
        start = {**whole(dialect, ""), "content": [], "stop_reason": None}
        events = [
            {"type": "message_start", "message": start},
            {"type": "ping"},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
            {"type": "message_stop"},
        ]
        body = b"".join(event(one) for one in events)
    return Prepared(200, [("content-type", EVENTS), ("cache-control", "no-cache")], cut(some, body))


def event(found):
    return f"event: {found['type']}\ndata: {json.dumps(found)}\n\n".encode()


def whole(dialect, text):
    if dialect == "openai-chat":
        message = {"role": "assistant", "content": text, "refusal": None}
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    if dialect == "openai-responses":
        item = {"type": "message", "id": "msg", "role": "assistant", "status": "completed"}
        item["content"] = [{"type": "output_text", "text": text, "annotations": []}]
        usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
        return {
            "id": "r",
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [item],
            "usage": usage,
        }
    usage = {"input_tokens": 9, "output_tokens": 4}
    content = [{"type": "text", "text": text}]
    about = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    return {**about, "content": content, "usage": usage}


def cut(some, body):
    """Pieces of a body, cut at any byte."""
    places = sorted(some.sample(range(1, max(2, len(body))), min(some.randint(0, 6), max(0, len(body) - 1))))
    return [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_generated_exchanges_pass_as_they_are(client, dialect, stream):
    some = random.Random(f"{dialect} {stream}")
    for _ in range(20):
        body = request(some, dialect, conversation(some, dialect), stream=stream)
        odd = [
            ("x-stainless-lang", "python"),
            ("User-Agent", "agent/1.0 (x; y)"),
            ("accept-encoding", "br, gzip"),
        ]
        odd.append(("anthropic-version", "2023-06-01") if dialect == "anthropic" else ("openai-beta", "x=1"))
        client.exchange(PATHS[dialect], body, reply(some, dialect, stream=stream), odd)


@pytest.mark.parametrize("dialect", PATHS)
def test_a_conversation_turn_by_turn_passes_as_it_is(client, dialect):
    some = random.Random(dialect)
    for _ in range(3):
        messages = []
        for _ in range(6):
            messages.append(question(some, dialect))
            stream = some.random() < 0.5
            answer = reply(some, dialect, stream=stream)
            client.exchange(PATHS[dialect], request(some, dialect, messages, stream=stream), answer)
            messages.append({"role": "assistant", "content": words(some)})


STRANGE = (
    b"",
    b"not json",
    b"[]",
    b"null",
    b"{}",
    b'{"messages": 5}',
    b'{"messages": []}',
    b'{"messages": [5]}',
    b'{"messages": [{"role": "user"}], "model": 7}',
    b'{"messages": [{"role": "nobody", "content": {}}]}',
    b'{"messages": [{"role": "assistant", "content": "prefill"}]}',
    b'{"messages": [{"role": "tool", "tool_call_id": "orphan", "content": "x"}]}',
    b'{"input": "text alone"}',
    b'{"input": [{"type": "item_reference", "id": "x"}]}',
    b'{"previous_response_id": "r", "input": "go on"}',
    b'{"messages": [{"role": "user", "content": "twice"}], "messages": [{"role": "user", "content": "b"}]}',
    b'{"messages": ' + b"[" * 3_000 + b"]" * 3_000 + b"}",
    b'{"messages": [{"role": "user", "content": ' + b"[" * 900 + b"]" * 900 + b"}]}",
    '{"messages": [{"role": "user", "content": "\u00ff\u2028"}], "n": 1e400}'.encode(),
    b'\xff\xfe{"messages": []}',
)
FAILURES = (
    Prepared(401, [("content-type", "application/json")], [b'{"error": {"message": "bad key"}}']),
    Prepared(
        429, [("content-type", "application/json"), ("retry-after", "3")], [b'{"error": {"type": "rate"}}']
    ),
    Prepared(500, [("content-type", "text/html")], [b"<html>oops</html>"]),
    Prepared(404, [], []),
    Prepared(204, [], []),
    Prepared(302, [("location", "http://example.invalid/")], []),
    Prepared(200, [("content-type", "application/json")], [b"not json"]),
    Prepared(200, [("content-type", EVENTS)], [b"data: nonsense\n\n", b": comment\n\n", b"event: x\n"]),
    Prepared(200, [("content-type", EVENTS)], [b'data: {"error": {"message": "overloaded"}}\n\n']),
    Prepared(200, [("content-type", EVENTS)], []),
    Prepared(200, [("content-type", EVENTS), ("content-encoding", "br")], [b"\x8b\x02\x80sealed\x03"]),
    Prepared(200, [("content-type", EVENTS), ("content-encoding", "gzip")], [b"not gzip at all"]),
)


@pytest.mark.parametrize("path", PATHS.values())
def test_what_cannot_be_read_and_what_fails_pass_as_they_are(client, path):
    for body in STRANGE:
        client.exchange(path, body, FAILURES[0])
    plain = json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 9}
    ).encode()
    for answer in FAILURES:
        client.exchange(path, plain, answer)


@pytest.mark.slow
def test_recorded_sessions_pass_as_they_are(client):
    paths = [path for path in corpus.sessions(corpus.ROOT) if path.stat().st_size < 100_000]
    if not paths:
        pytest.skip("no recorded sessions beside the checkout (../shared/data, or FOLDLINE_CORPUS)")
    some = random.Random(0)
    for number, path in enumerate(some.sample(paths, min(30, len(paths)))):
        dialect, stream = tuple(PATHS)[number % 3], bool(number % 2)
        said = decode_all(corpus.chat_messages(path)[:80])
        rendered = get(dialect).render([(message, ()) for message in said], whole=True).messages
        body = request(some, dialect, rendered, stream=stream)
        client.exchange(PATHS[dialect], body, reply(some, dialect, stream=stream))
