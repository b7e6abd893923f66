"""Sessions at their edges: mixed dialects, races, reopening, undo of undo, fruitless folds."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import foldline
from foldline.core.decide.ask import Nothing
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted
from foldline.core.measure.window import Amount
from foldline.dialects import get
from foldline.summarizers.offline import OfflineSummarizer

WINDOW = foldline.Window(context=6_000, output=1_000)


def long(text: str, times: int = 150) -> str:
    return (text + " ") * times


async def chat(session, turns: int, start: int = 0) -> None:
    for i in range(start, start + turns):
        await session.append({"role": "user", "content": long(f"question {i}")})
        await session.append({"role": "assistant", "content": long(f"answer {i}")})


CALL = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}],
}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]}
PLAIN = {"role": "assistant", "content": [{"type": "text", "text": "I see."}]}


async def test_a_message_that_any_dialect_could_have_written_does_not_change_the_dialect():
    async with foldline.open("memory://", "s") as session:
        await session.append({"role": "user", "content": "hi"})
        for message in (CALL, RESULT, PLAIN, {"role": "user", "content": "go on"}):
            await session.append(message)
        assert session.dialect == "anthropic"
        assert get("anthropic").validate(await session.context()) == []


async def test_messages_appended_together_are_read_as_one_conversation():
    async with foldline.open("memory://", "s") as session:
        await session.append(
            {"role": "user", "content": "hi"}, PLAIN, {"role": "user", "content": "look"}, CALL, RESULT
        )
        assert get("anthropic").validate(await session.context()) == []


@pytest.mark.parametrize("policy", ["claude-code", "codex", "opencode"])
async def test_the_dialect_is_known_where_everything_is_folded(policy):
    async with foldline.open("memory://", "s", window=WINDOW, policy=policy) as session:
        await session.append({"role": "user", "content": long("look")}, CALL, RESULT, PLAIN)
        await chat(session, 2)
        assert not isinstance(await session.compact(), Nothing)
        assert session.dialect == "anthropic"


@pytest.mark.parametrize("policy", ["claude-code", "codex"])
async def test_keys_go_on_after_a_restart_where_only_older_messages_stay(tmp_path, policy):
    url = f"sqlite:///{tmp_path / 's.db'}"
    async with foldline.open(url, "s", window=WINDOW, policy=policy) as session:
        await session.append({"role": "system", "content": "Be brief."})
        await chat(session, 3)
        assert not isinstance(await session.compact(), Nothing)
    async with foldline.open(url, "s", window=WINDOW, policy=policy) as session:
        await chat(session, 1, start=9)
        assert await session.verify() == []


async def test_reopening_with_a_smaller_window_folds_before_anything_is_sent(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    async with foldline.open(url, "s", window=200_000) as session:
        await chat(session, 12)
        await session.append({"role": "user", "content": "go on"})
    async with foldline.open(url, "s", window=WINDOW) as session:
        await session.context()
        assert session.view_tokens <= 5_100


async def test_undo_and_redo_are_each_others_inverse():
    async with foldline.open("memory://", "s", window=WINDOW) as session:
        await chat(session, 4)
        await session.compact()
        await chat(session, 4, start=4)
        await session.compact()
        newest = await session.context()
        second, first = await session.undo(), await session.undo()
        assert (await session.redo(), await session.redo()) == (first, second)
        assert await session.context() == newest
        assert await session.redo() is None


async def test_what_was_undone_stays_undone_until_something_is_said():
    """The next context() made the boundary again at once, where the reply behind it had not been looked at yet."""
    early = msgspec.structs.replace(
        foldline.preset("foldline"), hard=Amount(tokens=3_000), background=False, min_gain=Amount()
    )
    async with foldline.open("memory://", "s", window=60_000, policy=early) as session:
        await chat(session, 30)
        assert session.view_tokens > 3_000
        await session.compact(target=2_500)
        await session.append({"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Yes."})
        await session.undo()
        before = session.view_tokens
        await session.context()
        assert session.view_tokens == before > 3_000
        await session.append({"role": "user", "content": "And on."})
        await session.context()
        assert (await session.stats()).summaries == 1, "what is said next is looked at as ever"


async def test_what_was_undone_stays_undone_when_the_session_is_opened_again(tmp_path):
    early = msgspec.structs.replace(
        foldline.preset("foldline"), hard=Amount(tokens=3_000), background=False, min_gain=Amount()
    )
    url = f"sqlite:///{tmp_path / 's.db'}"
    async with foldline.open(url, "s", window=60_000, policy=early) as session:
        await chat(session, 30)
        await session.compact(target=2_500)
        await session.undo()
        before = session.view_tokens
    async with foldline.open(url, "s", window=60_000, policy=early) as session:
        await session.context()
        assert session.view_tokens == before > 3_000


async def test_what_was_undone_is_made_again_where_nothing_else_fits():
    async with foldline.open("memory://", "s", window=16_000) as session:
        for turn in range(30):
            await session.append({"role": "user", "content": f"Question {turn} " + "many words here " * 60})
            await session.context()
            await session.append(
                {"role": "assistant", "content": f"Answer {turn} " + "many words here " * 120}
            )
        for _ in range(4):
            await session.undo()
            await session.context()
            assert session.view_tokens < 16_000


async def test_an_undo_that_a_newer_fold_overtook_is_not_redone():
    async with foldline.open("memory://", "s", window=WINDOW) as session:
        await chat(session, 4)
        await session.compact()
        await session.undo()
        await chat(session, 1, start=9)
        assert not isinstance(await session.compact(), Nothing)
        assert await session.redo() is None


async def test_a_fold_that_gains_too_little_is_not_tried_at_every_turn():
    calls = 0

    class Counting:
        name = "offline"

        async def summarize(self, request):
            nonlocal calls
            calls += 1
            return OfflineSummarizer().write(request)

    window = foldline.Window(context=20_000, output=1_000)
    async with foldline.open("memory://", "s", window=window, summarizer=Counting()) as session:
        await session.append({"role": "user", "content": long("one very long request that stays", 2_900)})
        await session.append({"role": "assistant", "content": "I read it."})
        for i in range(6):
            await session.append({"role": "user", "content": f"question {i}"})
            await session.context()
            await session.append({"role": "assistant", "content": f"answer {i}"})
        assert session.view_tokens <= 17_000
        assert calls <= 8


async def test_a_pin_on_an_entry_that_is_shortened_is_quoted():
    async with foldline.open("memory://", "s", window=WINDOW) as session:
        text = long("start", 400) + "THE CODE IS 4471-B" + long(" end", 400)
        await chat(session, 1)
        [entry] = await session.append({"role": "user", "content": text})
        await session.compact(target=700)
        assert "4471-B" not in str(await session.context())
        await session.pin(entry)
        assert "THE CODE IS 4471-B" in str(await session.context())


def test_a_rule_in_a_message_that_is_shortened_stays_word_for_word():
    rule = "Always run the linter before you commit."
    done = foldline.compact(
        [{"role": "user", "content": long("pasted\n", 2_000) + f"\n{rule}\n" + long("text\n", 2_000)}],
        target=1_500,
    )
    assert rule in done.messages[0]["content"]
    assert done.view_tokens <= 1_500
    assert done.receipt.constraints.texts == (rule,)


async def test_rules_over_the_budget_are_named_and_come_back_in_a_larger_one():
    rules = [f"Never delete the table number {i} of the archive database without asking." for i in range(30)]
    async with foldline.open("memory://", "s", window=200_000) as session:
        for rule in rules:
            await session.append(
                {"role": "user", "content": rule}, {"role": "assistant", "content": long("ok", 60)}
            )
        receipt = await session.compact(target=500)
        assert receipt.constraints.excess
        ledgers = [e.ledger async for e in session.store.path("s") if isinstance(e, Compacted)]
        assert len(msgspec.convert(ledgers[-1], Ledger).constraints) == 30
        await chat(session, 30)
        receipt = await session.compact(target=8_000)
        assert receipt.constraints.excess == ()
        text = str(await session.context())
        assert all(rule in text for rule in rules)


async def test_an_append_that_was_cancelled_but_stored_is_seen(tmp_path):
    async with foldline.open(f"sqlite:///{tmp_path / 's.db'}", "s") as session:
        await session.append({"role": "user", "content": "one"})
        task = asyncio.create_task(session.append({"role": "assistant", "content": "two"}))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await session.append({"role": "user", "content": "three"})
        said = [m["content"] for m in await session.history()]
        assert said in (["one", "three"], ["one", "two", "three"])
        assert await session.verify() == []


async def test_a_system_message_of_another_dialect_is_not_lost():
    async with foldline.open("memory://", "s", system="Given apart.") as session:
        await session.append({"role": "system", "content": "Answer in Welsh."})
        await session.append({"role": "user", "content": "hi"}, CALL, RESULT)
        assert session.dialect == "anthropic"
        assert "Answer in Welsh." in str(session.system)
        assert "Given apart." in str(session.system)
