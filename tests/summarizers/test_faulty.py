"""Behind a bad network every compaction ends in a checkpoint that holds what it must, by a model or by code."""

import pytest
from tests.summarizers.talking import GOOD, OTHER_RULE, POLICY, QUICK, RULE, WINDOW, coding_session, rules_in

import foldline
from foldline.dialects import get
from foldline.summarizers import ModelSummarizer
from foldline.testing import FAULTS, Faulty, Scripted

TARGET = 3_000


def behind(dialect="openai-chat", **faults):
    served = Scripted(lambda asked: GOOD, window=WINDOW, dialect=dialect)
    return Faulty(served, stall=0.01, **faults)


async def folded(provider, **more):
    summarizer = ModelSummarizer(provider, window=WINDOW, patience=QUICK, **more)
    done = await foldline.acompact(coding_session(), TARGET, POLICY, summarizer=summarizer)
    assert done.view_tokens <= TARGET
    assert rules_in(done) == [RULE, OTHER_RULE]
    assert get(done.dialect).validate(done.messages) == []
    return done


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize("seed", range(8))
async def test_whatever_fails_there_is_a_checkpoint(dialect, seed):
    provider = behind(dialect, seed=seed, rates=0.6)
    done = await folded(provider)
    assert done.receipt.summarizer in (provider.name, "offline")
    if done.receipt.summarizer == "offline":
        assert any("wrote no summary" in note or "was rejected" in note for note in done.receipt.notes)


@pytest.mark.parametrize("fault", FAULTS)
async def test_one_fault_of_a_kind_does_not_keep_a_model_from_writing(fault):
    provider = behind(plan=[fault])
    done = await folded(provider)
    assert provider.met == [(0, fault)]
    assert done.receipt.summarizer == provider.name
