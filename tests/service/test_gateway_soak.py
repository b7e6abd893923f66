"""Many clients stream through the gateway while it is killed and started again: nothing acknowledged is lost.

The long form, of 100 clients, is run by `make soak`.
"""

from __future__ import annotations

import asyncio
import itertools
import random

import httpx2
import msgspec
import pytest
from tests.support.gateway_process import GatewayProcess

import foldline
from foldline.core.log.entries import Compacted, Said
from foldline.testing import Answer, Scripted, serve

WORDS = "It works as it was asked for, and every word of it is needed. " * 12


class Soak(msgspec.Struct, frozen=True):
    """How many clients ask how often, and at how many answers in all the gateway is killed."""

    clients: int
    asks: int
    kills: tuple[int, ...]


class Answers:
    """Counts the answers of all clients."""

    def __init__(self):
        self.count = 0
        self._waited = {}

    def add(self):
        self.count += 1
        if event := self._waited.pop(self.count, None):
            event.set()

    async def reach(self, count):
        if self.count < count:
            await self._waited.setdefault(count, asyncio.Event()).wait()


class Client:
    """Keeps its whole history, sends it with each request, and asks again where it got no whole answer."""

    def __init__(self, number, url, answers=None):
        self.answers = answers or Answers()
        self.name = f"client-{number}"
        self.url = f"{url}/v1/chat/completions"
        self.messages = []
        self.acknowledged = []
        self.failed = 0
        self.longest = 0.0  # seconds from a failed request to the next answer

    async def go_on(self, http, more):
        """Ask and ask again while there is `more` to ask."""
        clock = asyncio.get_running_loop().time
        while more():
            self.messages.append(
                {"role": "user", "content": f"{self.name} asks {len(self.messages)}. {WORDS}"}
            )
            failed_at = None
            while (text := await self._asked(http)) is None:
                self.failed += 1
                failed_at = failed_at or clock()
                await asyncio.sleep(0.2)
            self.longest = max(self.longest, clock() - failed_at if failed_at else 0.0)
            self.messages.append({"role": "assistant", "content": text})
            self.acknowledged.append(text)
            self.answers.add()

    def asks_less_than(self, count):
        return lambda: len(self.acknowledged) < count

    async def _asked(self, http):
        body = {"model": "scripted", "messages": self.messages, "stream": True}
        headers = {"authorization": "Bearer k", "foldline-session": self.name}
        pieces, ended = [], False
        try:
            async with http.stream("POST", self.url, json=body, headers=headers) as response:
                if response.status_code != 200:
                    assert response.status_code in (502, 503), await response.aread()
                    return None
                async for line in response.aiter_lines():
                    if line == "data: [DONE]":
                        ended = True
                    elif line.startswith("data: {"):
                        choices = msgspec.json.decode(line[6:])["choices"]
                        pieces += [choices[0]["delta"].get("content") or ""] if choices else []
        except httpx2.HTTPError:
            return "".join(pieces) if ended else None
        return "".join(pieces) if ended else None


def says(asked):
    words = str(asked.messages[-1]["content"]).split(".")[0]
    return Answer(text=f"To “{words}”: {WORDS}{random.random()}", wait=0.01)


async def soaked(folder, soak):
    model = Scripted(says, window=200_000, keep=10)
    async with serve(model) as url:
        gateway = GatewayProcess(folder, url)
        await asyncio.to_thread(gateway.start)
        answers = Answers()
        clients = [Client(number, gateway.url, answers) for number in range(soak.clients)]
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(timeout=60, limits=limits) as http:
            async with asyncio.TaskGroup() as tasks:
                for client in clients:
                    tasks.create_task(client.go_on(http, client.asks_less_than(soak.asks)))
                for count in soak.kills:
                    await answers.reach(count)
                    await asyncio.to_thread(gateway.kill)
                    await asyncio.to_thread(gateway.start)
        await asyncio.to_thread(gateway.stop)
    return clients


def doubled(path):
    """The compactions of a path that follow another one with nothing said between."""
    marks = [entry for entry in path if isinstance(entry, Said | Compacted)]
    both = itertools.pairwise(marks)
    return [new.id for old, new in both if isinstance(old, Compacted) and isinstance(new, Compacted)]


async def check(url, clients):
    store = foldline.stores.open_store(url)
    assert await store.verify() == []
    found = {one.id: one for one in await store.sessions()}
    assert set(found) == {client.name for client in clients}
    for client in clients:
        path = [entry async for entry in store.path(client.name)]
        said = [entry.message.text for entry in path if isinstance(entry, Said)]
        assert [text for text in said if text.startswith("To “")] == client.acknowledged
        assert len(said) == len(client.messages)
        assert not doubled(path), client.name
    await store.close()
    return sum(one.compactions for one in found.values())


async def tried(folder, soak):
    clients = await soaked(folder, soak)
    folds = await check(f"sqlite:///{folder}/s.db", clients)
    assert folds >= len(clients)
    assert sum(client.failed for client in clients) > 0  # they were killed at work
    return {"requests": sum(len(one.acknowledged) for one in clients), "folds": folds}


@pytest.mark.slow
async def test_some_clients_and_a_kill(tmp_path):
    await tried(tmp_path, Soak(clients=8, asks=40, kills=(100,)))


@pytest.mark.soak
async def test_a_hundred_clients_and_two_kills(tmp_path, record_property):
    done = await tried(tmp_path, Soak(clients=100, asks=100, kills=(3_000, 3_200)))
    record_property("soak", done)
    print(done)  # noqa: T201  for the note
