"""Todos, plans, calls never answered, what comes next."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.core.ledger.facts import open_work
from foldline.core.ledger.facts.calls import uses
from foldline.core.ledger.facts.kinds import OpenFact
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def call(id_: str, name: str, arguments: Any, result: str | None = "ok") -> list[Said]:
    made = [Said(f"a{id_}", None, Message("assistant", (ToolCall(id_, name, arguments),)), "")]
    if result is not None:
        made.append(Said(f"r{id_}", None, Message("tool", (ToolResult(id_, (Text(result),)),)), ""))
    return made


def says(role: Any, text: str, id_: str = "t") -> Said:
    return Said(id_, None, Message(role, (Text(text),)), "")


def collected(entries: list[Said]) -> tuple[OpenFact, ...]:
    return open_work.collect(entries, uses(entries))


def rows(facts: tuple[OpenFact, ...]) -> list[tuple[str, str, str]]:
    return [(fact.text, fact.kind, fact.state) for fact in facts]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("TodoWrite", {"todos": [{"content": "A", "status": "completed", "activeForm": "x"}, {"content": "B", "status": "in_progress"}]},
         [("A", "todo", "completed"), ("B", "todo", "in_progress")]),
        ("todowrite", {"todos": [{"content": "A", "status": "pending", "priority": "high"}]}, [("A", "todo", "pending")]),
        ("update_plan", {"plan": [{"step": "A", "status": "completed"}, {"step": "B", "status": "pending"}]},
         [("A", "plan", "completed"), ("B", "plan", "pending")]),
        ("write_todos", {"todos": [{"description": "A", "status": "pending"}]}, [("A", "todo", "pending")]),
        ("zorp", {"items": [{"text": "A", "done": False}, {"text": "B", "done": True}]}, [("A", "todo", "pending"), ("B", "todo", "completed")]),
        ("zorp", {"items": [{"text": "A"}, {"text": "B", "done": True}]}, []),
        ("zorp", {"items": ["A", "B"]}, []),
        ("TodoWrite", {"todos": []}, []),
        ("TodoWrite", {"todos": "A"}, []),
        ("create_issue", {"title": "A bug", "id": "ENT-1"}, []),
    ],
)  # fmt: skip
def test_lists(name: str, arguments: Any, expected: list[tuple[str, str, str]]) -> None:
    assert rows(collected(call("1", name, arguments))) == expected


def test_the_last_state_of_a_list_wins() -> None:
    entries = [
        *call(
            "1",
            "TodoWrite",
            {"todos": [{"content": "A", "status": "pending"}, {"content": "B", "status": "pending"}]},
        ),
        *call("2", "TodoWrite", {"todos": [{"content": "A", "status": "completed"}]}),
    ]
    facts = collected(entries)
    assert rows(facts) == [("A", "todo", "completed")]
    assert [open_work.is_done(fact) for fact in facts] == [True]
    assert open_work.merge(collected(entries[:2]), collected(entries[2:])) == facts


def test_tasks_by_number_within_and_across_ranges() -> None:
    first = [
        *call(
            "1",
            "TaskCreate",
            {"subject": "Write it", "description": "d"},
            "Task #1 created successfully: Write it",
        ),
        *call(
            "2",
            "TaskCreate",
            {"subject": "Test it", "description": "d"},
            "Task #2 created successfully: Test it",
        ),
        *call("3", "TaskUpdate", {"taskId": "1", "status": "in_progress"}),
    ]
    second = call("4", "TaskUpdate", {"taskId": "1", "status": "completed"})
    assert rows(collected(first)) == [
        ("#1 Write it", "todo", "in_progress"),
        ("#2 Test it", "todo", "pending"),
    ]
    merged = open_work.merge(collected(first), collected(second))
    assert rows(merged) == [("#1 Write it", "todo", "completed"), ("#2 Test it", "todo", "pending")]


@pytest.mark.parametrize(
    ("state", "done"),
    [("completed", True), ("done", True), ("cancelled", True), ("pending", False), ("in_progress", False), ("not done", False), ("incomplete", False), ("", False)],
)  # fmt: skip
def test_done(state: str, done: bool) -> None:
    assert open_work.is_done(OpenFact("x", "todo", state)) is done


def test_the_newest_checklist_of_the_assistant() -> None:
    entries = [
        says("assistant", "- [ ] old"),
        says("assistant", "Plan:\n- [x] one\n- [ ] two\n1. [ ] three"),
        says("user", "- [ ] mine"),
    ]
    assert rows(collected(entries))[:3] == [
        ("one", "todo", "completed"),
        ("two", "todo", "pending"),
        ("three", "todo", "pending"),
    ]


def test_calls_never_answered_but_made_again() -> None:
    entries = [
        *call("1", "Bash", {"command": "make"}, None),
        *call("2", "Read", {"file_path": "a.py"}, None),
        *call("3", "Read", {"file_path": "a.py"}),
    ]
    assert rows(collected(entries)) == [("Bash: make", "call", "unanswered")]


def test_what_comes_next_and_a_request_nobody_answered() -> None:
    entries = [
        says("user", "Do it.", "u1"),
        says("assistant", "The parser works. Next I'll write the tests. Fine."),
        says("user", "Also fix the docs.", "u2"),
    ]
    assert rows(collected(entries)) == [
        ("Next I'll write the tests.", "next", ""),
        ("Also fix the docs.", "next", "asked"),
    ]
    answered = [*entries, says("assistant", "Done.")]
    assert rows(collected(answered)) == []


def test_next_steps_give_way_to_those_of_a_newer_range() -> None:
    old = collected([says("user", "Go."), says("assistant", "Next I'll write the tests.")])
    new = collected([says("user", "Go on."), says("assistant", "Next I'll write the docs.", "z")])
    assert rows(open_work.merge(old, new)) == [("Next I'll write the docs.", "next", "")]
    assert open_work.merge(old, ()) == old


def test_tasks_that_cannot_be_told_apart_are_left_out() -> None:
    entries = [
        *call("1", "TaskCreate", {"subject": "Write it"}, "created"),
        *call("2", "TaskUpdate", {"taskId": "1"}),
        *call("3", "TaskUpdate", {"taskId": "x" * 40, "status": "completed"}),
        *call("4", "TaskList", {}),
    ]
    assert collected(entries) == ()


def test_a_checklist_replaces_the_todos_of_an_older_range() -> None:
    old = collected(
        [
            *call("1", "TodoWrite", {"todos": [{"content": "A", "status": "pending"}]}),
            *call("2", "Bash", {"command": "make"}, None),
        ]
    )
    new = collected([says("assistant", "- [ ] B")])
    assert rows(open_work.merge(old, new)) == [("Bash: make", "call", "unanswered"), ("B", "todo", "pending")]


def test_a_turn_in_one_message_answers_the_request_before_it():
    """Some dialects keep calls, results and the last words of a turn in one message."""
    work = (ToolCall("1", "read", {"path": "a"}), ToolResult("1", (Text("x = 1"),)))
    asked = says("user", "Fix the docs.", "u")
    ended = Said("a", None, Message("assistant", (*work, Text("The docs are fixed."))), "")
    going_on = Said("a", None, Message("assistant", (Text("I will look."), *work)), "")
    assert rows(collected([asked, ended])) == []
    assert ("Fix the docs.", "next", "asked") in rows(collected([asked, going_on]))
