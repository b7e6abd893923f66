"""What recall put into a session is no past of its own, and no source of facts."""

from tests.support.talk import assistant, call, entries, tool, user

from foldline.core.cut.notes import MARK, is_recall, without_recall
from foldline.core.ledger.table import collect

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
