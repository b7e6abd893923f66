"""Bugs that other systems had, tried on a stored session: what tests/data/parity.toml has no other test for."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.support.live import policy_with

import foldline
from foldline.core.checkpoint.summary import worded
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted
from foldline.dialects import get
from foldline.summarizers.offline import OfflineSummarizer

WINDOW = foldline.Window(context=6_000, output=1_000)


def asks(i: int, path: str = "a.py") -> dict:
    function = {"name": "read", "arguments": json.dumps({"path": path})}
    call = {"id": f"call_{i}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answers(i: int, lines: int = 60) -> dict:
    return {"role": "tool", "tool_call_id": f"call_{i}", "content": f"def function_{i}(): pass\n" * lines}


def talk(turns: int, start: int = 0) -> list[dict]:
    questions = [f"Question {i}. " + "And another word. " * 80 for i in range(start, start + turns)]
    answers = [f"Answer {i}. " + "It is as it was. " * 80 for i in range(start, start + turns)]
    return [
        {"role": role, "content": text}
        for pair in zip(questions, answers, strict=True)
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


async def chat(session, turns: int, start: int = 0) -> None:
    for message in talk(turns, start):
        await session.append(message)


async def newest(session) -> Compacted:
    return [entry async for entry in session.store.path(session.id) if isinstance(entry, Compacted)][-1]


class Signs:
    """Writes the offline summary under a name of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = []

    async def summarize(self, request):
        self.requests.append(request)
        reply = OfflineSummarizer().write(request)
        return msgspec.structs.replace(reply, text=f"{reply.text}\n- written by {self.name}")


@pytest.mark.parametrize("policy", ["foldline", "coop", "pi", "claude-code"])
async def test_a_fold_between_a_call_and_its_result_does_no_harm(policy):
    """pi #8667, #4570: the boundary stood between call and result, and the next compaction was refused."""
    async with foldline.open("memory://", "s", window=WINDOW, policy=policy) as session:
        await chat(session, 6)
        await session.append({"role": "user", "content": "Read it."}, asks(0))
        await session.compact()
        await session.append(answers(0))
        assert get("openai-chat").validate(await session.context()) == []
        await chat(session, 6, start=10)
        await session.compact()
        assert get("openai-chat").validate(await session.context()) == []
        assert len(await session.history()) == 27


async def test_a_tool_loop_stays_inside_though_the_user_says_nothing():
    """pi #7821, #6879, goose #11072: size was looked at between turns alone, and one turn outgrew the window."""
    async with foldline.open("memory://", "s", window=WINDOW) as session:
        await session.append({"role": "user", "content": "Read everything. Never delete a file."})
        for i in range(50):
            await session.append(asks(i, f"src/m{i}.py"))
            await session.append(answers(i))
            messages = await session.context()
            assert get("openai-chat").validate(messages) == []
            assert session.view_tokens <= WINDOW.context
            assert messages[-1]["tool_call_id"] == f"call_{i}"
            assert "Never delete a file." in json.dumps(messages)
        assert len(await session.history()) == 101


@pytest.mark.parametrize("signature", ["c2lnbmF0dXJl", ""])
async def test_a_huge_thought_does_not_stay_in_the_tail(signature):
    """pi #6166: a block of 90,000 tokens of thinking was kept, and every later compaction was a no-op."""
    thought = {"type": "thinking", "thinking": "It may be so or not. " * 15_000, "signature": signature}
    async with foldline.open("memory://", "s", window=200_000, dialect="anthropic") as session:
        await chat(session, 3)
        await session.append({"role": "user", "content": "Why?"})
        await session.append(
            {"role": "assistant", "content": [thought, {"type": "text", "text": "Because."}]}
        )
        await session.append({"role": "user", "content": "I see."})
        assert session.view_tokens > 60_000
        receipt = await session.compact(target=20_000)
        assert receipt.tokens_after <= 20_000
        messages = await session.context()
        assert get("anthropic").validate(messages) == []
        assert messages[-1]["content"] == "I see."


async def test_what_the_caller_asks_of_a_summary_is_no_rule_of_the_users():
    """klaude 52de46ff: the instructions of the compaction stood in the checkpoint as the user's constraints."""
    focus = "Never mention the database. Always keep the port numbers."
    async with foldline.open("memory://", "s", window=WINDOW) as session:
        await session.append({"role": "user", "content": "Never push to main."})
        await chat(session, 6)
        await session.compact(focus)
        boundary = await newest(session)
        await chat(session, 6, start=10)
        await session.compact()
        later = await newest(session)
    for entry in (boundary, later):
        ledger = msgspec.convert(entry.ledger, Ledger)
        assert [fact.text for fact in ledger.constraints] == ["Never push to main."]
        assert "database" not in entry.checkpoint.text


STANDING = policy_with(summary_instructions="Mind the shapes.")
CLAUDE = """<system-reminder>
# claudeMd
Contents of /mill/CLAUDE.md (project instructions, checked into the codebase):

# Compact instructions
Mind the colours.
</system-reminder>"""


async def test_what_is_asked_of_every_summary_reaches_automatic_ones_branches_and_handoffs():
    """Claude Code: `# Compact instructions` in CLAUDE.md, and a setting, hold for every compaction."""
    summarizer = Signs("model:any")
    system = "You are a miller.\n## Compact instructions\nMind the grain."
    async with foldline.open(
        "memory://", "s", window=WINDOW, policy=STANDING, summarizer=summarizer, system=system
    ) as session:
        first, *_ = await session.append({"role": "user", "content": CLAUDE})
        await chat(session, 12)
        await session.context()
        await chat(session, 4, start=20)
        await session.compact("Mind the seams.")
        await session.handoff("the export")
        await chat(session, 4, start=30)
        await session.settled()  # a draft that is committed meanwhile moves the leaf
        await session.branch(first, summarize=True)
    assert {request.kind for request in summarizer.requests} >= {"first", "update", "handoff", "branch"}
    for request in summarizer.requests:
        prompt = worded(request).prompt
        assert "<standing-focus>\nMind the shapes.\n</standing-focus>" in prompt
        if request.kind != "branch":
            assert "<project-focus>\nMind the grain.\n\nMind the colours.\n</project-focus>" in prompt
        assert ("Mind the seams." in prompt) is (request.instructions == "Mind the seams.")


async def test_what_is_asked_of_every_summary_holds_for_a_list_and_is_no_rule_of_the_users():
    summarizer = Signs("model:any")
    system = [{"type": "text", "text": "# Compact instructions\nAlways keep the port numbers."}]
    done = await foldline.acompact(
        talk(12), 3_000, STANDING, system=system, dialect="anthropic", summarizer=summarizer
    )
    prompt = worded(summarizer.requests[0]).prompt
    assert "<standing-focus>\nMind the shapes." in prompt
    assert "<project-focus>\nAlways keep the port numbers." in prompt
    assert not done.ledger.constraints
    assert "Mind the shapes." not in done.summary


async def test_usage_of_before_the_fold_starts_no_second_one():
    """pi #1860, codex #31834: the last reply's usage was still that of the long context."""
    usage = {"prompt_tokens": 5_900, "completion_tokens": 20, "total_tokens": 5_920}
    said = {"role": "assistant", "content": "Yes."}
    reply = {
        "object": "chat.completion",
        "choices": [{"message": said, "finish_reason": "stop"}],
        "usage": usage,
    }
    async with foldline.open("memory://", "s", window=WINDOW) as session:
        await chat(session, 6)
        await session.append({"role": "user", "content": "Is it so?"})
        await session.append(reply)
        for i in range(4):
            await session.append({"role": "user", "content": f"Then {i}."})
            await session.context()
            await session.append({"role": "assistant", "content": "Yes."})
            assert (await session.stats()).summaries == 1


async def test_a_focus_reaches_the_summary_of_a_split_turn_and_of_an_update():
    """pi #9348: custom instructions were missing from the call that summed up the beginning of a turn."""
    summarizer = Signs("model:any")
    async with foldline.open(
        "memory://", "s", window=WINDOW, policy=policy_with(), summarizer=summarizer
    ) as session:
        await session.append({"role": "user", "content": "Read everything."})
        for i in range(12):
            await session.append(asks(i, f"src/m{i}.py"), answers(i, 20))
        await session.compact("Mind the colours.")
        await chat(session, 4)
        await session.compact("Mind the shapes.")
    assert [request.kind for request in summarizer.requests] == ["split_turn", "update"]
    assert "Mind the colours." in worded(summarizer.requests[0]).prompt
    assert "Mind the shapes." in worded(summarizer.requests[1]).prompt
