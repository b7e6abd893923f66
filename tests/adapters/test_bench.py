"""The rows of `foldline bench` that are parts of frameworks, where these are installed."""

from __future__ import annotations

import gc

import pytest
from tests.adapters.drivers import installed

if not installed("langchain") or not installed("litellm"):
    pytest.skip("frameworks are not installed: run `make adapters`", allow_module_level=True)

from foldline.bench.corpus import context
from foldline.bench.measures import BenchSetup, measure_valid
from foldline.bench.rivals import RIVALS
from foldline.bench.system import message_texts, size
from foldline.dialects import get

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

BUDGET = 3_000
# whose views have calls without results, or results without calls
BROKEN = {"contexttrim", "litellm-trim"}
# which take no budget, or clear what is old and no more
LARGE = {
    "openai-agents-trimmer",
    "adk-context-filter",
    "headroom",
    "contextgc",
    "distil",
    "ai-prune-messages",
}
REWORDED = {"contextpress"}
CLEARED = {"langchain-clear-tool-uses", "pydantic-ai-tiered"}


@pytest.fixture(autouse=True)
def closed():
    """Have what a framework leaves open closed here, where its warnings count nothing."""
    yield
    gc.collect()


@pytest.mark.parametrize("system", RIVALS, ids=lambda one: one.name)
def test_a_rival_folds_a_clean_session(system) -> None:
    if system.version is None:
        pytest.skip(f"{system.package} is not installed")
    messages = context(12_000, 1)
    view = message_texts(system.make(BUDGET)(messages))
    assert messages[-1]["content"] in "\n".join(view) or system.name in REWORDED
    tokens = sum(map(size, view))
    assert tokens < 1.1 * BUDGET or system.name in LARGE | CLEARED
    problems = get(system.dialect).validate(list(system.make(BUDGET)(messages)))
    assert bool(problems) == (system.name in BROKEN)


@pytest.mark.parametrize("name", ["strands-sliding-window", "openai-agents-trimmer", "adk-context-filter"])
def test_a_rival_is_refused_for_nothing_that_our_conversion_makes(name) -> None:
    system = next(one for one in RIVALS if one.name == name)
    if system.version is None:
        pytest.skip(f"{system.package} is not installed")
    broken = measure_valid(system, BenchSetup(messages=300, window=8_000))["broken"]
    assert not {"alternate", "call-duplicate"} & set(str(broken).split(", "))


def test_one_that_replaces_its_history_forgets_what_it_folded() -> None:
    system = next(one for one in RIVALS if one.name == "langchain-summarization")
    found = measure_valid(system, BenchSetup(messages=200, window=8_000))
    assert found["requests"] > 50
    assert found["left"] < 0.9
