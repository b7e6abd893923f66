from __future__ import annotations

import subprocess
import sys

import pytest
from tests.providers.conftest import CALL
from tests.support.rawhttp import json_answer, raw_server
from tests.support.replies import WHOLE

from foldline import providers
from foldline.errors import InputError, ProviderError
from foldline.providers.choose import named


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("openai:gpt-5.2", "openai-chat"),
        ("openai-chat:gpt-5.2", "openai-chat"),
        ("openai-responses:gpt-5.2", "openai-responses"),
        ("anthropic:claude-sonnet-4-6", "anthropic"),
        ("openai-compatible:qwen/qwen3@http://127.0.0.1:8080/v1", "openai-chat"),
        ("anthropic-compatible:mine@http://127.0.0.1:8080", "anthropic"),
    ],
)
def test_a_name_finds_its_provider_without_a_key_or_a_network(name, dialect, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    provider = providers.get(name)
    assert (provider.name, provider.dialect) == (name, dialect)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5.2",
        "",
        "openai:",
        "cohere:x",
        "openai-compatible:mine",
        "openai-compatible:@http://h",
        "openai-compatible:m@h:80",
    ],
)
def test_a_name_that_is_not_understood_is_refused_with_a_remedy(name):
    with pytest.raises(InputError, match="openai"):
        providers.get(name)


def test_a_password_in_a_url_is_refused_without_being_shown():
    with pytest.raises(InputError, match="OPENAI_COMPATIBLE_API_KEY") as caught:
        providers.get("openai-compatible:mine@http://me:secret@127.0.0.1/v1")
    assert "secret" not in str(caught.value)


async def test_what_openai_knows_the_user_by_goes_to_no_other_server(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-mine")
    async with raw_server(json_answer(WHOLE["openai-chat"])) as server:
        provider = providers.get(f"openai-compatible:mine@{server.url}")
        await provider.complete(CALL)
        await provider.close()
    assert "of-mine" not in str(server.requests[0].headers)


def test_a_dialect_that_is_not_spoken_is_refused():
    with pytest.raises(InputError, match="speaks anthropic, not openai-chat"):
        providers.get("anthropic:claude-sonnet-4-6", dialect="openai-chat")
    assert providers.get("openai:gpt-5.2", dialect="openai-responses").dialect == "openai-responses"


@pytest.mark.parametrize("name", ["openai-compatible:mine", "anthropic-compatible:mine"])
async def test_the_keys_of_openai_and_anthropic_go_to_no_server_that_a_name_holds(name, monkeypatch):
    dialect = "anthropic" if name.startswith("anthropic") else "openai-chat"
    async with raw_server(json_answer(WHOLE[dialect])) as server:
        provider = providers.get(f"{name}@{server.url}")
        reply = await provider.complete(CALL)
        await provider.close()
        assert reply.text == "I read it."
        assert "sk-test" not in str(server.requests[0].headers)
        assert server.body["model"] == "mine"
        monkeypatch.setenv(f"{name.split(':')[0].upper().replace('-', '_')}_API_KEY", "key-of-mine")
        provider = providers.get(f"{name}@{server.url}")
        await provider.complete(CALL)
        await provider.close()
        assert "key-of-mine" in str(server.requests[1].headers)


@pytest.mark.parametrize("name", ["openai-compatible:mine", "anthropic-compatible:mine"])
@pytest.mark.parametrize("header", ["Authorization", "authorization"])
async def test_headers_of_the_environment_go_to_no_server_that_a_name_holds(name, header, monkeypatch):
    for variable in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(variable, f"X-Gate: secret\n{header}: Bearer secret")
    dialect = "anthropic" if name.startswith("anthropic") else "openai-chat"
    async with raw_server(json_answer(WHOLE[dialect])) as server:
        provider = providers.get(f"{name}@{server.url}", api_key=" mine\n")
        await provider.complete(CALL)
        await provider.close()
    assert server.requests[0].headers["authorization"] == "Bearer mine"
    assert "secret" not in str(server.requests[0].headers)


async def test_a_key_with_an_invalid_character_is_refused(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk\u2013dash")
    with pytest.raises(ProviderError, match="OPENAI_API_KEY contains a character") as caught:
        await providers.get("openai:gpt-5.2").complete(CALL)
    assert caught.value.kind == "auth"


@pytest.mark.parametrize(
    ("model", "url"), [("@cf/meta/llama", "https://h/v1"), ("m@2025", "https://h/v1"), ("m", "https://h/p@q")]
)
def test_models_and_paths_may_hold_an_at(model, url):
    parts = named(f"openai-compatible:{model}@{url}")
    assert (parts.model, parts.base_url) == (model, url)


async def test_anthropics_other_variable_is_read_too(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-mine")
    assert providers.missing("anthropic:claude-sonnet-4-6") is None
    async with raw_server(json_answer(WHOLE["anthropic"])) as server:
        provider = providers.get("anthropic:claude-sonnet-4-6", base_url=server.url)
        await provider.complete(CALL)
        await provider.close()
    assert server.requests[0].headers["authorization"] == "Bearer token-of-mine"


def test_what_is_missing_is_said_before_a_call(monkeypatch):
    assert providers.missing("openai:gpt-5.2") is None
    assert providers.missing("openai-compatible:mine@http://127.0.0.1:8080/v1") is None
    monkeypatch.delenv("OPENAI_API_KEY")
    assert providers.missing("openai:gpt-5.2") == "no key: set OPENAI_API_KEY"
    assert providers.missing("openai:gpt-5.2", api_key="given") is None
    monkeypatch.setattr("foldline.providers.choose.installed", lambda package: False)
    assert "pip install 'foldline[openai]'" in (providers.missing("openai:gpt-5.2") or "")


async def test_offline_refuses_every_call_for_good():
    provider = providers.get("offline")
    assert provider.name == "offline"
    assert providers.missing("offline")
    with pytest.raises(ProviderError) as caught:
        await provider.complete(CALL)
    assert not caught.value.transient
    with pytest.raises(ProviderError):
        await anext(aiter(provider.stream(CALL)))
    await provider.close()


def test_importing_reads_no_sdk():
    code = (
        "import sys, foldline.providers as p; p.get('openai:gpt-5.2'); p.get('anthropic:claude-sonnet-4-6'); "
        "print([m for m in sys.modules if m.split('.')[0] in ('openai', 'anthropic', 'stamina', 'httpx2', 'asyncio.x')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
