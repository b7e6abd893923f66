"""What the assistant reported as done."""

from __future__ import annotations

import pytest

from foldline.core.ledger.facts import reports
from foldline.core.ledger.facts.calls import uses
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


@pytest.mark.parametrize(
    ("sentence", "report"),
    [
        ("Invoice INV-2026-01 is on hold until 6 March.", True),
        ("The correction request is COR-31877; they answer within five days.", True),
        ("It's in place now (plan PLN-20771).", True),
        ("29 tests pass.", True),
        ("Committed on `rate-limits`, not pushed.", True),
        ("I've added the retry to the client.", True),
        ("The burst is 20 now, still 60 a minute.", True),
        ("Fertig: der Import läuft.", True),
        ("J'ai corrigé le test.", True),
        ("Ya está corregido el error.", True),
        ("已完成所有测试的更新工作。", True),
        ("I'll add the retry to the client.", False),
        ("Is it fixed now?", False),
        ("Now the tests are updated next:", False),
        ("The table should be created by the migration.", False),
        ("Found it: the clock is set back by an hour.", False),
        ("If it is fixed, tell me.", False),
        ("It isn't fixed yet.", False),
    ],
)
def test_is_report(sentence, report):
    assert reports.is_report(sentence) is report


def after(*turns):
    """Turns of (call name, arguments, what the assistant said after the result)."""
    entries = []
    for number, (name, arguments, said) in enumerate(turns):
        call = ToolCall(f"c{number}", name, arguments)
        entries.append(Said(f"a{number}", None, Message("assistant", (call,)), ""))
        entries.append(
            Said(f"r{number}", None, Message("tool", (ToolResult(f"c{number}", (Text("{}"),)),)), "")
        )
        entries.append(Said(f"s{number}", None, Message("assistant", (Text(said),)), ""))
    return entries


def texts(entries):
    return [fact.text for fact in reports.collect(entries, uses(entries))]


def test_the_newest_state_wins():
    entries = after(
        ("run", {"what": "tests"}, "24 tests pass."),
        ("run", {"what": "tests"}, "The export is finished. 29 tests pass."),
    )
    assert texts(entries) == ["The export is finished.", "29 tests pass."]
    first, second = entries[:3], entries[3:]
    merged = reports.merge(reports.collect(first, uses(first)), reports.collect(second, uses(second)))
    assert [fact.text for fact in merged] == ["The export is finished.", "29 tests pass."]


def test_a_state_that_a_later_call_took_back_is_gone():
    hold = ("hold_invoice", {"invoice": "INV-0118834"}, "Invoice INV-0118834 is on hold until 6 March.")
    assert texts(after(hold)) == ["Invoice INV-0118834 is on hold until 6 March."]
    assert texts(after(hold, ("release_hold", {"invoice": "INV-0118834"}, "Let me look."))) == []
    other = ("release_hold", {"invoice": "INV-7777777"}, "Let me look.")
    assert texts(after(hold, other)) == ["Invoice INV-0118834 is on hold until 6 March."]


def test_what_is_said_before_any_result_reports_nothing():
    entries = [Said("s", None, Message("assistant", (Text("All tests are fixed now."),)), "")]
    assert texts(entries) == []


def test_what_stands_under_the_title_of_a_problem_is_not_done_work():
    review = (
        "The review:\n\n### Bug: stale locks\n**Impact:**\n- Requests are blocked now.\n- The lock is created twice.\n\n"
        "**Fix**\n- The lock has been removed.\n\n## Bug fixes\n- The retry has been added."
    )
    assert texts(after(("run", {"what": "review"}, review))) == [
        "The lock has been removed.",
        "The retry has been added.",
    ]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("**Root cause:** the lock file was never closed.\n\nI've removed the stale lock.", 1),
        ("**The bug is gone.** All 42 tests pass now.", 2),
        ("- **No issues found.**\n\nThe migration has been applied.", 1),
        ("**Issue #42** has been closed and **PR #7** is merged.", 1),
        ("```bash\n# before the bug\nmake check\n```\n\nThe version has been updated to 1.4.", 1),
        ("## Summary of findings\n\nThe lock has been removed.", 1),
        ("**Bugs removed**\n- The lock has been removed.", 1),
        ("**Impact**\n- Requests are blocked now.\n\nThe lock has been removed.", 1),
        ("## Unresolved issues\n- The lock is created twice.", 0),
        ("## Issues with the prefix\n\n- The lock is created twice.", 0),
    ],
)
def test_a_title_of_a_problem_takes_its_own_stretch_and_no_more(said, kept):
    assert len(texts(after(("run", {"what": "all"}, said)))) == kept
