"""An agent in a process of its own that may be killed anywhere: it keeps its session in SQLite and goes on from there.

It writes the ids of acknowledged entries to a journal, which the test compares with the store.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import time
import traceback
from typing import Any

import anthropic  # noqa: F401 - loaded here, so that every process forked from this one has it
import msgspec
import openai  # noqa: F401
from tests.support.talkers import Unfinished, result_messages, sdk_client, user_message

import foldline
from foldline.core.log.entries import Said
from foldline.core.secrets.redact import redact
from foldline.errors import FoldlineError, ProviderError
from foldline.providers import Patience, get
from foldline.providers.failures import from_sdk
from foldline.summarizers import ModelSummarizer
from foldline.testing import server  # noqa: F401

MODEL = "scripted"
SYSTEM = "You look after a code base. Its rules are the user's."
ATTEMPTS = 14  # times that one request is made before the agent gives up
PATIENCE = 2.0  # seconds for a reply, and for the silence in a stream
QUICK = Patience(attempts=3, timeout=20.0, first=0.01, longest=0.02, jitter=0.01)
LINE = "value {n} of {path} is read before each request and checked against the table of limits"


class Plan(msgspec.Struct, frozen=True):
    """What one run does, all of it following from its seed. Sizes in tokens, `budget` of a turn."""

    seed: int
    dialect: str
    stream: bool
    thinking: bool
    turns: int
    window: int
    configured_window: int | None
    budget: int
    rate: float
    summaries: bool
    policy: str
    giant: int | None
    kills: tuple[tuple[int, float], ...]
    folder: str

    @property
    def url(self) -> str:
        """The store of the run."""
        return f"sqlite:///{self.folder}/sessions.db"

    @property
    def journal(self) -> str:
        """The file in which the agent says what it was told is safe, and how it ended."""
        return f"{self.folder}/journal.jsonl"

    @property
    def cap(self) -> int:
        """The tokens that a reply may take."""
        return max(300, self.window // 8)


def prompt(plan: Plan, turn: int) -> str:
    """The words of the user in a turn."""
    some = random.Random(f"{plan.seed}:said:{turn}")
    rule = " Never touch the file licence.txt." if turn == 0 else ""
    words = f"Turn {turn}: look at src/part_{turn}.py and say what is wrong with it.{rule}"
    lines = some.randint(0, plan.budget // 60)
    if turn == plan.giant:
        lines = plan.window // 12
    return "\n".join([words, *(LINE.format(n=n, path=f"src/part_{turn}.py") for n in range(lines))])


def tool_text(plan: Plan, name: str, call: str) -> str:
    """What a tool answers."""
    some = random.Random(f"{plan.seed}:{call}")
    if name == "bash" and some.random() < 0.3:
        return "FAILED tests/test_part.py::test_limit - AssertionError: 3 != 4\n1 failed, 7 passed"
    size = some.choice((0, 1, 1, 2, 4)) * plan.budget
    path = f"src/part_{some.randrange(50)}.py"
    return "\n".join(LINE.format(n=n, path=path) for n in range(1 + size // 25))


class Journal:
    """A file of JSON lines that survives a kill of the process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def write(self, **line: Any) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())


class Agent:
    """A loop of three calls, as in the examples, and what a user does beside them."""

    def __init__(self, plan: Plan, session: Any, talking: Any, journal: Journal) -> None:
        self.plan = plan
        self.session = session
        self.talking = talking
        self.journal = journal
        self.some = random.Random(f"{plan.seed}:{os.getpid()}")
        self.newest: str | None = None  # the entry that was appended last

    async def work(self) -> None:
        """Go on where the session was left, to the last turn."""
        for turn in range(await self.resumed(), self.plan.turns):
            await self.append(user_message(prompt(self.plan, turn)))
            await self.answer()
            await self.aside(random.Random(f"{self.plan.seed}:aside:{turn}"))

    async def resumed(self) -> int:
        """Finish the turn that was cut short, if one was; return the number of the next."""
        path = [entry async for entry in self.session.store.path(self.session.id) if isinstance(entry, Said)]
        asked = sum(entry.message.text.startswith("Turn ") for entry in path)
        if not path:
            return 0
        still_open = (await self.session.stats()).open_calls
        calls = [call for entry in path for call in entry.message.calls if call.id in still_open]
        if calls and asked < self.plan.turns and self.some.random() < 0.3:
            return asked  # the user asks for something else: the session answers the calls itself
        if calls:
            await self.run(calls)
        newest = path[-1].message
        if calls or newest.role != "assistant":
            await self.answer()
        return asked

    async def answer(self) -> None:
        """Let the model work until it has answered."""
        while True:
            entry = await self.session.store.entry(self.session.id, (await self.append(await self.ask()))[0])
            if not entry.message.calls:
                return
            await self.run(entry.message.calls)

    async def ask(self) -> Any:
        """Ask until a reply comes; what does not fit is the session's to mend."""
        cap = self.plan.cap
        for _ in range(ATTEMPTS):
            messages = await self.session.context()
            try:
                return await self.talking.ask(messages, min(self.session.max_tokens or cap, cap))
            except Exception as error:
                failure = from_sdk(error, MODEL, redact)
                if failure is None or failure.transient or isinstance(error, Unfinished):
                    continue
                await self.session.overflowed(error, view=messages, max_tokens=cap)
        raise ProviderError(f"no reply in {ATTEMPTS} attempts", kind="connection")

    async def run(self, calls: Any) -> None:
        """Run the tools that were called; their results come at once, or one by one where the dialect has them so."""
        done = [(call.id, tool_text(self.plan, call.name, call.id)) for call in calls]
        messages = result_messages(self.plan.dialect, done)
        if self.plan.seed % 2:
            await self.append(*messages)
            return
        for message in messages:
            await self.append(message)

    async def append(self, *messages: Any) -> list[str]:
        """Append, and say in the journal what is now safe."""
        ids = await self.session.append(*messages)
        self.journal.write(safe=ids)
        self.newest = ids[-1] if ids else self.newest
        return ids

    async def aside(self, some: random.Random) -> None:
        """What a user does now and then between turns."""
        kind = some.random()
        if kind < 0.08 and self.newest is not None:  # the leaf may be a note that a draft left
            await self.session.pin(self.newest)
        elif kind < 0.14:
            await self.session.compact("the limits")
        elif kind < 0.18:
            await self.session.undo()
        elif kind < 0.22:
            await self.session.note("title", title="parts")


def open_session(plan: Plan, url: str) -> Any:
    """Open the session; its summaries are the model's own, with little patience."""
    kind = "anthropic" if plan.dialect == "anthropic" else "openai"
    name = f"{kind}-compatible:{MODEL}@{url}"
    window = (
        foldline.Window(context=plan.configured_window, output=plan.cap) if plan.configured_window else None
    )
    fields = {"policy": plan.policy, "window": window, "dialect": plan.dialect, "system": SYSTEM}
    if not plan.summaries:
        return foldline.open(plan.url, "s", **fields)
    written = ModelSummarizer(
        get(name, dialect=plan.dialect), window=window, patience=QUICK, timeout=PATIENCE
    )
    session = foldline.open(plan.url, "s", model=name, summarizer=written, **fields)
    session.at_close(written.close)
    return session


async def run_agent(plan: Plan, url: str, journal: Journal) -> None:
    """Live through a run, or through what is left of it."""
    options = {"system": SYSTEM, "stream": plan.stream, "thinking": plan.thinking, "patience": PATIENCE}
    async with sdk_client(url, plan.dialect, MODEL, **options) as talking, open_session(plan, url) as session:
        await Agent(plan, session, talking, journal).work()


def main(plan: Plan, url: str) -> None:
    """Be the process; how it ended stands in the journal."""
    logging.disable(logging.CRITICAL)
    journal = Journal(plan.journal)
    try:
        asyncio.run(run_agent(plan, url, journal))
    except FoldlineError as error:
        end, text = type(error).__name__, str(error)
    except BaseException:
        end, text = "crash", traceback.format_exc()
    else:
        end, text = "done", ""
    journal.write(end=end, text=text, seconds=time.process_time())
