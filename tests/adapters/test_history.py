"""What all adapters share, without a framework."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from foldline.adapters.history import FrameworkHistories, RequestSetup, read_chat
from foldline.core.log.messages import Message
from foldline.dialects import OPENAI_CHAT


class Plain:
    """Messages of Chat Completions as they are."""

    dialect = OPENAI_CHAT

    def decode(self, messages: Sequence[dict[str, Any]]) -> list[list[Message]]:
        return read_chat([[one] for one in messages])

    def encode(self, payloads: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return list(payloads)


SAID = [{"role": "user", "content": "Hello."}]


@pytest.mark.parametrize(
    ("setup", "options", "told"),
    [
        (
            RequestSetup(served="in-house-7b"),
            {},
            "the window of in-house-7b is not known, 200,000 tokens are assumed",
        ),
        (RequestSetup(), {}, "the window of the agent's model is not known"),
        (RequestSetup(served="in-house-7b", window=32_000), {}, None),
        (RequestSetup(served="in-house-7b"), {"window": 32_000}, None),
        (RequestSetup(served="gpt-5.2"), {}, None),
    ],
)
def test_a_window_that_is_only_assumed_is_told_once(
    caplog: pytest.LogCaptureFixture, setup: RequestSetup, options: Any, told: str | None
) -> None:
    histories = FrameworkHistories("memory://", Plain(), **options)
    with caplog.at_level(logging.WARNING, "foldline"):
        for name in ("one", "two"):
            assert histories.view(name, SAID, lambda: setup) == SAID
    histories.close()
    found = [record.getMessage() for record in caplog.records]
    assert len(found) == (told is not None)
    assert told is None or told in found[0]
