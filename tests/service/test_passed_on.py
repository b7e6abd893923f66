"""Paths under `/v1` that are about no conversation: to the right provider, as they came, both ways."""

from __future__ import annotations

import contextlib

import anthropic
import openai
import pytest
from tests.service.served import run_gateway, run_service
from tests.service.upstream import JSON, Prepared, upstream
from tests.support import patient

TOKEN = "Token-for-the-Tests-1"
PATHS = [
    ("POST", "/embeddings", b'{"input":  "a", "model": "m"}'),
    ("POST", "/files", b"--b\r\nno JSON \xff\r\n--b--"),
    ("GET", "/files/f-1/content?after=a%20b&x=1", b""),
    ("POST", "/batches", b"{}"),
    ("GET", "/models/org%2Fname", b""),
    ("GET", "/responses/resp_1?include=a", b""),
    ("DELETE", "/responses/resp_1", b""),
    ("POST", "/responses/resp_1/cancel", b""),
    ("POST", "/audio/speech", b"{}"),
    ("PATCH", "/anything/new", b"{}"),
    ("POST", "/messages/count_tokens", b"{ }"),
    ("GET", "/messages/batches/b-1", b""),
]


@contextlib.contextmanager
def two_upstreams(**changes):
    """Two providers and the gateway; each answers with its own name, in pieces."""
    with upstream() as (one, openai_), upstream() as (other, anthropic_):
        for model, name in ((openai_, b"openai"), (anthropic_, b"anthropic")):
            model.prepared[""] = Prepared(207, [("x-name", name.decode())], [name, b"\xff", b"end"])
        with run_service(openai_upstream=one, anthropic_upstream=other, **changes) as at:
            yield at, openai_, anthropic_


@pytest.fixture(scope="module")
def open_to_all():
    with two_upstreams() as found:
        yield found


@pytest.fixture(scope="module")
def closed():
    with two_upstreams(tokens={TOKEN: "default"}) as found:
        yield found


def came_to(models):
    return [one for model in models for several in model.received.values() for one in several]


@pytest.mark.parametrize("sent", PATHS)
@pytest.mark.parametrize(
    ("headers", "vendor"),
    [
        ({"authorization": "Bearer k"}, "openai"),
        ({"x-api-key": "k"}, "anthropic"),
        ({"authorization": "Bearer k", "anthropic-version": "2023-06-01"}, "anthropic"),
    ],
)
def test_any_other_path_goes_to_its_provider_as_it_came(open_to_all, sent, headers, vendor):
    method, path, body = sent
    at, *models = open_to_all
    for model in models:
        model.received.clear()
    found = patient.request(method, f"{at}/v1{path}", content=body, headers=headers)
    assert (found.status_code, found.content) == (207, vendor.encode() + b"\xffend")
    came = came_to(models)
    assert [(one.path, one.body) for one in came] == [(f"/v1{path}", body)]
    told = dict(came[0].headers)
    assert told.get("content-length", "0") == str(len(body))
    assert {name: told[name] for name in headers} == headers


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {TOKEN}"},
        {"x-api-key": TOKEN},
        {"foldline-token": TOKEN, "authorization": "Bearer theirs"},
        {"cookie": f"a=1; foldline-token={TOKEN}; b=2"},
    ],
)
def test_the_gateways_own_token_never_goes_on(closed, headers):
    at, *models = closed
    for model in models:
        model.received.clear()
    refused = patient.get(f"{at}/v1/files")
    found = patient.get(f"{at}/v1/files", headers=headers)
    assert (refused.status_code, found.status_code) == (401, 207)
    (came,) = came_to(models)
    assert TOKEN not in str(came.headers)
    assert dict(came.headers).get("cookie", "a=1; b=2") == "a=1; b=2"


# ---- the service's own key


TWO_TENANTS = {"token-of-tenant-a": "a", "token-of-tenant-b": "b"}
LENT = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/moderations"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/m-1.5"),
    ("POST", "/v1beta/models/m:generateContent"),
    ("POST", "/v1beta/models/m:countTokens"),
    ("GET", "/v1beta/models/m"),
]
KEPT = [
    ("GET", "/v1/files"),
    ("DELETE", "/v1/files/f-1"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/messages/batches"),
    ("GET", "/v1/chat/completions"),
    ("GET", "/v1/responses/resp_1"),
    ("DELETE", "/v1/models/m"),
    ("GET", "/v1/models/m%2F..%2Ffiles"),
    ("GET", "/v1/models/%252e%252e/files"),
    ("POST", "/v1/embeddings/x"),
    ("GET", "/v1beta/cachedContents"),
    ("GET", "/v1beta/models/m/operations"),
    ("POST", "/v1beta/models/m:batchGenerateContent"),
    ("POST", "/v1beta/models/m:batchGenerateContent%3Fa:generateContent"),
]


@contextlib.contextmanager
def with_keys_of_its_own(monkeypatch, tokens):
    """A service that has a key for each provider, and who may ask."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "key-of-the-service")
    with upstream() as (url, model):
        model.prepared[""] = Prepared(207, JSON, [b"{}"])
        places = dict.fromkeys(("openai_upstream", "anthropic_upstream", "google_upstream"), url)
        with run_service(store="memory://", tokens=tokens, **places) as at:
            yield at, model


def test_several_tenants_share_the_services_key_only_for_what_is_not_kept(monkeypatch):
    mine = {"foldline-token": "token-of-tenant-a"}
    with with_keys_of_its_own(monkeypatch, TWO_TENANTS) as (at, model):
        for method, path in LENT:
            assert patient.request(method, f"{at}{path}", headers=mine).status_code == 207, path
            assert "key-of-the-service" in str(model.received.pop("")[0].headers), path
        for method, path in KEPT:
            found = patient.request(method, f"{at}{path}", headers=mine)
            assert found.status_code in (403, 404), path
            assert ("your own provider key" in found.json()["error"]["message"]) == (found.status_code == 403)
            assert not model.received, path
            if found.status_code == 403:
                own = {**mine, "authorization": "Bearer mine"}
                assert patient.request(method, f"{at}{path}", headers=own).status_code == 207, path
                assert "key-of-the-service" not in str(model.received.pop("")[0].headers), path
        found = patient.get(f"{at}/v1/files", headers={**mine, "anthropic-version": "2023-06-01"})
        assert found.json()["error"]["type"] == "permission_error"


def test_of_several_tenants_none_continues_from_a_reply_that_another_keeps(monkeypatch):
    mine = {"foldline-token": "token-of-tenant-a"}
    kept = {"model": "m", "input": "Go on.", "previous_response_id": "resp_1"}
    with with_keys_of_its_own(monkeypatch, TWO_TENANTS) as (at, model):
        found = patient.post(f"{at}/v1/responses", headers=mine, json=kept)
        assert found.status_code == 403
        assert "your own provider key" in found.json()["error"]["message"]
        assert not model.received
        own = {**mine, "authorization": "Bearer mine"}
        assert patient.post(f"{at}/v1/responses", headers=own, json=kept).status_code == 207
        assert "key-of-the-service" not in str(model.received.pop("")[0].headers)


def test_one_tenant_uses_the_services_key_for_everything(monkeypatch):
    tokens = {"token-of-tenant-a": "a", "another-of-tenant-a": "a"}
    with with_keys_of_its_own(monkeypatch, tokens) as (at, model):
        headers = {"foldline-token": "another-of-tenant-a"}
        assert patient.get(f"{at}/v1/files", headers=headers).status_code == 207
        assert "key-of-the-service" in str(model.received[""][0].headers)


@pytest.mark.parametrize("path", ["models/m:generateContent", "files"])
def test_a_key_in_the_query_of_gemini_is_the_only_one_that_goes_on(path, monkeypatch):
    with with_keys_of_its_own(monkeypatch, TWO_TENANTS) as (at, model):
        headers = {"foldline-token": "token-of-tenant-a"}
        assert patient.post(f"{at}/v1beta/{path}?alt=sse&key=mine", headers=headers).status_code == 207
        (came,) = model.received[""]
        assert came.path == f"/v1beta/{path}?alt=sse&key=mine"
        assert "key-of-the-service" not in str(came.headers)


def test_a_large_file_passes_through_and_is_not_held():
    body = b"x" * 3_000_000
    with two_upstreams(max_body=1_000_000) as (at, model, _):
        pieces = (body[at : at + 100_000] for at in range(0, len(body), 100_000))
        found = patient.post(f"{at}/v1/files", content=pieces, headers={"authorization": "Bearer k"})
    assert found.status_code == 207
    assert model.received[""][0].body == body


def test_what_the_model_does_not_know_is_its_own_error_in_the_sdks():
    with run_gateway(lambda _: "Yes.") as (at, _):
        with openai.OpenAI(base_url=f"{at}/v1", api_key="any", max_retries=0, timeout=60) as client:
            with pytest.raises(openai.NotFoundError):
                client.embeddings.create(model="m", input="a")
        with anthropic.Anthropic(base_url=at, api_key="any", max_retries=0, timeout=60) as client:
            with pytest.raises(anthropic.NotFoundError):
                client.messages.batches.retrieve("b-1")
