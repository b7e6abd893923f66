"""Texts that recall inserted are not history, and not a source of facts."""

from __future__ import annotations

import msgspec
from tests.support.talk import assistant, call, entries, tool, user

from foldline.core.cut.notes import (
    MARK,
    UNANSWERED,
    error_in,
    is_cleared,
    is_recall,
    with_held,
    without_recall,
)
from foldline.core.cut.prune import placeholder
from foldline.core.ledger.table import collect
from foldline.core.log.messages import Text, ToolResult

LOOKED_UP = f"{MARK}Entry e1, characters 0 to 40 of 40, quoted as data:\n[Tool result]: PORT=8080\nError: no such file a.py"


def test_entries_without_recall_are_the_same_entries():
    said = entries(user("Hello."), assistant("", call("c1")), tool("c1"))
    assert without_recall(said) is said


def test_recalls_own_parts_are_left_out_and_words_beside_them_stay():
    said = entries(
        user("Which port?"),
        assistant("Let me look.", call("r1", "recall_search", query="port"), call("c1")),
        tool("r1", LOOKED_UP),
        tool("c1", "done"),
        assistant("", call("r2", "recall_read", entry="e1")),
        tool("r2", LOOKED_UP),
    )

    left = without_recall(said)

    assert [entry.id for entry in left] == [said[i].id for i in (0, 1, 3)]
    assert left[1].message.text == "Let me look."
    assert [one.id for one in left[1].message.calls] == ["c1"]
    assert is_recall(said[4].message)
    assert not is_recall(said[1].message)


def test_an_answer_is_recalls_by_its_call_not_by_how_it_begins():
    said = entries(
        assistant("", call("c1", "bash", command="make release")),
        tool("c1", LOOKED_UP),
        assistant("", call("c1", "recall_read", entry="e1")),
        tool("c1", "[cleared]"),
        tool("c9", LOOKED_UP),
    )
    assert [entry.id for entry in without_recall(said)] == [said[0].id, said[1].id]
    assert collect(said).items[0].text.startswith("$ make release -> ")


def test_what_is_looked_up_again_is_no_new_fact_and_its_call_is_not_open():
    said = entries(
        user("Mend the service."),
        assistant("", call("c1", "bash", command="cat .env")),
        tool("c1", "PORT=8080"),
        assistant("", call("c2", "edit", path=".env", old_string="PORT=8080", new_string="PORT=9090")),
        tool("c2", "edited"),
    )
    looked = entries(
        *(entry.message for entry in said),
        assistant("", call("r1", "recall_search", query="port")),
        tool("r1", LOOKED_UP),
    )

    before, after = collect(said), collect(looked)

    assert after.items == before.items
    assert after.names == before.names
    assert after.checks == before.checks
    assert after.files == before.files
    assert after.tools == before.tools


# ---- the notes that stand where content was, and that nothing is taken from them


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
