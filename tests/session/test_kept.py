"""The model and the window are part of a session: who opens it without them goes on with those stored."""

from __future__ import annotations

import pytest
from tests.support.live import answer, joined_texts, prompt

import foldline
from foldline.core.log.entries import Noted
from foldline.core.measure.window import Window
from foldline.stores import open_store

SMALL = "openai:gpt-4o-mini"  # 128,000 tokens
LARGE = "openai:gpt-5.2"


@pytest.fixture
def place(tmp_path):
    return f"sqlite:///{tmp_path / 's.db'}"


async def opened(place, **given):
    """Open the session, say something, and return the model and the window that it goes on with."""
    async with foldline.open(place, "s", **given) as session:
        await session.append(prompt(0, lines=1), answer(0, lines=1))
        return session.setup.model, session.setup.window


async def notes(place):
    store = open_store(place)
    found = [one.data async for one in store.path("s") if isinstance(one, Noted) and one.kind == "model"]
    await store.close()
    return found


@pytest.mark.parametrize(
    ("first", "then", "model", "context"),
    [
        ({"model": SMALL}, {}, SMALL, 128_000),
        ({"window": 9_000}, {}, None, 9_000),
        ({"model": SMALL, "window": 9_000}, {}, SMALL, 9_000),
        ({"model": SMALL, "window": Window(context=9_000, output=400)}, {}, SMALL, 9_000),
        ({"model": SMALL, "window": 9_000}, {"model": SMALL}, SMALL, 9_000),
        ({"model": SMALL, "window": 9_000}, {"window": 8_000}, SMALL, 8_000),
        ({"model": SMALL, "window": 9_000}, {"model": LARGE}, LARGE, 400_000),
        ({}, {"model": SMALL}, SMALL, 128_000),
        ({}, {}, None, 200_000),
    ],
)
async def test_what_is_not_given_is_what_is_stored_and_what_is_given_is_stored(
    first, then, model, context, place
):
    await opened(place, **first)
    second = await opened(place, **then)
    assert (second[0], second[1].context) == (model, context)
    assert await opened(place) == second
    assert len(await notes(place)) == bool(first) + (
        then not in ({}, {"model": SMALL}) or bool(then and not first)
    )


async def test_what_a_session_was_changed_to_lasts_behind_boundaries(place):
    async with foldline.open(place, "s", model=LARGE) as session:
        await session.use_model(SMALL, window=20_000)
        for number in range(20):
            await session.append(prompt(number), answer(number))
            await session.compact()
    assert (await opened(place))[0] == SMALL
    assert (await opened(place))[1].context == 20_000


async def test_the_settings_stand_below_what_is_stored(place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".foldline").mkdir()
    (tmp_path / ".foldline/settings.toml").write_text(f'model = "{LARGE}"\nwindow = 50_000\n')
    assert (await opened(place))[1].context == 50_000
    await opened(place, model=SMALL, window=9_000)
    assert await opened(place) == (SMALL, Window(context=9_000, output=16_384))


async def test_a_note_that_nobody_can_read_is_as_none(place):
    async with foldline.open(place, "s") as session:
        await session.append(prompt(0))
        await session.note("model", model=["no", "name"])
    assert (await opened(place))[1].context == 200_000


async def reasons(session):
    await session.context()
    return [receipt.reason for receipt in session_receipts(session)]


def session_receipts(session):
    return [one.receipt for one in session._shared.cursor.state.entries() if hasattr(one, "receipt")]


@pytest.mark.parametrize("changed", [False, True])
async def test_a_first_message_is_no_change_of_the_model(changed, place):
    async with foldline.open(place, "s", model=SMALL, window=9_000) as session:
        if changed:
            await session.use_model(LARGE, window=8_000)
        await session.append({"role": "user", "content": "Read all of this. " * 4_600})
        assert await reasons(session) == ["threshold"]


@pytest.mark.parametrize(
    ("then", "reason"),
    [({}, "threshold"), ({"window": 12_000}, "threshold"), ({"window": 6_000}, "model_switch")],
)
async def test_only_a_smaller_window_than_it_was_kept_with_is_a_switch(then, reason, place):
    async with foldline.open(place, "s", window=9_000) as session:
        for number in range(9):
            await session.append(prompt(number), answer(number))
    async with foldline.open(place, "s", **then) as session:
        await session.append({"role": "user", "content": "Once more, all of it. " * 1_000})
        found = await reasons(session)
        assert (found, "Once more" in joined_texts(list(await session.context()))) == ([reason], True)


async def test_a_fold_made_again_after_an_undo_is_not_labelled_as_a_model_switch(place):
    async with foldline.open(place, "s", window=9_000) as session:
        reasons = []
        for name in ("compacted", "pruned"):
            session.on(name, lambda event: reasons.append(event.receipt.reason))
        await session.append({"role": "user", "content": "Read all of this. " * 4_600})
        await session.context()
        await session.undo()
        await session.context()
        assert reasons == ["threshold", "threshold"]
