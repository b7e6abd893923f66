"""A session that others opened with a model and a window: the API goes on with those."""

from __future__ import annotations

from tests.service.api.client import api, reply, user

import foldline
from foldline.testing import Scripted

MODEL = "openai:gpt-4o-mini"


def window_of(client):
    return client.get("/sessions/s/stats").json()["stats"]["window"]["context"]


async def test_the_api_goes_on_with_the_window_of_a_session_and_changes_it_by_a_turn_alone(tmp_path):
    place = f"sqlite:///{tmp_path / 's.db'}"
    async with foldline.open(place, "s", model=MODEL, window=9_000) as session:
        await session.append(user("Hi."), reply("Yes?"))
    with api(Scripted(["Here."]), store=place, window=None) as (client, _):
        assert window_of(client) == 9_000
        client.say("s", user("And now?"), reply("Now this."))
    async with foldline.open(place, "s") as session:
        await session.follow()
        assert (session.setup.model, session.setup.window.context) == (MODEL, 9_000)
    with api(Scripted(["Here."]), store=place, window=None) as (client, model):
        client.turn("s", "Go on.")
        assert len(model.requests) == 1
    async with foldline.open(place, "s") as session:
        await session.follow()
        assert session.setup.model.startswith("openai-compatible:scripted@")


async def test_a_window_that_the_service_is_given_wins(tmp_path):
    place = f"sqlite:///{tmp_path / 's.db'}"
    async with foldline.open(place, "s", model=MODEL, window=9_000) as session:
        await session.append(user("Hi."), reply("Yes?"))
    with api(store=place, window=12_000) as (client, _):
        assert window_of(client) == 12_000
