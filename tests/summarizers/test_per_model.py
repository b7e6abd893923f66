"""`per_model` of a policy counts for the model in use where a list is folded once, as it does in a session."""

import msgspec
import pytest
from tests.summarizers.talking import GOOD, POLICY, work

import foldline
from foldline.core.measure.window import Amount
from foldline.testing import Scripted, serve

TARGET = 3_000


def for_models(prefix, **fields):
    return msgspec.structs.replace(POLICY, per_model={prefix: fields})


@pytest.mark.parametrize(("prefix", "asked"), [("openai-compatible:main", 1), ("gpt-", 0)])
async def test_the_summary_model_of_the_model_in_use_is_asked(prefix, asked):
    other = Scripted([GOOD])
    async with serve(Scripted([GOOD])) as own, serve(other) as url:
        writer = f"openai-compatible:small@{url}/v1"
        policy = for_models(prefix, summary_model=writer)
        model = f"openai-compatible:main@{own}/v1"
        done = await foldline.acompact(work(), TARGET, policy, model=model, window=100_000)
    assert len(other.requests) == asked
    assert done.receipt.summarizer == (writer if asked else model)


def test_a_summary_model_that_cannot_be_asked_is_told_for_its_models_alone():
    policy = for_models("gpt-", summary_model="nobody:small-1")
    for model, told in (("openai:gpt-5", True), ("anthropic:claude-sonnet-4-6", False)):
        done = foldline.compact(work(), TARGET, policy, model=model)
        assert any("nobody:small-1" in note for note in done.receipt.notes) is told


def test_every_other_field_counts_too_and_the_budget_with_it():
    changed = {"reserve": Amount(tokens=60_000)}
    plain = msgspec.structs.replace(POLICY, **changed)
    policy = for_models("gpt-", **msgspec.to_builtins(changed))
    long = work() * 8

    def tokens(rules, model):
        return foldline.compact(long, policy=rules, model=model, window=65_000).view_tokens

    assert tokens(policy, "openai:gpt-5") == tokens(plain, "openai:gpt-5") < tokens(POLICY, "openai:gpt-5")
    assert tokens(policy, "openai:o3") == tokens(POLICY, "openai:o3")
