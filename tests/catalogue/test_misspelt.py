"""A provider that is misspelt is refused wherever a model is named; other unknown ones are not."""

from __future__ import annotations

import pytest
from tests.cli.calling import SESSION, run_command

import foldline
from foldline import providers
from foldline.catalogue import Catalogue
from foldline.config import ServeSettings, settings
from foldline.errors import InputError
from foldline.policies import load
from foldline.service.app import make_app
from foldline.service.models import Models

TYPO = "antrhopic:claude-sonnet-4-6"
HINT = "did you mean 'anthropic:claude-sonnet-4-6'"


@pytest.mark.parametrize(
    "name",
    [
        "anthropic:claude-sonnet-4-6",
        "gemini:gemini-2.5-pro",
        "groq:llama-3.3-70b-versatile",
        "openai-compatible:qwen@http://127.0.0.1:1/v1",
        "llama3:8b",
        "llama3:instruct",
        "qwen2.5-coder:latest",
        "mistral-nemo:latest",
        "my-openai-proxy:gpt-5.2",
        "house:gpt-5.2",
        "anthropic/claude-sonnet-4-6:beta",
        "offline",
    ],
)
def test_other_names_are_left_alone(name):
    Catalogue().check(name)


@pytest.mark.parametrize(
    "name", ["opnai:gpt-5.2", "opnai:of-my-own", "Antropic:claude-x", "gemni:gemini-2.5-pro", TYPO]
)
def test_a_misspelt_provider_is_refused_with_the_nearest(name):
    with pytest.raises(InputError, match="did you mean"):
        Catalogue().check(name)


def test_what_is_to_be_asked_names_the_nearest_too():
    with pytest.raises(InputError, match="did you mean 'anthropic'"):
        providers.get(TYPO)


def test_a_name_of_the_users_own_is_no_mistake():
    Catalogue(overrides={"opnai:gpt-5.2": {"context": 1_000}}).check("opnai:gpt-5.2")


async def test_the_library_refuses_it():
    with pytest.raises(InputError, match=HINT):
        foldline.compact([{"role": "user", "content": "hi"}], model=TYPO)
    with pytest.raises(InputError, match=HINT):
        foldline.open("memory://", "one", model=TYPO)
    async with foldline.open("memory://", "one") as session:
        with pytest.raises(InputError, match=HINT):
            await session.use_model(TYPO)


def test_the_settings_and_the_service_refuse_it(monkeypatch):
    with pytest.raises(InputError, match=HINT):
        Models(ServeSettings(model=TYPO), settings())
    monkeypatch.setenv("FOLDLINE_MODEL", TYPO)
    with pytest.raises(InputError, match=HINT):
        foldline.open("memory://", "one")


@pytest.mark.parametrize("name", ["nope", "groq:llama-3.3-70b-versatile", "openai-compatible:m"])
def test_the_service_does_not_start_with_a_model_that_it_cannot_ask(name):
    with pytest.raises(InputError, match=f"'{name}'.*http://"):
        make_app(ServeSettings(model=name))


def test_a_bare_name_for_all_commands_must_have_a_known_window_to_start_the_service(monkeypatch):
    monkeypatch.setenv("FOLDLINE_MODEL", "nope")
    with pytest.raises(InputError, match="unknown provider 'nope'"):
        make_app(ServeSettings(store="memory://"))
    make_app(ServeSettings(store="memory://", window=32_000))
    monkeypatch.setenv("FOLDLINE_MODEL", "claude-sonnet-4-5")
    make_app(ServeSettings(store="memory://"))


WRITER = f'[policies.mine]\nsummary_model = "{TYPO}"\n'
BY_MODEL = f'[policies.mine.per_model."gpt-5"]\nsummary_model = "{TYPO}"\n'


@pytest.mark.parametrize("policies", [WRITER, BY_MODEL])
async def test_a_policy_whose_summaries_it_is_to_write_is_refused(policies, tmp_path, capfdbinary):
    file = tmp_path / "own.toml"
    file.write_text(policies)
    with pytest.raises(InputError, match=HINT):
        foldline.compact([{"role": "user", "content": "hi"}], policy=str(file))
    with pytest.raises(InputError, match=HINT):
        foldline.open("memory://", "one", policy=load(file)["mine"])
    async with foldline.open("memory://", "one") as session:
        with pytest.raises(InputError, match=HINT):
            await session.use_policy(str(file))
    told = run_command(
        capfdbinary, "compact", SESSION, "--target", "9000", "--policies", file, "--policy", "mine"
    )
    assert told.code == 2
    assert "did you mean" in told.err


def test_a_model_for_summaries_in_the_settings_is_refused(tmp_path, monkeypatch):
    (tmp_path / ".foldline").mkdir()
    (tmp_path / ".foldline" / "settings.toml").write_text(f'[compaction]\nmodel = "{TYPO}"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=HINT):
        foldline.open("memory://", "one")


@pytest.mark.parametrize(
    "words",
    [
        ("compact", SESSION, "--target", "9000"),
        ("replay", SESSION),
        ("batch", "fold", SESSION, "-o", "out"),
        ("policies",),
    ],
)
def test_the_command_refuses_it(words, tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    told = run_command(capfdbinary, *words, "--model", TYPO)
    assert told.code == 2
    assert "anthropic" in told.err
    assert "openai-compatible" in told.err
