"""The very preview that was shown is what is committed: with a focus, pins, and the summary as the user edited it."""

from __future__ import annotations

import pytest
from tests.support.live import run_turns, session_on
from tests.support.talk import user

from foldline.core.decide.ask import Nothing
from foldline.core.log.codec import encode
from foldline.core.log.entries import Compacted
from foldline.errors import InputError


async def previewed(session, **more):
    await session.append(user("Never push to main. Always use tabs."))
    await run_turns(session, 6)
    preview = await session.preview("look at part 1", target=3_000, **more)
    assert not isinstance(preview, Nothing)
    return preview


async def test_what_was_shown_is_what_is_appended(store):
    session = session_on(store)
    preview = await previewed(session)
    receipt = await session.commit(preview)
    boundary = [entry async for entry in store.path(session.id) if isinstance(entry, Compacted)][-1]
    assert boundary.checkpoint.summary == preview.summary
    assert boundary.first_kept == preview.boundary.first_kept
    assert receipt.tokens_after == preview.receipt.tokens_after


async def test_pins_and_messages_that_came_after_the_preview_are_in_the_view(store):
    session = session_on(store)
    preview = await previewed(session)
    first = (await session.entries())[1].entry
    await session.pin(first)
    await session.append(user("One more thing."))
    await session.commit(preview)
    text = str(await session.context())
    assert (await session.entries())[1].pinned
    assert "One more thing." in text
    assert preview.summary.splitlines()[0] in text


async def test_an_edited_summary_says_no_part_of_a_secret_of_the_view(store):
    session = session_on(store)
    await session.append(user("Log in with password=Pelican7!Harbor#42 please."))
    preview = await previewed(session)
    await session.append(user("The new one is password=Walrus9!Lantern#17."))
    await session.commit(
        preview, summary="## Goal\nShip it with Pelican7!Harbor#42, then Lantern#17 and Walrus9!Lantern."
    )
    boundary = [entry async for entry in store.path(session.id) if isinstance(entry, Compacted)][-1]
    said = encode([boundary]).decode()
    assert "Ship it with" in said
    assert "Harbor" not in said
    assert "Walrus9!Lantern" not in said


async def test_an_edited_summary_is_committed_and_drops_the_rules_that_were_taken_out(store):
    session = session_on(store)
    preview = await previewed(session)
    assert "Never push to main." in preview.summary
    receipt = await session.commit(
        preview, summary="## Goal\nShip it.\n\nAlways use tabs. key sk-ant-api03-" + "a" * 95
    )
    assert receipt.summarizer == "by hand"
    text = str(await session.context())
    assert "Ship it." in text
    assert "sk-ant-api03-aaaa" not in text
    await run_turns(session, 6, start=20)
    await session.compact(target=3_000)
    boundary = [entry async for entry in store.path(session.id) if isinstance(entry, Compacted)][-1]
    assert [fact["text"] for fact in boundary.ledger["constraints"]] == ["Always use tabs."]


async def test_a_preview_of_a_path_that_was_folded_since_is_not_committed(store):
    session = session_on(store)
    preview = await previewed(session)
    assert not isinstance(await session.compact(target=4_000), Nothing)
    before = session.leaf
    found = await session.commit(preview)
    assert isinstance(found, Nothing)
    assert session.leaf == before


async def test_what_is_no_preview_is_refused_in_words(store):
    session = session_on(store)
    nothing = await session.preview()
    for given in (nothing, None):
        with pytest.raises(InputError, match=r"Nothing\(why='nothing_new'|None cannot be committed"):
            await session.commit(given)


async def test_an_empty_summary_is_refused(store):
    session = session_on(store)
    preview = await previewed(session)
    with pytest.raises(InputError, match="summary is empty"):
        await session.commit(preview, summary=" \n")
