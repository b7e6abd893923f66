"""Files that the program around a session says were read or changed."""

from __future__ import annotations

from foldline.core.ledger.facts.files import FILES, files_note, tracked
from foldline.core.log.entries import Noted


def note(id_: str = "n1", kind: str = FILES, **data) -> Noted:
    return Noted(id_, None, kind, data)


def test_each_file_of_a_note_is_a_fact_that_cites_it():
    ledger = tracked([note(read=["a.py"], modified=["b.py", "c.py"]), note("n2", deleted=["a.py"])])
    assert [(fact.path, fact.status, fact.entries) for fact in ledger.files] == [
        ("a.py", "read", ("n1",)),
        ("b.py", "modified", ("n1",)),
        ("c.py", "modified", ("n1",)),
        ("a.py", "deleted", ("n2",)),
    ]


def test_other_notes_and_what_is_no_path_are_left_out():
    assert tracked([note(kind="title", read=["a.py"])]).files == ()
    assert tracked([note(read="a.py"), note(read=["", 4, None]), note(renamed=["a.py"])]).files == ()


def test_a_note_names_only_what_there_is():
    assert files_note({"read": ("a.py",), "created": (), "modified": ["b.py"]}) == {
        "read": ["a.py"],
        "modified": ["b.py"],
    }
