"""One suite for every framework: its real agent, a scripted model, and a window that is soon full."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import BadRequestError
from tests.adapters.drivers import DRIVERS, Boom, Driver, installed

from foldline.bench.system import message_texts
from foldline.dialects import get
from foldline.errors import StoreError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning"),  # LlamaIndex's
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated"),  # Inspect's
    pytest.mark.filterwarnings("ignore:.*MemoryObjectReceiveStream"),
    pytest.mark.filterwarnings("ignore:Items? .* using the `ReadOnly` qualifier"),  # LiteLLM's, imported late
]

WINDOW = 12_000
RULE = "Look at all files. Never push to main."


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
async def driver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Driver]:
    make = request.param
    if not installed(make.package):
        pytest.skip(f"{make.package} is not installed: run `make live`")
    made = make(f"sqlite:///{tmp_path}/sessions.db", window=WINDOW)
    yield made
    made.histories.close()


def problems(driver: Driver, view: Sequence[Any]) -> list[str]:
    """Return the rules of the provider's that a request breaks."""
    return [one.rule for one in get(driver.dialect).validate(driver.native(view))]


async def stats(driver: Driver) -> Any:
    return await driver.histories.arun(driver.session, lambda history: history.session.stats())


async def test_a_long_loop_stays_in_its_window_and_every_view_is_valid(driver: Driver) -> None:
    await driver.run(RULE, 60)
    await driver.run("And the others.", 60)
    whole = await driver.history()
    figures = await stats(driver)
    assert len(driver.seen) == 122
    assert [found for view in driver.seen if (found := problems(driver, view))] == []
    assert figures.summaries >= 1
    assert figures.context_tokens <= figures.usable
    assert len(driver.seen[-1]) < len(whole) / 2
    assert any(RULE.split(". ")[1] in text for text in message_texts(driver.native(driver.seen[-1])))
    assert len(whole) >= 2 * 122  # the framework's own history is whole
    if not driver.at_folds:
        assert figures.total_messages == 243 + driver.keeps_answers + driver.pairs  # so is Foldline's


async def test_what_is_kept_comes_back_as_the_very_objects(driver: Driver) -> None:
    await driver.run(RULE, 45)
    before, last = driver.seen[-2:]
    kept = [one for one in last if any(one is two or (driver.copies and one == two) for two in before)]
    assert len(kept) >= 4


async def test_another_process_goes_on_and_stores_nothing_twice(driver: Driver) -> None:
    await driver.run(RULE, 40)
    driver.histories.close()
    driver.make()
    await driver.run("And the others.", 1)
    expected = 83 if driver.at_folds else 85 + driver.keeps_answers + driver.pairs
    assert (await stats(driver)).total_messages == expected
    assert problems(driver, driver.seen[-1]) == []


async def test_a_run_that_was_interrupted_is_followed_by_another(driver: Driver) -> None:
    driver.break_at = 4
    with suppress(Boom):  # some frameworks tell the model
        await driver.run(RULE, 8)
    await driver.run("Where were we?", 30)
    assert [found for view in driver.seen[5:] if (found := problems(driver, view))] == []
    assert (await stats(driver)).context_tokens <= WINDOW


async def test_a_store_that_fails_costs_a_warning_and_no_run(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.store = "sqlite:////dev/null/sessions.db"
    driver.make()
    with caplog.at_level(logging.WARNING, "foldline"):
        if driver.keeps_answers:  # here the store is all that the framework has
            with pytest.raises(StoreError):
                await driver.run(RULE, 2)
            return
        await driver.run(RULE, 40 if driver.at_folds else 2)
    assert len(driver.seen) == (41 if driver.at_folds else 3)
    assert "folding failed" in caplog.text


async def test_a_fold_is_undone(driver: Driver) -> None:
    await driver.run(RULE, 45)
    await driver.histories.arun(driver.session, lambda history: history.session.compact(target=6_000))
    await driver.run("And?", 0)
    folded = len(driver.seen[-1])
    await driver.histories.arun(driver.session, lambda history: history.session.undo())
    await driver.run("And now?", 0)
    assert len(driver.seen[-1]) > folded


async def test_what_does_not_fit_all_the_same_is_folded_and_sent_again(driver: Driver) -> None:
    if not driver.mends:
        pytest.skip(f"{driver.package} tells nobody why a call of the model failed")
    await driver.run(RULE, 20)
    asked = len(driver.seen)
    driver.errors = [too_long()]
    await driver.run("And the others.", 0)
    refused, sent = driver.seen[asked:]
    assert size(sent) < size(refused)
    assert problems(driver, sent) == []
    driver.errors = [ValueError("no overflow")]
    with pytest.raises(ValueError, match="no overflow"):
        await driver.run("And?", 0)


def too_long() -> Exception:
    """The error of a request that is larger than the window."""
    text = (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    )
    body = {"message": text, "code": "context_length_exceeded", "type": "invalid_request_error"}
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    return BadRequestError(text, response=httpx.Response(400, request=request), body=body)


def size(view: Sequence[Any]) -> int:
    return sum(len(str(message)) for message in view)
