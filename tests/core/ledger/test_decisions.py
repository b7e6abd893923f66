"""Choices, and the uses of tools."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.core.ledger.facts import decisions, tools
from foldline.core.ledger.facts.calls import uses
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def says(*texts: str, role: Any = "assistant") -> list[Said]:
    return [Said(f"e{i}", None, Message(role, (Text(text),)), "") for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("sentence", "choice"),
    [
        ("We decided to store sessions in SQLite.", True),
        ("I'll use a hash of the parent id instead of a counter.", True),
        ("Going with option B for the cache layout.", True),
        ("Let's keep the old endpoint for one more release.", True),
        ("We'll keep the retry logic in the client.", True),
        ("yes, let's go with A and drop the flag", True),
        ("Wir verwenden SQLite statt PostgreSQL für die Tests.", True),
        ("我们决定采用方案二。", True),
        ("Should we use SQLite or PostgreSQL?", False),
        ("Would you prefer tabs over spaces?", False),
        ("Let me read the file.", False),
        ("The tests pass now.", False),
        ("So the approach is:", False),
        ("I'll use the brainstorming skill here.", False),
    ],
)
def test_is_choice(sentence: str, choice: bool) -> None:
    assert decisions.is_choice(sentence) is choice


def test_a_later_reversal_replaces() -> None:
    entries = says(
        "We decided to store the session cache in Redis. It is fast.",
        "Naming matters too. We decided to call the field owner.",
        "On reflection we will store the session cache in SQLite instead of Redis.",
    )
    expected = [
        "We decided to call the field owner.",
        "On reflection we will store the session cache in SQLite instead of Redis.",
    ]
    facts = decisions.collect(entries)
    assert [fact.text for fact in facts] == expected
    assert [fact.entry for fact in facts] == ["e1", "e2"]
    merged = decisions.merge(decisions.collect(entries[:2]), decisions.collect(entries[2:]))
    assert merged == facts
    assert decisions.merge(merged, decisions.collect(entries[2:])) == merged


def test_the_user_decides_too_but_no_tool_does() -> None:
    text = "Let's use PostgreSQL for the store."
    assert [fact.text for fact in decisions.collect(says(text, role="user"))] == [text]
    result = Said("r", None, Message("tool", (ToolResult("c", (Text(text),)),)), "")
    assert decisions.collect([result]) == ()


def test_tools_are_counted_with_three_notable_uses() -> None:
    def call(i: int, name: str, arguments: dict[str, Any], failed: bool = False) -> list[Said]:
        answer = ToolResult(f"c{i}", (Text("ok"),), failed)
        return [
            Said(f"a{i}", None, Message("assistant", (ToolCall(f"c{i}", name, arguments),)), ""),
            Said(f"r{i}", None, Message("tool", (answer,)), ""),
        ]

    entries = [
        *call(1, "Bash", {"command": "make test"}),
        *call(2, "Bash", {"command": "ls"}),
        *call(3, "Bash", {"command": "git commit -m x"}),
        *call(4, "Bash", {"command": "make broken"}, failed=True),
        *call(5, "Bash", {"command": "make lint"}),
        *call(6, "Search", {"query": "where is it", "limit": 3}),
        *call(7, "Ping", {}),
    ]
    facts = tools.collect(uses(entries))
    assert [(fact.name, fact.uses) for fact in facts] == [("Bash", 5), ("Search", 1), ("Ping", 1)]
    assert facts[0].notable == ("make test", "git commit -m x", "make lint")
    assert facts[1].notable == ("where is it",)
    assert facts[2].notable == ()
    merged = tools.merge(tools.collect(uses(entries[:4])), tools.collect(uses(entries[4:])))
    assert [(fact.name, fact.uses) for fact in merged] == [("Bash", 5), ("Search", 1), ("Ping", 1)]
    assert merged[0].notable[-1] == "make lint"


def asks_and_answers(question: str, answer: str) -> list[Said]:
    asked = Said("q", None, Message("assistant", (Text(question),)), "")
    return [asked, Said("a", None, Message("user", (Text(answer),)), "")]


def test_the_users_answer_to_a_question_decides() -> None:
    answer = "Thanks. I asked ops: no new daemons there. So scratch Redis. Put the counters into SQLite. Is it fast?"
    facts = decisions.collect(asks_and_answers("Redis or another place?", answer))
    assert [fact.text for fact in facts] == [
        "I asked ops: no new daemons there.",
        "So scratch Redis.",
        "Put the counters into SQLite.",
    ]
    assert all(fact.user for fact in facts)
    assert decisions.collect(asks_and_answers("I read the file.", "Put the counters into SQLite.")) == ()


def test_listed_decisions_count_and_are_taken_back_by_name_and_by_number() -> None:
    first = "Decisions:\n- Counters in Redis, shared by all.\n- Sixty requests, with a burst of 10.\n- Errors keep one shape."
    later = "Scratch Redis. Raise the burst to 20."
    entries = says(first, later, role="user")
    assert [fact.text for fact in decisions.collect(entries)] == [
        "Errors keep one shape.",
        "Scratch Redis.",
        "Raise the burst to 20.",
    ]
    turned = decisions.turned(decisions.made(entries))
    assert [fact.text for fact in turned] == [
        "Counters in Redis, shared by all.",
        "Sixty requests, with a burst of 10.",
    ]


def test_what_says_nothing_by_itself_is_no_choice() -> None:
    assert not decisions.is_choice("Everything else as decided.")


@pytest.mark.parametrize(
    "sentence",
    [
        "The team chose Postgres.",
        "User chose option B",
        "We'll go with the second one.",
        "We\N{RIGHT SINGLE QUOTATION MARK}ll go with the second one.",
        "The client picked the second design.",
        "They have agreed on weekly releases.",
        "Our customer opted for the cloud version.",
        "I'll take the second option.",
        "The board has voted for Kafka.",
    ],
)
def test_a_choice_that_others_made_is_a_choice(sentence):
    assert decisions.is_choice(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "If the user chose a file, open it.",
        "When they went with it, the build broke.",
        "The user selected text in the editor.",
        "What the team chose is unknown.",
        "Has the team agreed on a name?",
    ],
)
def test_a_choice_that_is_only_talked_about_is_none(sentence):
    assert not decisions.is_choice(sentence)
