"""Helpers for tests of live sessions: turns of a known size, and summarisers that wait or fail."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakSet

import msgspec

from foldline.catalogue import Catalogue, ModelInfo
from foldline.core.checkpoint.request import SummaryRequest
from foldline.core.decide.policy import Keep, Policy
from foldline.core.decide.presets import preset
from foldline.core.measure.window import Amount, Window
from foldline.session.session import Session
from foldline.session.setup import Setup
from foldline.stores import Store
from foldline.summarizers.offline import OfflineSummarizer

WINDOW = Window(context=10_000, output=1_000)  # usable 8,500: soft above 5,950, hard above 7,650
AMOUNTS = {
    "soft": Amount(fraction=0.7, of="usable"),
    "hard": Amount(fraction=0.9, of="usable"),
    "keep": Keep(amount=Amount(tokens=20_000, fraction=0.2, of="usable")),
    "min_gain": Amount(fraction=0.2, of="usable"),
    "prune_minimum": Amount(tokens=20_000, fraction=0.1, of="usable"),
    "prune_protect": Amount(tokens=40_000, fraction=0.25, of="usable"),
}
LINE = "the quick brown fox jumps over the lazy dog and looks at the log of the server again "


class Gate:
    """A summariser that waits until `go` is set and keeps its requests; it writes the offline summary."""

    name = "model:gate"

    def __init__(self, *, opened: bool = False) -> None:
        self.asked = 0
        self.requests: list[SummaryRequest] = []
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        if opened:
            self.go.set()

    async def summarize(self, request):
        self.asked += 1
        self.requests.append(request)
        self.begun.set()
        await self.go.wait()
        return OfflineSummarizer().write(request)


class Failing:
    """A summariser that always raises."""

    name = "model:broken"

    def __init__(self) -> None:
        self.asked = 0

    async def summarize(self, request):
        self.asked += 1
        raise RuntimeError("the model is away")


def setup(policy: str | Policy = "foldline", window: Window = WINDOW, **more: Any) -> Setup:
    rules = policy if isinstance(policy, Policy) else policy_with(policy)
    model = more.pop("model", None)
    info = ModelInfo(model, window, Catalogue().look_up(model).price, known=more.pop("known", True))
    return Setup(policy=rules, rules=rules, info=info, **more)


def policy_with(name: str = "foldline", **fields: Any) -> Policy:
    """Return a preset with other fields; the default one with AMOUNTS, so that a change of its own moves no test."""
    return msgspec.structs.replace(preset(name), **{**(AMOUNTS if name == "foldline" else {}), **fields})


OPEN_SESSIONS: WeakSet[Session] = WeakSet()


def session_on(store: Store, summarizer: Any = None, *, name: str = "s", **more: Any) -> Session:
    """Return a session of a store; `close_sessions_on` closes it."""
    session = Session(store, name, setup(**more), summarizer=summarizer)
    OPEN_SESSIONS.add(session)
    return session


async def close_sessions_on(store: Store) -> None:
    for session in [session for session in OPEN_SESSIONS if session.store is store]:
        await session.close()


class Events(list[Any]):
    """The events of a session, or those appended by a host, in order."""

    def __init__(self, session: Session | None = None) -> None:
        super().__init__()
        if session is not None:
            session.on("*", self.append)

    @property
    def names(self) -> list[str]:
        return [event.name for event in self]

    def named(self, *names: str) -> list[Any]:
        return [event for event in self if event.name in names]


def prompt(number: int, lines: int = 20) -> dict[str, Any]:
    return {"role": "user", "content": f"Question {number}: " + LINE * lines}


def answer(number: int, lines: int = 20) -> dict[str, Any]:
    return {"role": "assistant", "content": f"Answer {number}: " + LINE * lines}


async def run_turns(session: Session, count: int, start: int = 0, *, lines: int = 20) -> list[list[Any]]:
    """Run so many turns; return the context of each."""
    contexts: list[list[Any]] = []
    for number in range(start, start + count):
        await session.append(prompt(number, lines))
        contexts.append(await session.context())
        await session.append(answer(number, lines))
    return contexts


async def grow_to(session: Session, tokens: int, start: int = 0) -> int:
    """Append turns until the view exceeds so many tokens; return the number of the next turn."""
    while session.view_tokens <= tokens:
        await session.append(prompt(start), answer(start))
        start += 1
    return start


async def context_at(session: Session, tokens: int, start: int = 0) -> int:
    """Grow the view past so many tokens, append a prompt and take the context; return the prompt's number."""
    number = await grow_to(session, tokens, start)
    await session.append(prompt(number))
    await session.context()
    return number


def joined_texts(messages: list[Any]) -> str:
    return "\n".join(str(message.get("content")) for message in messages)
