"""What does the gateway add to a request? A client that re-sends its history, directly to a model and through it.

The model answers at once, in a process of its own; so does the gateway, on SQLite with every append durable, and on a
store in memory: the difference is what the two commits of a request cost (its new message, the reply).
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from budgets.table import Row

SIZES = (1_000, 50_000, 200_000)  # tokens of history
ROUNDS = 60
CLIENTS = 8
BUDGET = 3.0  # ms at 50,000 tokens, beside the commit
TEXT = "The value of the retry limit is read from the settings file before each request is sent. " * 27
REPLY = {
    "id": "c",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
MODEL = """
import asyncio, sys
BODY = sys.argv[1].encode()
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(BODY)
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = [line for line in head.lower().split(b"\\r\\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(length[0].split(b":")[1]))
            writer.write(HEAD + BODY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@contextmanager
def running(*command: str) -> Generator[tuple[str, int]]:
    """Run a program that prints its URL when it is ready; yields that and its process id."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def history(tokens: int, who: str) -> list[dict[str, Any]]:
    """Return messages of that many tokens, 500 in each."""
    roles = ("user", "assistant")
    found = [
        {"role": roles[place % 2], "content": f"{who} {place}. {TEXT}"} for place in range(tokens // 500)
    ]
    return found[: len(found) // 2 * 2]


def turns(url: str, tokens: int, who: str, rounds: int) -> list[float]:
    """Go on with a conversation; returns the milliseconds of each request."""
    messages, found = history(tokens, who), list[float]()
    with httpx2.Client(headers={"authorization": "Bearer k"}, timeout=60) as client:
        for number in range(rounds + 3):
            messages.append({"role": "user", "content": f"{who} asks {number}."})
            body = json.dumps({"model": "m", "messages": messages}).encode()
            start = time.perf_counter()
            client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()
            found.append((time.perf_counter() - start) * 1_000)
            messages.append({"role": "assistant", "content": "Done."})
    return found[3:]  # the first ones open connections and store the history


def added(direct: list[float], through: list[float]) -> tuple[float, float]:
    """Return what the gateway adds at the median and at the 99th percentile, in milliseconds."""
    last = [statistics.quantiles(one, n=100)[98] for one in (direct, through)]
    return statistics.median(through) - statistics.median(direct), last[1] - last[0]


def cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(url: str, seconds: float) -> int:
    """Ask from several clients at once; returns how many requests were answered."""
    done = 0
    end = time.perf_counter() + seconds

    async def go_on(who: int) -> None:
        nonlocal done
        messages = history(5_000, f"load {who}")
        async with httpx2.AsyncClient(headers={"authorization": "Bearer k"}, timeout=60) as client:
            while time.perf_counter() < end:
                messages.append({"role": "user", "content": f"{who} asks {len(messages)}."})
                body = json.dumps({"model": "m", "messages": messages}).encode()
                (await client.post(f"{url}/v1/chat/completions", content=body)).raise_for_status()
                messages.append({"role": "assistant", "content": "Done."})
                done += 1

    await asyncio.gather(*(go_on(who) for who in range(CLIENTS)))
    return done


def main(*, full: bool = False) -> list[Row]:
    """Measure what is added by size, and requests a second."""
    rounds = ROUNDS * 5 if full else ROUNDS
    rows = list[Row]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model, _ = stack.enter_context(running("-c", MODEL, json.dumps(REPLY)))
        options = ("--port", "0", "--openai-upstream", model, "--window", "2000000", "--summaries", "offline")
        unfolded = ("--policy", "claude-code")  # it fills the window
        serve = ("-m", "foldline", "serve", *options, *unfolded, "--store")
        memory, _ = stack.enter_context(running(*serve, "memory://"))
        sqlite, pid = stack.enter_context(running(*serve, f"sqlite:///{folder}/s.db"))
        for tokens in SIZES:
            direct = turns(model, tokens, "direct", rounds)
            apart = added(direct, turns(memory, tokens, "memory", rounds))
            stored = added(direct, turns(sqlite, tokens, "sqlite", rounds))
            name = f"gateway, {tokens:,} tokens of history"
            limit = {"most": BUDGET} if tokens == 50_000 else {}
            rows += [
                Row(f"{name}: added beside the commits, p50", apart[0], "ms", **limit),
                Row(f"{name}: added beside the commits, p99", apart[1], "ms"),
                Row(f"{name}: added with two durable commits, p50", stored[0], "ms"),
                Row(f"{name}: added with two durable commits, p99", stored[1], "ms"),
            ]
        before, seconds = cpu(pid), 20.0 if full else 6.0
        done = asyncio.run(load(sqlite, seconds))
        used = cpu(pid) - before
        rows.append(
            Row("gateway, 5,000 tokens of history: requests a second of one core", done / used, "1/s")
        )
    return rows
