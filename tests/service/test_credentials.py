"""Keys: whose pays for what is asked, and that no token of the service ever leaves it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from tests.service.api.client import FILLER, Client, reply, user
from tests.service.served import run_gateway, run_service
from tests.service.supervised import supervised
from tests.service.upstream import JSON, Prepared, served_upstream
from tests.support import patient

from foldline.config import ServeSettings
from foldline.errors import InputError
from foldline.service.gateway.agent_session import AgentSession
from foldline.service.tenants import Tenants
from foldline.testing import Scripted, serve_in_thread

pytestmark = pytest.mark.slow

TOKEN = "Walrus-4711-Token-0815"
OTHER = "heron.9f8e7d6c5b4a3210"
SUMMARY = "## Goal\nMend the parser.\n\n## Progress\n- It was read, and its tests were run.\n\n## Next steps\n- Go on.\n"


class Paid(Scripted):
    """A model that notes the key of every reply and of every summary."""

    def __init__(self, **given):
        super().__init__(self._says, **given)
        self.summaries = []
        self.replies = []

    def _says(self, asked):
        reply = str(asked.messages[-1]["content"]).startswith("Question")
        key = asked.headers.get("x-api-key") or asked.headers["authorization"].removeprefix("Bearer ")
        (self.replies if reply else self.summaries).append((key, len(self.replies)))
        return f"Answer {asked.index}. " + FILLER if reply else SUMMARY


class Talk:
    """One conversation, that several users go on with, each with a key of their own."""

    def __init__(self, url, path):
        self.url, self.path, self.messages = url, path, []

    def ask(self, **headers):
        self.messages.append({"role": "user", "content": f"Question {len(self.messages)}. {FILLER}"})
        body = {"model": "m", "max_tokens": 900, "messages": self.messages}
        found = httpx2.post(f"{self.url}/v1{self.path}", json=body, headers=headers, timeout=60)
        assert found.status_code == 200, found.text
        told = found.json()
        text = told["content"][0]["text"] if "content" in told else told["choices"][0]["message"]["content"]
        self.messages.append({"role": "assistant", "content": text})


WAYS = [
    ("/chat/completions", lambda key: {"authorization": f"Bearer {key}"}),
    ("/chat/completions", lambda key: {"authorization": f"bearer {key}"}),
    ("/messages", lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"}),
]


@pytest.mark.parametrize(("path", "with_key"), WAYS)
def test_each_summary_is_paid_by_the_request_that_it_is_made_for(path, with_key):
    model = Paid(window=12_000)
    with run_gateway(model, window=12_000, summaries="upstream") as (url, _):
        talk = Talk(url, path)
        for key, turns in (("key-of-ada", 2), ("key-of-bob", 18), ("key-of-cleo", 18)):
            for _ in range(turns):
                talk.ask(**with_key(key))
    assert {key.removeprefix("bearer ") for key, _ in model.summaries} == {"key-of-bob", "key-of-cleo"}
    late = [key for key, replies in model.summaries if replies > 24]  # a draft of Bob's has come by then
    assert late
    assert all("cleo" in key for key in late), " ".join(f"{k[-3:]}{n}" for k, n in model.summaries)


def test_the_api_does_not_spend_the_key_of_an_agent_nor_an_agent_that_of_the_service():
    model = Paid(window=12_000)
    with run_gateway(model, window=12_000, fold_at=60_000, summaries="upstream") as (url, _):
        talk = Talk(url, "/chat/completions")
        for _ in range(4):
            talk.ask(authorization="Bearer key-of-ada")
        client = Client(url)
        (session,) = client.get("/sessions").json()["sessions"]
        client.post(f"/sessions/{session['id']}/compact", {})
        client.close()
    assert not model.summaries


def test_a_turn_of_the_api_beside_a_request_does_not_change_who_pays(monkeypatch):
    model, begun, gate, context = (
        Paid(window=12_000),
        threading.Event(),
        threading.Event(),
        AgentSession.context,
    )

    async def held(talk):
        begun.set()
        await asyncio.to_thread(gate.wait, 120)
        return await context(talk)

    monkeypatch.setattr(AgentSession, "context", held)
    with (
        serve_in_thread(model) as url,
        run_service(
            openai_upstream=url,
            model=f"openai-compatible:m@{url}/v1",
            window=12_000,
            store="memory://",
            summaries="upstream",
        ) as at,
    ):
        talk = Talk(at, "/chat/completions")
        talk.messages = [(reply if number % 2 else user)(f"It is {number}. {FILLER}") for number in range(28)]
        asking = threading.Thread(target=talk.ask, kwargs={"authorization": "Bearer key-of-ada"})
        asking.start()
        try:
            assert begun.wait(120)
            client = Client(at)
            (session,) = client.get("/sessions").json()["sessions"]
            client.turn(session["id"], messages=[{"role": "nobody"}], status=400)  # the model is set by then
            client.close()
        finally:
            gate.set()
            asking.join(120)
    assert {key for key, _ in model.summaries} == {"key-of-ada"}


# ---- tokens of the service


def coded(text):
    return base64.b64encode(text.encode()).decode()


PLACES = {
    "two headers": {"authorization": f"Bearer {TOKEN}", "x-api-key": TOKEN},
    "beside another vendor's key": {"authorization": f"Bearer {TOKEN}", "api-key": TOKEN},
    "small letters": {"authorization": f"bearer {TOKEN}", "x-goog-api-key": TOKEN},
    "an unknown header": {"x-api-key": TOKEN, "x-mine": f"key={TOKEN};v=1"},
    "a foreign cookie": {"x-api-key": TOKEN, "cookie": f"a=1; session={TOKEN}; b=2"},
    "a cookie alone": {"foldline-token": TOKEN, "cookie": f"t={quote(TOKEN)}"},
    "another tenant's": {"foldline-token": TOKEN, "authorization": f"Bearer {OTHER}"},
    "basic": {"foldline-token": TOKEN, "authorization": f"Basic {coded('user:' + TOKEN)}"},
    "a page's address": {"x-api-key": TOKEN, "referer": f"http://a.example/?token={quote(TOKEN, safe='')}"},
    "a header's name": {"x-api-key": TOKEN, TOKEN: "1"},
}
QUERIES = [
    "",
    f"?key={TOKEN}&x=1",
    f"?x=1&a={OTHER.replace('.', '%2E')}",
    f"?x=1&{TOKEN}",
    f"?x=1&a=%25{ord('W'):x}{TOKEN[1:]}",
]


@pytest.fixture(scope="module")
def closed():
    """An upstream, and the service of two tenants in front of it."""
    tokens = {TOKEN: "a", OTHER: "b"}
    with served_upstream(store="memory://", tokens=tokens) as (at, model):
        model.prepared[""] = Prepared(200, JSON, [b"{}"])
        yield at, model


@pytest.mark.parametrize("headers", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/chat/completions"), ("POST", "/messages"), ("GET", "/files")]
)
def test_no_token_of_the_service_leaves_it(closed, headers, query, method, path):
    at, model = closed
    model.received.clear()
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello."}]})
    more = {"content": body} if method == "POST" else {}
    found = patient.request(method, f"{at}/v1{path}{query}", headers=headers, **more)
    assert found.status_code == 200, found.text
    (came,) = model.received[""]
    sent = f"{came.path} {came.headers}"
    for form in (sent.lower(), httpx2.URL(came.path).query.decode().lower()):
        assert TOKEN.lower() not in form
        assert OTHER not in form
    assert not [value for _, value in came.headers if coded("user:" + TOKEN) in value]
    assert dict(came.headers).get("cookie", "a=1; b=2") == "a=1; b=2"
    assert ("x=1" in came.path) == bool(query)


def test_a_token_in_the_path_is_refused():
    with served_upstream(store="memory://", tokens={TOKEN: "a"}) as (at, model):
        for path in (f"/files/{TOKEN}", f"/files/%57{TOKEN[1:]}", f"/{TOKEN}/x"):
            found = patient.get(f"{at}/v1{path}", headers={"authorization": f"Bearer {TOKEN}"})
            assert (found.status_code, TOKEN in found.text) == (400, False)
        assert not model.received


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_read_whatever_its_letters(scheme):
    with run_service(store="memory://", tokens={TOKEN: "a"}) as at:
        headers = {"authorization": f"{scheme} {TOKEN}"}
        assert patient.get(f"{at}/api/sessions", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "token",
    ["", "x", "fifteen-letters", "has a blank in its middle", "grün-und-lang-genug", "a\nlong-enough-token"],
)
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused_with_what_to_do(token):
    with pytest.raises(InputError, match="openssl rand"):
        Tenants(ServeSettings(tokens={token: "a"}), "memory://")


# ---- where the one token of a service is given


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        (["--token-file", "token"], {}),
        (["--token-file", "~/token"], {"FOLDLINE_TOKEN": OTHER}),
        ([], {"FOLDLINE_TOKEN": TOKEN}),
        (["--token", TOKEN], {"FOLDLINE_TOKEN": OTHER}),
    ],
)
def test_a_token_is_taken_from_a_file_the_environment_or_a_flag_in_place_of_those_that_are_set(
    tmp_path, options, environment
):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / ".foldline").mkdir()
    (tmp_path / ".foldline/settings.toml").write_text('[serve.tokens]\n"set-for-another-one" = "other"\n')
    with supervised(tmp_path, "--store", "memory://", *options, env=environment) as service:
        statuses = {
            token: patient.get(f"{service.url}/api/sessions", headers={"foldline-token": token}).status_code
            for token in (TOKEN, OTHER, "set-for-another-one")
        }
        line = Path(f"/proc/{service.process.pid}/cmdline")
        shown = line.is_file() and TOKEN.encode() in line.read_bytes()
    assert statuses == {TOKEN: 200, OTHER: 401, "set-for-another-one": 401}
    assert not shown or "--token" in options


@pytest.mark.parametrize(
    ("options", "token", "told"),
    [
        (["--token-file", "none"], "", "--token-file none: cannot be read: No such file or directory\n"),
        (["--token-file", "."], "", "--token-file .: cannot be read"),
        (["--token-file", "empty"], "", "openssl rand"),
        (["--token-file", "two"], "", "openssl rand"),
        (["--token-file", "latin"], "", "--token-file latin: cannot be read: it is not UTF-8 text"),
        (["--token-file", "pipe"], "", "pipe"),
        (["--token-file", "two", "--token", TOKEN], "", "give only one of them"),
        (["--token", ""], OTHER, "openssl rand"),
        ([], "short", "openssl rand"),
        (["--host", "0.0.0.0"], "", "--token-file"),
    ],
)
def test_a_token_that_cannot_be_taken_is_told_with_where_it_stands(tmp_path, options, token, told):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "two").write_text(f"{TOKEN}\n{OTHER}\n")
    (tmp_path / "latin").write_bytes(b"a-long-token-of-n\xfcrnberg")
    os.mkfifo(tmp_path / "pipe")
    done = subprocess.run(
        [sys.executable, "-m", "foldline", "serve", "--port", "0", "--store", "memory://", *options],
        env={**os.environ, "HOME": str(tmp_path), "FOLDLINE_TOKEN": token},
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert TOKEN not in done.stderr
