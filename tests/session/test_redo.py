"""Undo and redo in any order with folds, ranges, branches, merges and reopening: no internal error, views to send."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

import foldline
from foldline.dialects import get


async def talk(session, number):
    for text in range(4):
        await session.append(
            {"role": "user", "content": f"Please change file {number} {text}. " + "word " * 400}
        )
        await session.append({"role": "assistant", "content": f"Changed {number} {text}. " + "done " * 400})


KINDS = [
    "say", "compact", "up_to", "since", "undo", "redo", "rewind", "pin", "branch", "merge", "reopen",
]  # fmt: skip
STEPS = st.lists(st.sampled_from(KINDS), max_size=14)


async def played(steps):
    store = foldline.stores.MemoryStore()
    session = foldline.open(store, "s", window=60_000)
    await talk(session, 0)
    for number, step in enumerate(steps, 1):
        try:
            if step == "say":
                await talk(session, number)
            elif step in ("pin", "branch") and not await session.entries():
                continue
            elif step == "pin":
                await session.pin((await session.entries())[0].entry)
            elif step == "branch":
                await session.branch((await session.entries())[-1].entry)
            elif step in ("up_to", "since"):
                kept = [one.entry for one in await session.entries() if one.how == "kept"]
                await session.compact(**{step: kept[len(kept) // 2] if kept else ""})
            elif step == "merge":
                others = [one.leaf for one in await session.branches() if not one.current]
                await session.merge(others[0] if others else "")
            elif step == "reopen":
                before = await session.context()
                await session.close()
                session = foldline.open(store, "s", window=60_000)
                assert await session.context() == before
            else:
                await getattr(session, step)()
        except foldline.FoldlineError:
            pass
        view = await session.context()
        assert not view or get("openai-chat").validate(view) == []
    assert await store.verify() == []
    await session.close()


@given(steps=STEPS)
@settings(max_examples=25, deadline=None)
def test_any_sequence_of_steps_gives_views_that_can_be_sent(steps):
    asyncio.run(played(steps))
