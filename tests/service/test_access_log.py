"""The log of the service: a line for each request, and an id that leads from the client to the model and back."""

from __future__ import annotations

import json

import pytest
from tests.service.api.client import user
from tests.service.supervised import supervised
from tests.service.upstream import JSON, Prepared, served_upstream
from tests.support import patient
from tests.support.waiting import wait_until

from foldline.service.tokens import hashed, new_token

TOKEN = new_token()
BODY = {"model": "m", "messages": [user("A word that is not logged: xylophone.")]}


def logged(home):
    return [json.loads(line) for line in (home / "errors.txt").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_each_request_is_a_line_of_json_without_what_is_secret(tmp_path, workers):
    (tmp_path / ".foldline").mkdir()
    (tmp_path / ".foldline/settings.toml").write_text(
        f'[serve.tokens]\n"{hashed(TOKEN)}" = {{ tenant = "acme", name = "ci" }}\n'
    )
    options = ["--log", "json", "--store", f"sqlite:///{tmp_path}/s.db", "--workers", str(workers)]
    options += ["--openai-upstream", "http://127.0.0.1:9/v1"]
    headers = {"authorization": f"Bearer {TOKEN}"}
    with supervised(tmp_path, *options) as service:
        url = service.url
        patient.post(f"{url}/api/sessions", json={"id": "one"}, headers=headers)
        patient.post(
            f"{url}/v1/chat/completions?key=a-key", json=BODY, headers={**headers, "x-request-id": "r-7"}
        )
        patient.get(f"{url}/api/sessions/{TOKEN}")
        wait_until(
            lambda: len([one for one in logged(tmp_path) if one["logger"] == "foldline.access"]) == 3, 60
        )
        service.stop()
    lines = {one["status"]: one for one in logged(tmp_path) if one["logger"] == "foldline.access"}
    begun, failed, refused = (lines[status] for status in (201, 502, 401))  # a line comes behind its answer
    assert (begun["method"], begun["path"]) == ("POST", "/api/sessions")
    assert (begun["tenant"], begun["token"], begun["client"]) == ("acme", "ci", "127.0.0.1")
    assert begun["milliseconds"] > 0
    assert len(begun["request_id"]) == 32
    assert failed["request_id"] == "r-7"
    (why,) = (one for one in logged(tmp_path) if "cannot be reached" in one["message"])
    assert (why["level"], why["request_id"]) == ("warning", "r-7")
    assert "the model at 127.0.0.1:" in why["message"]
    assert refused["path"] == "[a token]"
    text = (tmp_path / "errors.txt").read_text()
    for secret in (TOKEN, "a-key", "xylophone"):
        assert secret not in text


def test_the_id_of_a_request_goes_to_the_model_and_back():
    with served_upstream(store="memory://", tokens={hashed(TOKEN): "a"}) as (at, model):
        model.prepared[""] = Prepared(200, JSON, [b"{}"])

        def ask(path="/v1/chat/completions", **headers):
            given = {
                "foldline-token": TOKEN,
                **{name.replace("_", "-"): value for name, value in headers.items()},
            }
            found = patient.post(f"{at}{path}", json=BODY, headers=given)
            ((came,),) = (model.received.pop("", [None]),)
            return found.headers["x-request-id"], came and dict(came.headers)["x-request-id"]

        assert ask(x_request_id="mine-1") == ("mine-1", "mine-1")
        made, came = ask()
        assert made == came
        assert len(made) == 32
        for wrong in (TOKEN, "two words", "x" * 129):
            back, _ = ask(x_request_id=wrong)
            assert back != wrong
            assert len(back) == 32
        assert ask("/api/none", x_request_id="mine-2") == ("mine-2", None)
        model.prepared[""] = Prepared(200, [("x-request-id", "theirs")], [b"{}"])
        assert ask(x_request_id="mine-3") == ("theirs", "mine-3")
