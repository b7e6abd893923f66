"""Two services over one store: what one of them changes, the other one goes on with."""

from __future__ import annotations

import contextlib

import pytest
from tests.service.api.client import Client, reply, user
from tests.service.served import served

from foldline.testing import Scripted, serve_in_thread


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
        clients = [Client(stack.enter_context(served(model=usual, store=store))) for _ in range(2)]
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
