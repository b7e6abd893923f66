"""The ledger as a whole: a small session, merging, odd input."""

from __future__ import annotations

from foldline.core.ledger.collect import collect
from foldline.core.ledger.merge import merge
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def said(*messages: Message) -> list[Said]:
    return [Said(f"e{i}", f"e{i - 1}" if i else None, message, f"e{i}") for i, message in enumerate(messages)]


SESSION = said(
    Message("user", (Text("Fix the login test. Never touch the migrations."),)),
    Message(
        "assistant",
        (Text("I'll read the view first."), ToolCall("c1", "Read", {"file_path": "/app/login.py"})),
    ),
    Message("user", (ToolResult("c1", (Text("1\tdef login(): ..."),)),)),
    Message("assistant", (ToolCall("c2", "Bash", {"command": "pytest tests/test_login.py"}),)),
    Message(
        "user", (ToolResult("c2", (Text("Exit code 1\nE   KeyError: 'user'\n1 failed"),), is_error=True),)
    ),
    Message(
        "assistant",
        (
            ToolCall(
                "c3", "Edit", {"file_path": "/app/login.py", "old_string": "a", "new_string": "user = 1"}
            ),
        ),
    ),
    Message("user", (ToolResult("c3", (Text("The file has been updated."),)),)),
    Message("assistant", (ToolCall("c4", "Bash", {"command": "pytest tests/test_login.py"}),)),
    Message("user", (ToolResult("c4", (Text("1 passed in 0.1s"),)),)),
    Message("assistant", (Text("The login test passes. Next I'll update the docs."),)),
)


def test_a_small_session_gives_every_kind_of_fact() -> None:
    ledger = collect(SESSION)
    assert [fact.text for fact in ledger.requests] == ["Fix the login test. Never touch the migrations."]
    assert [fact.text for fact in ledger.constraints] == ["Never touch the migrations."]
    assert [(fact.path, fact.status, fact.uses) for fact in ledger.files] == [
        ("/app/login.py", "modified", 2)
    ]
    assert [(fact.command, fact.passed, fact.uses) for fact in ledger.commands] == [
        ("pytest tests/test_login.py", True, 2)
    ]
    assert [(fact.text, fact.fixed) for fact in ledger.errors] == [("E   KeyError: 'user'", True)]
    assert [fact.text for fact in ledger.open] == ["Next I'll update the docs."]
    assert {fact.name: fact.uses for fact in ledger.tools} == {"Read": 1, "Bash": 2, "Edit": 1}
    assert (ledger.turns, ledger.messages) == (1, 10)


def test_merging_the_same_range_twice_changes_nothing() -> None:
    first, second = collect(SESSION[:5]), collect(SESSION[5:])
    once = merge(first, second)
    assert merge(once, second) == once
    assert merge(once, once) == once


def test_an_error_is_fixed_by_a_later_range() -> None:
    merged = merge(collect(SESSION[:5]), collect(SESSION[5:]))
    assert [(fact.text, fact.fixed) for fact in merged.errors] == [("E   KeyError: 'user'", True)]
    assert [(fact.path, fact.status, fact.uses) for fact in merged.files] == [
        ("/app/login.py", "modified", 2)
    ]
