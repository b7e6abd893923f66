"""A stop lets what is under way end: replies, turns, and summaries that a model is still writing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading

import httpx2
import pytest
from tests.service.api.client import Client, events, reply, user
from tests.service.served import Held, run_service

import foldline
from foldline.service.jobs.drafts import ROWS
from foldline.testing import Scripted, serve_in_thread

pytestmark = pytest.mark.slow

FILLER = "It works as it was asked for, and every word of it is needed. " * 12


def held(*, only_summaries):
    """Answers for summaries, or for all, that wait for a gate."""
    return Held(
        lambda asked: f"Answer {asked.index}. " + FILLER,
        lambda asked: not (only_summaries and str(asked.messages[-1].get("content")).startswith("Question")),
    )


def open_soon(gate):
    """Open a gate while the service stops: whatever comes first, the answer is kept."""
    threading.Timer(0.5, gate.open).start()


async def stored(file):
    """Messages and compactions of the only session of a store."""
    store = foldline.stores.open_store(f"sqlite:///{file}")
    (one,) = await store.sessions()
    assert await store.verify() == []
    await store.close()
    return one.messages, one.compactions


async def drafting(file):
    """Whether a summary is made behind a reply."""
    store = foldline.stores.open_store(f"sqlite:///{file}")
    found = await store.key_values.keys(ROWS)
    await store.close()
    return bool(found)


async def test_a_summary_that_is_being_written_is_kept(tmp_path):
    model, file = held(only_summaries=True), tmp_path / "s.db"
    messages = []
    with (
        serve_in_thread(Scripted(model, window=14_000)) as url,
        run_service(
            openai_upstream=url, store=f"sqlite:///{file}", window=14_000, summaries="upstream", drain=60
        ) as at,
    ):
        for number in range(120):
            messages.append(user(f"Question {number}. {FILLER}"))
            body = {"model": "scripted", "messages": messages}
            found = await asyncio.to_thread(
                httpx2.post,
                f"{at}/v1/chat/completions",
                json=body,
                headers={"authorization": "Bearer k"},
                timeout=60,
            )
            messages.append(found.json()["choices"][0]["message"])
            if await drafting(file):
                assert await asyncio.to_thread(model.begun.wait, 120)
                break
        before = await stored(file)
        open_soon(model.gate)
    assert model.begun.is_set()
    assert before == (len(messages), 0)
    assert await stored(file) == (len(messages), 1)


async def test_a_reply_and_a_turn_that_are_under_way_are_told_to_their_end(tmp_path):
    model, file, told = held(only_summaries=False), tmp_path / "s.db", []

    def turn(client):
        told.append(client.http.post("/sessions/one/turns", json={"text": "Question."}).text)

    with serve_in_thread(Scripted(model, window=14_000)) as url:
        name = f"openai-compatible:scripted@{url}/v1"
        with run_service(model=name, store=f"sqlite:///{file}", window=14_000, drain=60) as at:
            client = Client(at)
            client.begin("one")
            asking = threading.Thread(target=turn, args=(client,))
            asking.start()
            assert await asyncio.to_thread(model.begun.wait, 60)
            open_soon(model.gate)
        asking.join(60)
        client.close()
    name, data = events(told[0])[-1]
    assert (name, data["how"]) == ("done", "done")
    assert await stored(file) == (2, 0)


def test_it_does_not_wait_for_longer_than_it_was_told(tmp_path):
    model = held(only_summaries=False)
    with serve_in_thread(Scripted(model, window=14_000)) as url:
        name = f"openai-compatible:scripted@{url}/v1"
        with run_service(model=name, store=f"sqlite:///{tmp_path / 's.db'}", drain=1.0) as at:
            client = Client(at)
            client.begin("one")
            with client.http.stream("POST", "/sessions/one/turns", json={"text": "Question."}):
                assert model.begun.wait(60)
                # the block ends, and the stop begins, while the model is still silent
        with pytest.raises(httpx2.ConnectError):  # it has ended, and the model is silent for a minute
            client.get("/sessions")
        client.close()
    assert asyncio.run(stored(tmp_path / "s.db")) == (1, 0)


STUCK = """
import runpy, sys, threading
from foldline.service.api import transfers
from foldline.service.stateless import fork

def stuck(*given, **named):
    print("stuck", flush=True)
    threading.Event().wait()

transfers.from_stream = fork.from_records = stuck
sys.argv = ["foldline", "serve", "--port", "0", *sys.argv[1:]]
runpy.run_module("foldline", run_name="__main__")
"""


def ask(url, body):
    with contextlib.suppress(httpx2.HTTPError):  # it is cut off
        httpx2.post(url, json=body, headers={"authorization": "Bearer k"}, timeout=120)


@pytest.mark.parametrize("work", ["fold", "import", "upstream"])
def test_sigterm_ends_the_process_whatever_is_under_way(work, tmp_path):
    (tmp_path / ".foldline").mkdir()
    said = [user("Look at it. " * 20_000), reply("Done."), user("Go on.")]
    ui = [{"id": "1", "role": "user", "parts": [{"type": "text", "text": FILLER * 2_000}]}] * 2
    path, body = {
        "fold": ("/api/fold", {"messages": ui, "compact": True}),
        "import": ("/api/imports", said),
        "upstream": ("/v1/chat/completions", {"model": "m", "messages": said[1:]}),
    }[work]
    model = held(only_summaries=False)
    with serve_in_thread(Scripted(model, window=14_000)) as url:
        settings = f'[serve]\ndrain = 1.0\nopenai_upstream = "{url}"\nsummaries = "offline"\n'
        (tmp_path / ".foldline" / "settings.toml").write_text(settings)
        process = subprocess.Popen(
            [sys.executable, "-c", STUCK, "--store", f"sqlite:///{tmp_path / 's.db'}"],
            stdout=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)},
        )  # fmt: skip
        try:
            at = process.stdout.readline().strip()
            asking = threading.Thread(target=ask, args=(at + path, body))
            asking.start()
            if work == "upstream":
                assert model.begun.wait(60)
            else:
                assert process.stdout.readline() == "stuck\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 128 + signal.SIGTERM
            asking.join(60)
        finally:
            process.kill()
            process.stdout.close()
