"""Five thousand turns with tools against a strict model: no error, nothing lost, and each turn as much work as any other."""

from __future__ import annotations

import sys
import time

import msgspec
import pytest
from tests.support.talkers import DIALECTS, result_messages, user_message
from tests.support.work import Calls

import foldline
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import OFFLINE
from foldline.dialects import get
from foldline.providers import Call
from foldline.testing import Answer, Scripted, call

WINDOW = 8_000
RULE = "Never touch licence.txt."
BLOCK = 250  # turns whose work is added up: a dozen boundaries and more


class Work(Calls):
    """What was done: entries read from the store, characters counted, messages rendered, functions called."""

    entries = characters = messages = 0

    def figures(self):
        return self.entries, self.characters, self.messages, self.calls


class Counting:
    """The offline counter, and how much it was given to count."""

    name = OFFLINE.name

    def __init__(self, work):
        self.work = work

    def count(self, text):
        self.work.characters += len(text)
        return OFFLINE.count(text)


def watch(store, work):
    """Count every entry that is read from a store."""
    active, entry, entries, path = store.active, store.entry, store.entries, store.path

    async def counted_active(*args, **named):
        found = await active(*args, **named)
        work.entries += len(found)
        return found

    async def counted_entry(*args, **named):
        work.entries += 1
        return await entry(*args, **named)

    async def counted_entries(session, ids):
        work.entries += len(ids)
        return await entries(session, ids)

    async def counted_path(*args, **named):
        async for one in path(*args, **named):
            work.entries += 1
            yield one

    store.active, store.entry, store.entries, store.path = (
        counted_active,
        counted_entry,
        counted_entries,
        counted_path,
    )


def says(asked):
    """Read a file, then answer."""
    newest = asked.messages[-1]
    if newest.get("role") == "user" and isinstance(newest.get("content"), str):
        return call("read", path=f"src/part_{asked.index // 2}.py")
    return Answer(text=f"Part {asked.index // 2} counts its limit from one." + " It should not." * 8)


def asked_in(turn):
    rule = f" {RULE}" if turn == 0 else ""
    return f"Turn {turn}: what does src/part_{turn}.py do with the limit?{rule}"


def result_in(turn):
    return "\n".join(f"limit_{turn} = {line} * size_{turn}" for line in range(12))


async def turn_of(session, model, turn, work):
    """One turn: asked, called, answered. Whatever is refused is raised."""
    dialect = model.dialect
    await session.append(user_message(asked_in(turn)))
    for _ in range(2):
        messages = await session.context()
        work.messages += len(messages)
        reply = await model.complete(Call(messages=messages, max_tokens=600))
        ids = await session.append(reply.native)
        made = session._shared.cursor.state.kept[-1].message
        if made.calls:
            await session.append(*result_messages(dialect, [(made.calls[0].id, result_in(turn))]))
        assert ids


async def long(turns, dialect, url):
    """Have the conversation; return the work and the seconds of each block of turns, and check what is left of it."""
    work, blocks = Work(), []
    model = Scripted(says, window=WINDOW, dialect=dialect, keep=1)
    async with foldline.open(url, "s", window=WINDOW, dialect=dialect, counter=Counting(work)) as session:
        watch(session.store, work)
        before, started = work.figures(), time.process_time()
        for turn in range(turns):
            if turn % BLOCK == 0:
                sys.setprofile(work.profile)
            await turn_of(session, model, turn, work)
            if turn % BLOCK == BLOCK - 1:
                sys.setprofile(None)
                spent = time.process_time() - started
                blocks.append((*(new - old for new, old in zip(work.figures(), before, strict=True)), spent))
                before, started = work.figures(), time.process_time()
        await whole(session, turns)
    return blocks


async def whole(session, turns):
    """Everything that was said is stored, in order; the user's rule is in the view."""
    found = [entry.message async for entry in session.store.path("s") if isinstance(entry, Said)]
    assert len(found) == 4 * turns
    for turn in range(turns):
        said, called, result, answer = found[4 * turn : 4 * turn + 4]
        assert said.text == asked_in(turn)
        assert [one.name for one in called.calls] == ["read"]
        assert [part.text for part in result.results] == [result_in(turn)]
        assert answer.text.startswith(f"Part {turn} ")
    assert RULE in msgspec.json.encode(await session.context()).decode()
    assert get(session.dialect).validate(await session.history()) == []
    assert await session.verify() == []


def flat(blocks):
    """Whether the last blocks took no more work than the second and third, by any figure."""
    names = ("entries read", "characters counted", "messages rendered", "functions called")
    for place, name in enumerate(names):
        early = sum(block[place] for block in blocks[1:3])
        late = sum(block[place] for block in blocks[-2:])
        assert late <= 1.5 * early, f"{name}: {early:,} in blocks 2 and 3, {late:,} in the last two"


@pytest.mark.soak
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_five_thousand_turns_each_as_much_work_as_any_other(dialect, tmp_path):
    blocks = await long(5_000, dialect, f"sqlite:///{tmp_path}/long.db")
    for number, (*figures, spent) in enumerate(blocks):
        each = f"{spent / BLOCK * 1000:.1f} ms a turn"
        sys.stdout.write(f"turns {number * BLOCK:,} on: {each}, {figures}\n")
    flat(blocks)
