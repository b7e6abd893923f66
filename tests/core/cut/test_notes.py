"""The notes that stand where content was, and that nothing is taken from them."""

from __future__ import annotations

import msgspec
from tests.support.talk import assistant, call, entries, tool, user

from foldline.core.cut.notes import UNANSWERED, error_in, is_cleared, with_held
from foldline.core.cut.prune import placeholder
from foldline.core.ledger.table import collect
from foldline.core.log.messages import Text, ToolResult

FAILED = ToolResult("c", (Text("collecting\nE   KeyError: 'rate'\n3 failed"),), is_error=True)


def test_the_telling_line_of_a_blanked_error_is_found_again() -> None:
    assert (
        error_in(placeholder(FAILED, call("c", command="make check; echo"), "2026-11-22"))
        == "E KeyError: 'rate'"
    )
    assert error_in("[Old tool result cleared earlier: empty]") == ""


def test_a_note_that_says_what_was_held_is_still_one_with_its_error() -> None:
    blank = placeholder(FAILED, call("c", command="make check; echo"), "2026-11-22")
    fuller = with_held(blank, "src/rates.py: RATE = 3; a[0] | tests/test_rates.py")
    assert fuller.startswith(blank[:-1])
    assert is_cleared(fuller)
    assert error_in(fuller) == error_in(blank) == "E KeyError: 'rate'"


def test_no_fact_quotes_a_note() -> None:
    read, run, gone = (
        call("c1", path="src/rates.py"),
        call("c2", command="make check"),
        call("c3", command="make load"),
    )
    blank = placeholder(ToolResult("c1", (Text("RATE = 3\n" * 9),)), read, "2026-11-22")
    failed = tool("c2", placeholder(FAILED, run, "2026-11-22"))
    failed = msgspec.structs.replace(
        failed, parts=(msgspec.structs.replace(failed.results[0], is_error=True),)
    )
    said = [
        user("Look at the rates."),
        assistant("I read `src/rates.py`.", read),
        tool("c1", blank),
        assistant("Then the check.", run),
        failed,
        assistant("Now the load.", gone),
        msgspec.structs.replace(tool("c3"), parts=(ToolResult("c3", (Text(UNANSWERED),), is_error=True),)),
        assistant("A long answer."),
    ]
    ledger = collect(entries(*said))
    quoted = str(msgspec.to_builtins(ledger))
    assert "cleared" not in quoted
    assert "No result was recorded" not in quoted
    assert [item.text for item in ledger.items if item.kind == "ran"] == [
        "$ make check -> E KeyError: 'rate'",
        "$ make load -> no answer",
    ]
