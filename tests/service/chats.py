"""Agents that keep their whole history and send it with every request, and what is stored of them."""

from __future__ import annotations

import contextlib

import anthropic
import openai
from tests.service.api.client import FILLER
from tests.service.served import AlternatingClients

import foldline


def answers(asked):
    return f"Answer {asked.index}. " + FILLER


class Chat:
    """An agent that keeps its whole history and sends it again with every request."""

    def __init__(self, url, **headers):
        self.client = AlternatingClients(
            lambda one: openai.OpenAI(
                base_url=f"{one}/v1", api_key="test", max_retries=0, timeout=60, default_headers=headers
            ),
            url,
        )
        self.messages = [{"role": "system", "content": "You help."}]

    def ask(self, text):
        self.messages.append({"role": "user", "content": text})
        raw = self.client.chat.completions.with_raw_response.create(model="scripted", messages=self.messages)
        self.messages.append({"role": "assistant", "content": raw.parse().choices[0].message.content})
        return raw.headers

    def close(self):
        self.client.close()


@contextlib.contextmanager
def claude(url):
    """Yield a function with which Anthropic's SDK asks; it keeps its whole history, too."""
    messages = []
    with anthropic.Anthropic(base_url=url, api_key="test", max_retries=0, timeout=60) as client:

        def ask(content, **given):
            messages.append({"role": "user", "content": content})
            reply = client.messages.create(model="claude-scripted", messages=messages, **given)
            messages.append({"role": "assistant", "content": [one.to_dict() for one in reply.content]})

        yield ask


@contextlib.asynccontextmanager
async def opened(path):
    """A store file, which is sound."""
    store = foldline.stores.open_store(f"sqlite:///{path}")
    assert await store.verify() == []
    try:
        yield store
    finally:
        await store.close()


async def stored(path):
    """The sessions of a store file: how many messages and compactions each has, the oldest first."""
    async with opened(path) as store:
        return [(one.messages, one.compactions, one.entries) for one in reversed(await store.sessions())]
