"""Two services over one store, or a service and a program: each continues with the changes of the other."""

from __future__ import annotations

import contextlib

import pytest
from tests.service.api.client import Client, api, chat, reply, user
from tests.service.served import run_service
from tests.support import patient

import foldline
from foldline.testing import Scripted, serve_in_thread

MODEL = "openai:gpt-4o-mini"


@pytest.fixture
def both(tmp_path, monkeypatch):
    """Clients of two services, and two models that both have configured by name, the usual one first."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with contextlib.ExitStack() as stack:
        models = {}
        for _ in range(2):
            model = Scripted(lambda asked: f"Answer {asked.index}.")
            at = stack.enter_context(serve_in_thread(model))
            models[f"openai-compatible:scripted@{at}/v1"] = model
        usual, other = models
        settings = tmp_path / ".foldline/settings.toml"
        settings.parent.mkdir()
        settings.write_text(f'[models."{other}"]\ncontext = 30000\n')
        store = f"sqlite:///{tmp_path / 's.db'}"
        clients = [
            Client(stack.enter_context(run_service(model=usual, store=store, summaries="upstream")))
            for _ in range(2)
        ]
        for one in clients:
            stack.callback(one.close)
        yield clients, models


def test_a_session_that_the_other_service_begins_anew_is_opened_as_that_one(both):
    (one, two), _ = both
    for first, second in ((one, two), (two, one)):
        one.begin("s", policy="pi", system="Old.", messages=[user("Hello."), reply("Hello.")])
        assert [each.get("/sessions/s/view").json()["system"] for each in (one, two)] == ["Old.", "Old."]
        first.send("DELETE", "/sessions/s")
        second.begin("s", policy="codex", system="New.", messages=[user("Hello.")])
        for each in (one, two):
            assert each.get("/sessions/s/view").json()["system"] == "New."
            assert each.get("/sessions/s").json()["policy"] == "codex"
        first.send("DELETE", "/sessions/s")


def asked(models):
    return [len(model.requests) for model in models.values()]


def model_of(client):
    return client.get("/sessions/s").json()["model"]


def test_the_model_that_a_turn_chose_at_one_service_is_gone_on_with_at_the_other(both):
    (one, two), models = both
    usual, other = models
    one.begin("s", messages=chat(8))
    assert [model_of(one), model_of(two)] == [usual, usual]
    one.turn("s", "Which model is this?", model=other)
    assert asked(models) == [0, 1]
    two.say("s", user("And now?"), reply("Now this."))
    assert [model_of(one), model_of(two)] == [other, other]
    assert two.get("/sessions/s/stats").json()["stats"]["window"]["context"] == 30_000
    two.post("/sessions/s/compact")  # that model writes the summary as well
    assert two.get("/sessions/s/stats").json()["stats"]["summaries"] == 1
    assert asked(models)[0] == 0
    before = asked(models)[1]
    assert before > 1
    two.turn("s", "And which is it now?")
    assert asked(models) == [0, before + 1]
    two.turn("s", "Back.", model=usual)
    one.turn("s", "Which one?")
    assert asked(models) == [2, before + 1]


def test_a_session_that_an_agent_began_has_its_summaries_written_by_the_model_of_a_turn(tmp_path):
    model = Scripted(lambda asked: f"Answer {asked.index}. " + "It is as it was asked for. " * 40)
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(serve_in_thread(model))
        usual, store = f"openai-compatible:scripted@{at}/v1", f"sqlite:///{tmp_path / 's.db'}"
        url = stack.enter_context(
            run_service(model=usual, openai_upstream=f"{at}/v1", store=store, summaries="upstream")
        )
        client = stack.enter_context(contextlib.closing(Client(url)))
        said = {"model": "scripted", "messages": chat(8)}
        headers = {"foldline-session": "s", "authorization": "Bearer mine"}
        assert patient.post(f"{url}/v1/chat/completions", json=said, headers=headers).status_code == 200
        client.turn("s", "And now?")
        before = len(model.requests)
        client.post("/sessions/s/compact")
        assert len(model.requests) > before


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
