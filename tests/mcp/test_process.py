"""The command as agents start it: a child process on standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.mcp.homes import write_transcript

from mcp import Client, StdioServerParameters, stdio_client

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "foldline", "mcp"]
LIMIT = 120  # seconds for a process to end
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def environment(home):
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


@pytest.fixture
def started(home, here):
    """Start the command in the folder; whatever is left of it ends with the test."""
    running = []

    def start(*args):
        process = subprocess.Popen(
            [*COMMAND, *args],
            cwd=here,
            env=environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def greeted(process):
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def posted(url, host):
    return urlopen(Request(url, b"{}", {"Host": host, "Content-Type": "application/json"}))


async def test_the_real_client_searches_the_session_of_the_folder_over_stdio(home, here, tmp_path):
    write_transcript(home, here, "claude-code")
    with (tmp_path / "errors").open("w") as errors:
        server = StdioServerParameters(
            command=COMMAND[0], args=COMMAND[1:], cwd=str(here), env=environment(home)
        )
        async with Client(stdio_client(server, errlog=errors)) as client:
            found = await client.call_tool("recall_search", {"query": "lock file"})
            wrong = await client.call_tool("recall_read", {"entry": "nothing"})
    assert "Never touch the lock file." in found.content[0].text
    assert wrong.is_error
    assert "take the id from a search" in wrong.content[0].text
    assert (tmp_path / "errors").read_text() == ""


def test_a_client_that_leaves_ends_it_and_nothing_but_the_protocol_was_on_its_output(started):
    process = started()
    assert greeted(process)["result"]["serverInfo"]["name"] == "foldline"
    process.stdin.write(b"this is no message\n")
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert b"Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_its_client_is_there(started, number):
    process = started()
    greeted(process)
    process.send_signal(number)
    assert process.wait(LIMIT) == 128 + number


async def test_several_clients_ask_over_http_and_sigterm_ends_it(home, here, started):
    write_transcript(home, here, "pi")
    process = started("--http", "127.0.0.1:0")
    url = process.stdout.readline().decode().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", url)
    async with Client(url) as first, Client(url) as second:
        for client in (first, second):
            found = await client.call_tool("recall_search", {"query": "lock file"})
            assert "Never touch the lock file." in found.content[0].text
        with pytest.raises(HTTPError, match="421"):  # a page that a browser was led to by a name of its own
            await asyncio.to_thread(posted, url, "evil.example")
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) in (0, -signal.SIGTERM)
    assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--http", "0.0.0.0:0"], b"other machines could read"),
        (["--http", "8402"], b"give HOST:PORT"),
        (["nothing-stored"], b"no session 'nothing-stored'"),
        (["--agent", "codx"], b"did you mean 'codex'"),
    ],
)
def test_a_wrong_call_is_refused_with_what_to_do(started, args, told):
    process = started(*args)
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (2, b"")
    assert told in err
