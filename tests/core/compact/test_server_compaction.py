"""A compaction by a provider's server is a boundary: nothing before it counts, and folds keep it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import foldline
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.log.entries import Pinned, Receipt
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.dialects import get
from foldline.loading.lists import from_messages
from foldline.stores import MemoryStore

TALK = "The mill turns and the flour is white. " * 30
TOLD = "The miller is Ann, and a sack costs 312 euro."
READABLE = {"type": "compaction", "content": TOLD}
FAILED = {"type": "compaction", "content": None}
SEALED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "Zm9sZGVk" * 40}


def claude(turns: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        one
        for turn in range(first, first + turns)
        for one in (
            {"role": "user", "content": f"Grind sack {turn}."},
            {"role": "assistant", "content": [{"type": "text", "text": f"Sack {turn}: {TALK}"}]},
        )
    ]


def openai(turns: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        one
        for turn in range(first, first + turns)
        for one in (
            {"type": "message", "role": "user", "content": f"Grind sack {turn}."},
            {"type": "message", "role": "assistant", "content": f"Sack {turn}: {TALK}"},
        )
    ]


def replied(block: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [block, {"type": "text", "text": "Going on."}]}


ASKS = {"role": "user", "content": "Next?"}
CLAUDES = [*claude(20), {"role": "user", "content": "Go on."}, replied(READABLE), *claude(12, 50), ASKS]
OPENAIS = [*openai(20), SEALED, *openai(12, 50), {"type": "message", **ASKS}]


def view_of(messages: list[Any]) -> ViewState:
    return ViewState(from_messages(messages, OFFLINE).entries, counter=OFFLINE)


@pytest.mark.parametrize("messages", [CLAUDES, OPENAIS], ids=["anthropic", "openai-responses"])
def test_what_stands_before_it_counts_for_nothing_and_is_not_sent(messages: list[Any]) -> None:
    state = view_of(messages)
    dialect = "anthropic" if messages is CLAUDES else "openai-responses"
    sent = json.dumps(get(dialect).render(native_items(state.view())).messages)
    assert "Sack 19" not in sent
    assert "Sack 50" in sent
    assert state.tokens < view_of(messages[:40]).tokens
    assert foldline.compact(messages, target=90_000).messages == messages


def test_a_failed_one_stands_for_nothing() -> None:
    messages = [*claude(3), ASKS, replied(FAILED), ASKS]
    assert len(view_of(messages).kept) == len(messages)
    assert foldline.compact([*messages[:-1], *claude(12), ASKS], target=2_500).view_tokens <= 2_500


def test_a_sealed_one_behind_users_messages_alone_keeps_them() -> None:
    messages = [{"type": "message", "role": "user", "content": f"Rule {n}."} for n in range(3)]
    assert len(view_of([*messages, SEALED, *openai(2)]).kept) == 3 + 1 + 4


@pytest.mark.parametrize("target", [2_500, 1_500])
def test_its_text_is_the_earlier_summary_of_a_fold(target: int) -> None:
    done = foldline.compact(CLAUDES, target=target, dialect="anthropic")
    sent = json.dumps(done.messages)
    assert sent.count(TOLD) == 1
    assert '"compaction"' not in sent  # the API would ignore the checkpoint before it
    assert get("anthropic").validate(done.messages, done.system) == []
    again = foldline.compact([*done.messages, *claude(12)][:-1], target=target, dialect="anthropic")
    assert json.dumps(again.messages).count(TOLD) == 1


def test_a_sealed_one_stays_as_received_before_the_checkpoint() -> None:
    messages = OPENAIS
    for number in range(3):
        done = foldline.compact(messages, target=2_500, dialect="openai-responses")
        assert [item for item in done.messages if item["type"] == "compaction"] == [SEALED]
        assert get("openai-responses").validate(done.messages, done.system) == []
        messages = [*done.messages, *openai(12, 100 * number), {"type": "message", **ASKS}]


def test_a_model_is_given_it_as_the_summary_to_go_on_from() -> None:
    asked: list[SummaryRequest] = []

    class Writer:
        name = "writer"

        async def summarize(self, request: SummaryRequest) -> SummaryReply:
            asked.append(request)
            return SummaryReply(f"## Goal\nGrind. {TOLD}", "writer")

    done = foldline.compact(CLAUDES, target=2_500, dialect="anthropic", summarizer=Writer())
    assert asked[0].previous == TOLD
    assert all("Sack 3:" not in entry.message.text for entry in asked[0].folded)
    assert json.dumps(done.messages).count("312 euro") == 1


def test_the_users_rules_before_it_stand_after_the_next_fold() -> None:
    rule = "Never grind on Sundays."
    first = {"role": "user", "content": f"Grind the rye. {rule}"}
    done = foldline.compact([first, *CLAUDES[1:]], target=2_500, dialect="anthropic")
    assert done.receipt.constraints is not None
    assert done.receipt.constraints.texts == (rule,)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "ui-message"])
def test_another_dialect_has_it_as_text(dialect: str) -> None:
    rendered = foldline.convert(CLAUDES, to=dialect)
    assert TOLD in json.dumps(rendered.messages)


def test_a_session_takes_it_as_a_boundary_and_finds_its_text() -> None:
    async def run() -> None:
        async with foldline.open(MemoryStore(), "mill", window=20_000, dialect="anthropic") as session:
            await session.append(*claude(3))
            (entry,) = await session.append({"role": "user", "content": "The dog is called Rex."})
            await session.pin(entry)
            before = session.view()
            assert len(before) == 7
            await session.append(replied(READABLE), ASKS)
            sent = json.dumps(await session.context())
            assert "Sack 0" not in sent
            assert sent.count(TOLD) == 1
            assert sent.count("The dog is called Rex.") == 1
            assert (await session.recall("miller is Ann"))[0].entry
            await session.append(*claude(12, 10), ASKS)
            assert isinstance(await session.compact(), Receipt)
            sent = json.dumps(await session.context())
            assert sent.count(TOLD) == 1
            assert "The dog is called Rex." in sent
            await session.undo()
            assert json.dumps(await session.context()).count('"compaction"') == 1

    asyncio.run(run())


def test_growing_and_building_anew_give_the_same_view() -> None:
    entries = from_messages(CLAUDES, OFFLINE).entries
    grown = ViewState(counter=OFFLINE)
    for entry in entries:
        grown.push(entry)
    pin = Pinned("p", entries[-1].id, entries[0].id, True, "Grind sack 0.")
    grown.push(pin)
    built = ViewState([*entries, pin], counter=OFFLINE)
    assert grown.view() == built.view()
    assert grown.tokens == built.tokens
