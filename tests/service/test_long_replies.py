"""Replies that are large, in one event or in very many, or packed: read in step with their size, or no further."""

from __future__ import annotations

import asyncio
import gzip

import httpx2
import msgspec
import pytest
from tests.service.upstream import Prepared, served_upstream
from tests.support.growth import grows_in_step

from foldline.service.gateway import stream
from foldline.service.gateway.endpoint import ENDPOINTS, gemini_endpoint
from foldline.service.gateway.request import read_request
from foldline.service.gateway.stream import ReplyReader

CHAT, RESPONSES, MESSAGES = ENDPOINTS


def chat(**delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def argument(text):
    return {"index": 0, "id": "c", "function": {"name": "f", "arguments": text}}


def events(*bodies):
    return b"".join(b"data: " + msgspec.json.encode(one) + b"\n\n" for one in bodies)


CHAT_END = events({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"
MESSAGES_BEGIN = events({"type": "message_start", "message": {"role": "assistant", "content": []}})
MESSAGES_END = events(
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}
)


def block(kind, **given):
    return events({"type": "content_block_start", "index": 0, "content_block": {"type": kind, **given}})


def more(kind, **given):
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **given}}


def read(endpoint, pieces):
    """The reader, which was fed the pieces."""
    reader = ReplyReader(endpoint, streamed=True)

    async def fed():
        for piece in pieces:
            await reader.feed(piece)

    asyncio.run(fed())
    return reader


def cut(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


MANY = 4_000
LONG = {
    "one event": (CHAT, lambda n: events(chat(content="x" * (100 * n))) + CHAT_END),
    "one event without an end": (CHAT, lambda n: b"data: " + b"x" * (100 * n)),
    "line breaks of a kind that is no end": (CHAT, lambda n: b"data: x\r\n" * (20 * n)),
    "empty events": (CHAT, lambda n: b"data: {}\n\n" * n + CHAT_END),
    "empty lines": (CHAT, lambda n: b"\n" * (40 * n)),
    "text by and by": (CHAT, lambda n: events(*[chat(content="y" * 500)] * n) + CHAT_END),
    "arguments by and by": (
        CHAT,
        lambda n: events(*[chat(tool_calls=[argument("z" * 500)])] * n) + CHAT_END,
    ),
    "text of a block": (
        MESSAGES,
        lambda n: (
            MESSAGES_BEGIN
            + block("text", text="")
            + events(*[more("text_delta", text="y" * 500)] * n)
            + MESSAGES_END
        ),
    ),
    "citations": (
        MESSAGES,
        lambda n: (
            MESSAGES_BEGIN
            + block("text", text="")
            + events(*[more("citations_delta", citation={"n": 1})] * (4 * n))
            + MESSAGES_END
        ),
    ),
    "input of a call": (
        MESSAGES,
        lambda n: (
            MESSAGES_BEGIN
            + block("tool_use", id="c", name="f", input={})
            + events(
                more("input_json_delta", partial_json='{"a": "'),
                *[more("input_json_delta", partial_json="y" * 500)] * n,
                more("input_json_delta", partial_json='"}'),
            )
            + MESSAGES_END
        ),
    ),
}


@pytest.mark.parametrize("size", [64, 65_536], ids=["small pieces", "large pieces"])
@pytest.mark.parametrize("name", LONG)
def test_a_reply_is_read_in_step_with_its_size(name, size):
    endpoint, made = LONG[name]

    assert grows_in_step(lambda many: read(endpoint, cut(made(many), size)).whole(), MANY // 16)


def test_a_chat_that_keeps_the_chunks_of_a_stream_is_read_in_step_with_their_number():
    endpoint = gemini_endpoint("gemini-3-pro:generateContent")
    asked = {"role": "user", "parts": [{"text": "go"}]}
    chunk = {"role": "model", "parts": [{"text": "word "}]}

    def read_chunks(many):
        request = read_request(endpoint, msgspec.json.encode({"contents": [asked, *[chunk] * many, asked]}))
        assert [unit.place for unit in request.units] == [0, 1, many + 1]
        assert msgspec.json.decode(request.units[1].raw)["parts"] == [{"text": "word " * many}]

    assert grows_in_step(read_chunks, 200)


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("mark", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_what_came_in_pieces_is_what_came_at_once(size, mark):
    bodies = [chat(content=f"Wort {n} ü. ") for n in range(9)] + [
        chat(tool_calls=[argument(part)]) for part in ('{"a":', " 1}")
    ]
    data = (events(*bodies) + CHAT_END).replace(b"\n\n", mark)
    reader = read(CHAT, cut(data, size))
    message = reader.whole()["choices"][0]["message"]
    assert reader.ended
    assert message["content"] == "".join(f"Wort {n} ü. " for n in range(9))
    assert message["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    ]


def test_a_large_piece_is_read_in_slices_and_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(stream, "READ_MOST", 1_000_000)
    for size in (999_000, 64_000_000):
        data, turns = b"data: " + b"x" * size, []
        reader = ReplyReader(CHAT, streamed=True)

        async def fed(reader=reader, data=data, turns=turns):
            reading = asyncio.ensure_future(reader.feed(data))
            while not reading.done():
                turns.append(1)
                await asyncio.sleep(0)

        asyncio.run(fed())
        assert 10 < len(turns) < 30  # others had their turn meanwhile, and the rest was not read
        assert (reader.plain() == b"") == (size > 1_000_000)


def test_a_reply_of_too_many_events_goes_on_unread(monkeypatch):
    monkeypatch.setattr(stream, "READ_EVENTS", 100)
    read_whole = events(*[chat(content="a")] * 98) + CHAT_END  # with its end a hundred
    assert read(CHAT, [read_whole]).whole()["choices"][0]["message"]["content"] == "a" * 98
    reader = read(CHAT, cut(events(chat(content="a")) + read_whole, 1_000))
    assert reader.begun
    assert reader.whole() is None
    assert reader.plain() == b""


@pytest.mark.parametrize("packed", [False, True])
def test_every_byte_of_a_reply_that_is_not_read_passes(packed, monkeypatch):
    monkeypatch.setattr(stream, "READ_EVENTS", 1_000)
    data = b"data: {}\n\n" * 50_000 + CHAT_END
    headers = [("content-type", "text/event-stream")]
    if packed:
        data = gzip.compress(data)
        headers.append(("content-encoding", "gzip"))
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello."}]}
    with served_upstream(store="memory://") as (at, model):
        model.prepared[""] = Prepared(200, headers, cut(data, 10_000))
        with httpx2.stream(
            "POST",
            f"{at}/v1/chat/completions",
            json=body,
            headers={"accept-encoding": "gzip"},
            timeout=60,
        ) as found:
            assert b"".join(found.iter_raw()) == data
