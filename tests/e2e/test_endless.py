"""Conversations without end against a real server with an 8k window: tool rounds, every dialect, no error to the caller."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from tests.support.llama import WINDOW, running
from tests.support.talkers import DIALECTS, call_message, result_messages, sdk_client, user_message

import foldline
from foldline.dialects import decode_all, get

FEW_TURNS, TURNS, SOAK_TURNS = 10, 20, 200
SMALL = 2_048  # reading takes long: a quarter of the window is read in a tenth of the time
pytestmark = pytest.mark.slow
MOST = 4  # tokens of a reply: the model is small and slow, and what it says is of no matter
RULE = "Never delete a file of the archive."
SYSTEM = "You keep an archive."


def asked(turn, lines):
    rule = f" {RULE}" if turn == 0 else ""
    return f"Turn {turn}: what does page {turn} of the archive hold?{rule}\n{page(turn, lines)}"


def page(turn, lines):
    words = "the box with the letters from the harbour office stands on the shelf behind the door"
    return "\n".join(f"page {turn}, line {line}: {words}" for line in range(lines))


class Speaker:
    """One conversation: its session, its SDK, and what went wrong, which the caller never sees."""

    def __init__(self, session, talking):
        self.session = session
        self.talking = talking
        self.sent = 0
        self.problems = []
        self.overflows = []
        self.boundaries = []
        session.on("overflow", self.overflows.append)
        session.on("compacted", self.boundaries.append)
        session.on("pruned", self.boundaries.append)

    @property
    def dialect(self):
        return self.talking.dialect

    async def turn(self, number, lines):
        """A question, a tool round that the harness puts in, and the model's reply."""
        call = f"call_{number}"
        told, read = lines
        await self.session.append(user_message(asked(number, told)))
        self.check(await self.session.context())  # what would be sent before the tool is called
        await self.session.append(call_message(self.dialect, call, "read", {"page": number}))
        await self.session.append(*result_messages(self.dialect, [(call, page(number, read))]))
        await self.session.append(await self.reply())

    async def reply(self):
        while True:
            messages = await self.session.context()
            self.check(messages)
            self.sent += 1
            try:
                return await self.talking.ask(messages, self.session.max_tokens or MOST)
            except Exception as error:
                await self.session.overflowed(
                    error, view=messages, max_tokens=MOST
                )  # else it is raised again

    def check(self, messages):
        self.problems += get(self.dialect).validate(messages)


async def converse(url, turns, lines, dialects=DIALECTS, **setup):
    """Have the same conversation in these dialects, turn by turn, so that the server reads each text only once."""
    done = []
    async with AsyncExitStack() as stack:
        for dialect in dialects:
            talking = await stack.enter_async_context(
                sdk_client(url, dialect, "smollm2", system=SYSTEM, patience=600.0)
            )
            fields = {"dialect": dialect, "system": SYSTEM, **setup}
            if "model" in setup:
                kind = "anthropic" if dialect == "anthropic" else "openai"
                path = "" if dialect == "anthropic" else "/v1"
                fields["model"] = f"{kind}-compatible:smollm2@{url}{path}"
            session = await stack.enter_async_context(foldline.open("memory://", dialect, **fields))
            done.append(Speaker(session, talking))
        for turn in range(turns):
            for speaker in done:
                await speaker.turn(turn, lines)
        for speaker in done:
            await whole(speaker, turns, lines, setup["window"])
    return done


async def whole(speaker, turns, lines, window):
    """Everything that was said is there, and only that; every request was valid; the rule is in the view."""
    session, dialect = speaker.session, speaker.dialect
    figures, history = await session.stats(), await session.history()
    assert speaker.problems == [], dialect
    assert get(dialect).validate(history) == []
    assert figures.total_messages == 4 * turns, dialect
    messages = decode_all(history, dialect)
    for turn in range(turns):
        said, called, result, answer = messages[4 * turn : 4 * turn + 4]
        assert said.text == asked(turn, lines[0])
        assert [call.id for call in called.calls] == [f"call_{turn}"]
        assert [part.text for part in result.results] == [page(turn, lines[1])]
        assert answer.role == "assistant"
    assert speaker.boundaries, dialect
    assert figures.summaries >= 1, dialect
    context = window if isinstance(window, int) else window.context
    assert sum(await received(session)) > context, "the talk must not fit the window"
    assert figures.view_tokens < context
    assert RULE in str(await session.context()), dialect
    assert await session.verify() == []


async def received(session):
    """The tokens of every message, by our own count."""
    return [entry.tokens async for entry in session.store.path(session.id) if hasattr(entry, "said_key")]


async def test_ten_turns_outgrow_a_real_window_and_nobody_notices():
    with running(SMALL) as url:
        for speaker in await converse(url, FEW_TURNS, (7, 2), ["anthropic"], window=SMALL):
            assert speaker.sent >= FEW_TURNS


@pytest.mark.soak
async def test_twenty_turns_in_each_dialect_outgrow_a_real_window(llama):
    for speaker in await converse(llama, TURNS, (10, 4), window=WINDOW):
        assert speaker.sent >= TURNS


@pytest.mark.soak
async def test_two_hundred_turns_in_each_dialect_with_summaries_by_that_model(llama):
    """What it writes is no summary, and the offline checkpoint stands in. It writes until it is stopped, so soon."""
    window = foldline.Window(context=WINDOW, output=64)
    for speaker in await converse(llama, SOAK_TURNS, (4, 12), model="smollm2", window=window):
        assert any(done.receipt.usage is not None for done in speaker.boundaries), "the model was asked"
