"""A session file of our own with a damaged line: what stands behind it is read, and goes on."""

from __future__ import annotations

import asyncio
import io
import json

import pytest
from tests.support.live import policy_with
from tests.support.log import Log

import foldline
from foldline import dialects
from foldline.core.log.entries import Compacted, Pinned, Receipt, Said
from foldline.core.log.log import verify
from foldline.loading import from_own, restore
from foldline.transcripts import dump, read
from foldline.transcripts.records import MessageRecord

WIDE = 6  # turns of each part of the talk


def turn(number: int):
    """A question, a call with its result, and an answer."""
    arguments = json.dumps({"path": f"src/part{number}.py"})
    call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": arguments}}
    return (
        {"role": "user", "content": f"Please mend part {number}. " + "word " * 400},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"def part{number}(): pass\n" * 20},
        {"role": "assistant", "content": f"Part {number} is mended. " + "done " * 400},
    )


async def _written() -> tuple[list, str]:
    """Two compactions, a branch that was left, a pin, a compaction undone and redone."""
    store = foldline.stores.MemoryStore()
    async with foldline.open(store, "s", window=60_000, policy=policy_with(), system="Be brief.") as session:
        for number in range(WIDE):
            await session.append(*turn(number))
        await session.pin((await session.entries())[0].entry)
        assert isinstance(await session.compact(target=5_000), Receipt)
        fork = session.leaf
        await session.append(*turn(90))
        await session.branch(fork)
        for number in range(WIDE, 2 * WIDE):
            await session.append(*turn(number))
        assert isinstance(await session.compact(target=5_000), Receipt)
        await session.undo()
        await session.redo()
        await session.append(*turn(99))
        return [entry async for entry in store.all("s")], session.leaf


@pytest.fixture(scope="module")
def whole():
    entries, leaf = asyncio.run(_written())
    stream = io.BytesIO()
    dump(entries, stream, session="s", leaf=leaf)
    return entries, stream.getvalue().splitlines(keepends=True)


def cut_short(row: bytes) -> bytes:
    return row[: len(row) // 2] + b"\n"


def changed(row: bytes) -> bytes:
    place = next(at for at in range(len(row) // 2, len(row)) if row[at : at + 1].isalpha())
    return row[:place] + (b"y" if row[place : place + 1] == b"x" else b"x") + row[place + 1 :]


DAMAGE = {
    "cut short": cut_short,
    "changed": changed,
    "overwritten": lambda row: b"\0" * (len(row) - 1) + b"\n",
    "not an entry": lambda _: b'{"type":"said"}\n',
    "missing": lambda _: b"",
}


def loaded_from(rows: list[bytes]):
    return from_own(io.BytesIO(b"".join(rows)), "s.jsonl")


def messages_of(entries) -> list[str]:
    return [repr(entry.message) for entry in entries if isinstance(entry, Said)]


async def _opened(log, leaf):
    store = foldline.stores.MemoryStore()
    await restore(store, "s", log, leaf)
    async with foldline.open(store, "s", window=60_000) as session:
        assert await session.verify() == []
        return await session.context()


@pytest.mark.parametrize("how", DAMAGE)
def test_behind_each_damaged_line_everything_is_read(whole, how):
    entries, rows = whole
    for place, lost in enumerate(entries):
        broken = DAMAGE[how](rows[place + 1])
        loaded = loaded_from([*rows[: place + 1], broken, *rows[place + 2 :]])

        rest = [entry for entry in entries if entry.id != lost.id]
        assert messages_of(loaded.log) == messages_of(rest), place
        assert verify(loaded.log) == []
        followed = any(entry.parent == lost.id for entry in entries)
        assert len(loaded.warnings) == (how != "missing" or followed), (place, loaded.warnings)


def test_behind_each_damaged_line_the_session_goes_on(whole):
    entries, rows = whole
    for place, lost in enumerate(entries):
        loaded = loaded_from([*rows[: place + 1], b"\0\n", *rows[place + 2 :]])
        view = asyncio.run(_opened(loaded.log, loaded.entries[-1].id))
        assert dialects.get("openai-chat").validate(list(view)) == [], place
        assert "Please mend part 99" in str(view) or "Please mend part 99" in repr(lost)


def heard(rows) -> list[str]:
    found = read(io.BytesIO(b"".join(rows)), name="s.jsonl")
    return [record.message.text for record in found if isinstance(record, MessageRecord)]


def test_both_readers_go_on_from_the_same_place(whole):
    entries, rows = whole
    for place in range(1, len(rows) - 1):
        broken = [*rows[:place], b"\0\n", *rows[place + 1 :]]
        path = [entry.message.text for entry in loaded_from(broken).entries if isinstance(entry, Said)]
        assert heard(broken) == path, entries[place - 1]


def compactions(entries) -> list[Compacted]:
    return [entry for entry in entries if isinstance(entry, Compacted)]


@pytest.mark.parametrize("how", ["cut short", "changed"])
def test_a_damaged_compaction_is_named_and_the_one_before_it_holds(whole, how):
    entries, rows = whole
    first, second = compactions(entries)
    place = entries.index(second) + 1
    loaded = loaded_from([*rows[:place], DAMAGE[how](rows[place]), *rows[place + 1 :]])

    assert [one.id for one in compactions(loaded.entries)] == [first.id]
    told = loaded.warnings[0]
    assert told.startswith(f"line {place + 1}: ")
    for words in ("s.jsonl", second.id, f"the compaction before it, {first.id}", "compact the session again"):
        assert words in told
    view = asyncio.run(_opened(loaded.log, loaded.entries[-1].id))
    assert first.checkpoint.text in [message["content"] for message in view]


def test_without_its_only_compaction_a_session_is_read_whole(whole):
    entries, rows = whole
    first, _ = compactions(entries)
    rows = rows[: entries.index(compactions(entries)[1]) + 1]
    place = entries.index(first) + 1
    loaded = loaded_from([*rows[:place], cut_short(rows[place]), *rows[place + 1 :]])
    assert "is not folded" in loaded.warnings[0]
    assert len(loaded.warnings) == 1
    assert compactions(loaded.entries) == []
    assert len(messages_of(loaded.entries)) == 2 * WIDE * 4


def test_what_names_an_entry_names_it_by_its_new_id(whole):
    entries, rows = whole
    loaded = loaded_from([*rows[:3], b"garbage\n", *rows[4:]])
    old, new = {entry.id for entry in entries}, {entry.id for entry in loaded.log}
    moved = old - new
    assert len(moved) > WIDE
    for entry in loaded.log:
        if not isinstance(entry, Said):
            assert not {id_ for id_ in moved - {entries[2].id} if id_.encode() in repr(entry).encode()}
    for point in compactions(loaded.log):
        assert {point.first_kept, *point.leading, *point.quoted} - {None} <= new
        assert {edit.entry for edit in point.edits} <= new
    assert {pin.target for pin in loaded.log if isinstance(pin, Pinned)} <= new
    assert Log(loaded.log).verify() == []


def test_a_compaction_keeps_from_the_next_message_where_its_first_kept_is_lost(whole):
    entries, rows = whole
    second = compactions(entries)[1]
    place = next(at for at, entry in enumerate(entries) if entry.id == second.first_kept)
    loaded = loaded_from([*rows[: place + 1], cut_short(rows[place + 1]), *rows[place + 2 :]])
    kept = {entry.id: entry for entry in loaded.log}[compactions(loaded.entries)[1].first_kept]
    assert isinstance(kept, Said)
    assert kept.message == entries[place + 1].message


def test_two_damaged_lines_far_apart_lose_two(whole):
    entries, rows = whole
    broken = list(rows)
    for place in (4, len(rows) - 4):
        broken[place] = b"?\n"
    loaded = loaded_from(broken)
    assert len(messages_of(loaded.log)) >= len(messages_of(entries)) - 2
    assert len(loaded.warnings) == 2
    assert verify(loaded.log) == []
