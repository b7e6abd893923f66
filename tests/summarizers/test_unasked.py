"""A policy's `summary_model` that cannot be called, and `per_model`, where a list is folded once."""

import msgspec
import pytest
from tests.summarizers.talking import GOOD, POLICY, coding_session

import foldline
from foldline.core.measure.window import Amount
from foldline.testing import Scripted, serve

TARGET = 3_000
UNASKED = [
    ("anthropic:claude-haiku-4-5", "anthropic:claude-haiku-4-5: no key: set ANTHROPIC_API_KEY"),
    ("nobody:small-1", "unknown provider 'nobody:small-1'"),
    ("small-and-cheap", "small-and-cheap"),
    ("openai:", "openai:"),
]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def rules(name):
    return msgspec.structs.replace(POLICY, summary_model=name)


def own_model(url):
    return f"openai-compatible:scripted@{url}/v1"


def unasked(notes, why):
    return [note for note in notes if "summary_model cannot be asked" in note and why in note]


@pytest.mark.parametrize(("name", "why"), UNASKED)
async def test_a_list_is_folded_by_the_other_model_and_the_receipt_says_so(name, why):
    async with serve(Scripted([GOOD])) as url:
        done = await foldline.acompact(
            coding_session(), TARGET, rules(name), model=own_model(url), window=100_000
        )
        assert done.receipt.summarizer == own_model(url)
        (note,) = unasked(done.receipt.notes, why)
        assert note.endswith(f"{own_model(url)} is asked instead")


@pytest.mark.parametrize(("name", "why"), UNASKED)
def test_a_list_is_folded_by_code_where_no_other_model_is_named(name, why):
    done = foldline.compact(coding_session(), TARGET, rules(name))
    assert done.receipt.summarizer == "offline"
    (note,) = unasked(done.receipt.notes, why)
    assert note.endswith("code alone writes")


@pytest.mark.parametrize(("name", "why"), UNASKED)
async def test_a_session_warns_when_it_is_opened(name, why):
    async with serve(Scripted([GOOD])) as url:
        session = foldline.open("memory://", "s", model=own_model(url), window=100_000, policy=rules(name))
        warnings = []
        session.on("warning", warnings.append)
        async with session:
            assert [unasked([one.text], why) != [] for one in warnings if one.kind == "summary_model"] == [
                True
            ]
            await session.append(*coding_session())
            receipt = await session.compact(target=TARGET)
        assert receipt.summarizer == own_model(url)
        assert len(unasked(receipt.notes, why)) == 1
    assert len([one for one in warnings if one.kind == "summary_model"]) == 1


async def test_who_listens_after_the_opening_hears_it_at_first_use(caplog):
    async with foldline.open("memory://", "s", policy=rules("nobody:small-1")) as session:
        assert "summary_model cannot be asked" in caplog.text
        warnings = []
        session.on("*", warnings.append)
        await session.append(*coding_session())
        (warning,) = [one for one in warnings if one.name == "warning"]
        assert (warning.kind, "code alone writes" in warning.text) == ("summary_model", True)


async def test_a_policy_in_mid_session_has_its_own_model_for_summaries():
    served = Scripted([GOOD])
    async with serve(served) as url, foldline.open("memory://", "s", policy=POLICY) as session:
        warnings = []
        session.on("warning", warnings.append)
        await session.append(*coding_session())
        await session.use_policy(rules("nobody:small-1"))
        await session.context()
        assert [one.kind for one in warnings] == ["summary_model"]
        await session.use_policy(rules(own_model(url)))
        receipt = await session.compact(target=TARGET)
    assert receipt.summarizer == own_model(url)
    assert unasked(receipt.notes, "") == []


async def test_a_model_that_can_be_asked_is_not_warned_of(caplog):
    async with serve(Scripted([GOOD])) as url:
        name = own_model(url)
        async with foldline.open("memory://", "s", model=name, window=100_000, policy=rules(name)) as session:
            await session.append(*coding_session())
            receipt = await session.compact(target=TARGET)
    assert unasked(receipt.notes, "") == []
    assert "summary_model" not in caplog.text


async def test_offline_in_the_policy_has_code_alone_write_and_nobody_is_asked():
    model = Scripted([GOOD])
    async with serve(model) as url:
        done = await foldline.acompact(
            coding_session(), TARGET, rules("offline"), model=own_model(url), window=100_000
        )
    assert done.receipt.summarizer == "offline"
    assert not model.requests
    assert not unasked(done.receipt.notes, "")


def for_models(prefix, **fields):
    return msgspec.structs.replace(POLICY, per_model={prefix: fields})


@pytest.mark.parametrize(("prefix", "asked"), [("openai-compatible:main", 1), ("gpt-", 0)])
async def test_the_summary_model_of_the_model_in_use_is_asked(prefix, asked):
    other = Scripted([GOOD])
    async with serve(Scripted([GOOD])) as own, serve(other) as url:
        writer = f"openai-compatible:small@{url}/v1"
        policy = for_models(prefix, summary_model=writer)
        model = f"openai-compatible:main@{own}/v1"
        done = await foldline.acompact(coding_session(), TARGET, policy, model=model, window=100_000)
    assert len(other.requests) == asked
    assert done.receipt.summarizer == (writer if asked else model)


def test_a_summary_model_that_cannot_be_asked_is_told_for_its_models_alone():
    policy = for_models("gpt-", summary_model="nobody:small-1")
    for model, told in (("openai:gpt-5", True), ("anthropic:claude-sonnet-4-6", False)):
        done = foldline.compact(coding_session(), TARGET, policy, model=model)
        assert any("nobody:small-1" in note for note in done.receipt.notes) is told


def test_every_other_field_counts_too_and_the_budget_with_it():
    changed = {"reserve": Amount(tokens=60_000)}
    plain = msgspec.structs.replace(POLICY, **changed)
    policy = for_models("gpt-", **msgspec.to_builtins(changed))
    long = coding_session() * 8

    def tokens(rules, model):
        return foldline.compact(long, policy=rules, model=model, window=65_000).view_tokens

    assert tokens(policy, "openai:gpt-5") == tokens(plain, "openai:gpt-5") < tokens(POLICY, "openai:gpt-5")
    assert tokens(policy, "openai:o3") == tokens(POLICY, "openai:o3")
