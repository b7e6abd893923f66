"""The program that compares the adapters with what their frameworks have counts what a provider would refuse."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.adapters.drivers import installed

if not installed("langchain") or not installed("litellm"):
    pytest.skip("frameworks are not installed: run `make adapters`", allow_module_level=True)

from tests.adapters.drivers import LangChain
from tools import adapter_table
from tools.adapter_table import FRAMEWORKS, looped

pytestmark = pytest.mark.slow

INVALID, OVERFLOWS, LEFT, RULES = range(4)


@pytest.fixture(autouse=True)
def vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(adapter_table.VOCABULARY))


async def test_foldline_sends_nothing_that_a_provider_refuses_and_loses_nothing(tmp_path: Path) -> None:
    driver = LangChain(f"sqlite:///{tmp_path}/sessions.db", window=8_000)
    figures = await looped(driver, 60, 60)
    driver.histories.close()
    assert figures[: RULES + 1] == ("0", "0", "62 of 62", "2 of 2")


async def test_a_call_without_its_result_and_a_request_that_is_too_large_are_counted() -> None:
    nothing = LangChain("", partial(FRAMEWORKS[0].given, "middleware=[]"), window=8_000)
    figures = await looped(nothing, 60, 60)
    assert figures[INVALID] == "37, `result-missing`"  # the requests behind the run that broke off
    assert figures[LEFT : RULES + 1] == ("62 of 62", "2 of 2")
    assert int(figures[OVERFLOWS]) > 37


async def test_what_a_framework_forgets_is_counted() -> None:
    sliding = "conversation_manager=SlidingWindowConversationManager(window_size=10, per_turn=True)"
    framework = next(one for one in FRAMEWORKS if one.module == "strands")
    driver = framework.driver("", partial(framework.given, sliding), window=8_000)
    figures = await looped(driver, 60, 60)
    assert figures[OVERFLOWS : RULES + 1] == ("0", "4 of 37", "0 of 1")  # ten messages are kept
