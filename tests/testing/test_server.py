"""The server itself: many clients at once, clients that go away, and nothing left behind."""

import asyncio
import contextlib
import gc
import socket
import threading

import pytest
from tests.support.waiting import until
from tests.testing.clients import MODEL, anthropic_client, ask, openai_client

from foldline.testing import Answer, Faulty, Gate, Scripted, serve, serve_in_thread
from foldline.testing.request import Asked

HELLO = [{"role": "user", "content": "Hello"}]
TEXT = "word " * 2_000


def port_of(url):
    return int(url.rsplit(":", 1)[1])


def is_open(url):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port_of(url))) == 0


async def raw(url, data):
    """Send bytes on a connection of its own; return all that comes back until the server closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
    writer.write(data)
    found = await reader.read()
    writer.close()
    await writer.wait_closed()
    return found


async def test_nothing_is_left_when_the_block_ends():
    before = asyncio.all_tasks()
    async with serve(Scripted(["a"])) as url:
        assert is_open(url)
        assert await ask(url, "anthropic") == "a"
    assert not is_open(url)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("steps", range(6))
async def test_a_client_that_comes_while_it_stops_is_closed(steps):
    """The client comes at each step of the end in turn."""
    async with serve(Scripted(["a"])) as url:
        await asyncio.sleep(0)  # its first step: it waits for clients
        client = socket.create_connection(("127.0.0.1", port_of(url)), timeout=60)
        for _ in range(steps):
            await asyncio.sleep(0)
    with client, contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
    gc.collect()  # a connection that was lost is an error here, by the warning that pytest makes one


async def test_a_server_that_stalls_stops_at_once():
    model = Faulty(Scripted(["a", "b"]), plan=["stall"] * 2, stall=600.0)
    async with serve(model) as url:
        waiting = [
            asyncio.create_task(ask(url, "anthropic", stream=stream, patience=60)) for stream in (False, True)
        ]
        await until(lambda: len(model.met) == 2)
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(end, Exception) for end in ends)
    assert not is_open(url)


async def test_a_client_that_does_not_read_does_not_keep_the_server():
    async with serve(Scripted(lambda asked: "word " * 400_000)) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url), limit=1024)
        body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
        head = f"POST /chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        assert (await reader.read(10)).startswith(b"HTTP/1.1")
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    assert not is_open(url)


async def test_a_client_that_goes_away_in_a_stream_leaves_the_server_well():
    async with serve(Scripted(lambda asked: TEXT)) as url:
        async with openai_client(url) as client:
            stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
            await anext(aiter(stream))
            await stream.close()
        assert await ask(url, "openai-chat") == TEXT


async def test_one_connection_serves_many_requests():
    model = Scripted(lambda asked: f"answer {asked.index}")
    async with serve(model) as url, anthropic_client(url) as client:
        fields = {"model": MODEL, "max_tokens": 10, "messages": HELLO}
        replies = [await client.messages.create(**fields) for _ in range(5)]
    assert [reply.content[0].text for reply in replies] == [f"answer {n}" for n in range(5)]


async def test_many_clients_at_once_get_their_own_answers():
    model = Scripted(lambda asked: asked.messages[-1]["content"][::-1])
    async with serve(model) as url, anthropic_client(url) as client:

        async def one(n):
            said = [{"role": "user", "content": f"number {n}"}]
            reply = await client.messages.create(model=MODEL, max_tokens=100, messages=said)
            return reply.content[0].text

        texts = await asyncio.gather(*(one(n) for n in range(20)))
    assert texts == [f"number {n}"[::-1] for n in range(20)]
    assert sorted(asked.index for asked in model.requests) == list(range(20))


async def test_an_answer_may_take_its_time():
    async with serve(Scripted([Answer("late", wait=0.05)])) as url:
        assert await ask(url, "anthropic") == "late"


async def test_what_is_no_http_ends_its_connection_alone():
    async with serve(Scripted(["a"])) as url:
        assert await raw(url, b"hello\r\n\r\n") == b""
        assert await ask(url, "anthropic") == "a"


async def test_other_methods_and_strangers_are_refused():
    async with serve(Scripted(["a"])) as url:
        end = b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        assert (await raw(url, b"GET /v1/chat/completions" + end + b"\r\n")).startswith(b"HTTP/1.1 405")
        assert (await raw(url, b"POST /v1/messages" + end + b"content-length: 0\r\n\r\n")).startswith(
            b"HTTP/1.1 401"
        )
        with_key = b"x-api-key: k\r\ncontent-length: 2\r\n\r\n{}"
        no_version = await raw(url, b"POST /v1/messages" + end + with_key)
        assert b"anthropic-version: header is required" in no_version


async def test_a_client_that_waits_for_leave_to_send_its_body_gets_it():
    async with serve(Scripted(["a"])) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
        writer.write(
            b"POST /responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\ncontent-length: 2\r\n"
        )
        writer.write(b"connection: close\r\nexpect: 100-continue\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(b"{}")
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
        writer.close()
        await writer.wait_closed()


def test_no_thread_is_left_behind():
    before = set(threading.enumerate())
    with serve_in_thread(Scripted(["a"])) as url:
        assert is_open(url)
    assert not is_open(url)
    assert set(threading.enumerate()) <= before


async def test_a_head_request_is_answered_without_a_body():
    async with serve(Scripted(["a"])) as url:
        head = b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n"
        get = b"GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        first, second = (await raw(url, head + get)).split(b"\r\n\r\n", 1)

    assert first.startswith(b"HTTP/1.1 404")
    assert b"content-length: 0" not in first.lower()
    assert second.startswith(b"HTTP/1.1 200"), "the next answer follows at once"


@pytest.mark.parametrize("api", ["anthropic", "openai"])
async def test_a_function_that_raises_is_answered_500_with_its_text(api):
    def fails(asked):
        raise KeyError("no weather for Bergen")

    model = Scripted([fails, "Better now."])
    async with serve(model) as url:
        with pytest.raises(Exception, match="no weather for Bergen") as refused:
            await ask(url, api)
        assert refused.value.status_code == 500
        assert "KeyError" in str(refused.value)
        assert await ask(url, api) == "Better now."


async def test_an_answer_waits_for_its_gate_and_a_client_that_left_is_not_waited_for():
    gate = Gate()
    model = Scripted([Answer(text="a", wait=gate), Answer(text="b", wait=gate), Answer(text="c", wait=gate)])
    async with serve(model) as url:
        first = asyncio.create_task(ask(url, "anthropic"))
        await until(lambda: len(model.requests) == 1)
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        second = asyncio.create_task(ask(url, "anthropic"))
        await until(lambda: len(model.requests) == 2)
        assert not second.done()
        threading.Thread(target=gate.open).start()
        assert await second == "b"
        assert await ask(url, "anthropic") == "c"


def tool(name):
    return {"name": name, "input_schema": {"type": "object"}}


def function(name):
    return {"type": "function", "function": {"name": name, "parameters": {}}}


@pytest.mark.parametrize(
    ("dialect", "more"),
    [
        ("anthropic", {"tools": 5}),
        ("anthropic", {"tools": [tool("a b")]}),
        ("anthropic", {"tools": [tool("a" * 129)]}),
        ("anthropic", {"tools": [tool("a"), tool("a")]}),
        ("openai-chat", {"tools": [function("a" * 65)]}),
        ("openai-chat", {"tools": [function("a"), function("a")]}),
        ("openai-chat", {"max_tokens": 0}),
        ("openai-chat", {"max_completion_tokens": "9"}),
        ("openai-responses", {"max_output_tokens": 15}),
        ("openai-responses", {"tools": [{"type": "function", "name": "a.b"}]}),
        (
            "openai-responses",
            {"context_management": [{"type": "compaction", "compact_threshold": "many"}]},
        ),
    ],
)
async def test_a_field_of_an_odd_shape_is_refused_and_the_connection_stays(dialect, more):
    said = "input" if dialect == "openai-responses" else "messages"
    body = {"model": MODEL, "max_tokens": 100, said: HELLO, **more}
    wire = await Scripted(["a"]).answer(Asked(dialect, body))
    assert wire.status == 400


@pytest.mark.parametrize(
    ("dialect", "tools"),
    [
        ("anthropic", [tool("a" * 128), {"type": "web_search_20250305", "name": "web_search"}]),
        ("openai-chat", [function("a" * 64), function("a-b_C1")]),
    ],
)
async def test_tools_that_the_real_api_takes_are_taken(dialect, tools):
    body = {"model": MODEL, "max_tokens": 100, "messages": HELLO, "tools": tools}
    assert (await Scripted(["a"]).answer(Asked(dialect, body))).status == 200
