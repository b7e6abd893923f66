from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.support.rawhttp import Answer, Server, raw_server

from foldline import providers
from foldline.providers import Call
from foldline.providers.base import Delta, Reply

KEY = "sk-test-9f8e7d6c5b4a39281706f5e4d3c2b1a0"
MODELS = {
    "openai-chat": "openai:gpt-5.2",
    "openai-responses": "openai-responses:gpt-5.2",
    "anthropic": "anthropic:claude-sonnet-4-6",
}
CALL = Call(messages=[{"role": "user", "content": "Read src/a.py"}], max_tokens=500, timeout=120)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.fixture(params=list(MODELS))
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Return a function that starts a server with these answers and a provider connected to it."""
    async with AsyncExitStack() as stack:

        async def start(
            dialect: str, *answers: Answer, name: str | None = None, **more: Any
        ) -> tuple[Any, Server]:
            server = await stack.enter_async_context(raw_server(*answers))
            provider = providers.get(name or MODELS[dialect], base_url=server.url, dialect=dialect, **more)
            stack.push_async_callback(provider.close)
            return provider, server

        yield start


async def collect(stream: AsyncIterator[Delta | Reply]) -> tuple[list[Delta], Reply]:
    pieces = [piece async for piece in stream]
    deltas, replies = [p for p in pieces if isinstance(p, Delta)], [p for p in pieces if isinstance(p, Reply)]
    assert pieces[-1] is replies[-1]
    assert len(replies) == 1
    return deltas, replies[0]
