"""What clients that keep their own history cost: in the figures like all else."""

from __future__ import annotations

import httpx2
import pytest
from tests.service.served import run_gateway
from tests.service.test_figures import figures
from tests.service.test_stateless import history, said


def ask(url, path, **body):
    key = {"authorization": "Bearer k"}
    answer = httpx2.post(f"{url}/api/{path}", json={"model": "openai:gpt-5", **body}, headers=key, timeout=60)
    return answer.raise_for_status()


def total(found, name):
    return sum(value for (figure, *_), value in found.items() if figure == name)


@pytest.mark.parametrize("path", ["fold", "turn"])
def test_folds_and_the_price_of_their_summaries_are_counted(path):
    with run_gateway(lambda asked: "Done.", summaries="upstream") as (url, model):
        ask(url, path, messages=history(20), compact=True)
        found = figures(url)
    assert found["foldline_folds_total", ("reason", "manual")] == 1
    assert total(found, "foldline_tokens_total") > sum(asked.tokens for asked in model.requests) > 0
    assert total(found, "foldline_usd_total") > 0


def test_an_empty_reply_is_counted_it_was_paid_for():
    with run_gateway([""]) as (url, _):
        assert "empty reply" in ask(url, "turn", messages=[said("user", 1)]).text
        found = figures(url)
    assert total(found, "foldline_reply_seconds_count") == 1
    assert total(found, "foldline_usd_total") > 0
