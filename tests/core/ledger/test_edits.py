"""What edits took out of files, and what becomes of lines that were quoted before."""

from __future__ import annotations

import pytest

from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts.calls import uses
from foldline.core.ledger.facts.edits import FileEdit, edits, replaced_values
from foldline.core.ledger.worth import stale
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def talk(*calls, answers=()):
    """Calls one after another, each answered."""
    entries = []
    for number, (name, arguments) in enumerate(calls):
        call = ToolCall(f"c{number}", name, arguments)
        answer = answers[number] if number < len(answers) else "ok"
        result = ToolResult(f"c{number}", (Text(answer),), answer.startswith("Error"))
        entries.append(Said(f"a{number}", None, Message("assistant", (call,)), ""))
        entries.append(Said(f"r{number}", None, Message("tool", (result,)), ""))
    return entries


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-limit = 10\n+limit = 20\n*** Delete File: src/b.py\n*** End Patch"
DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-limit = 10\n+limit = 20\n"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (
            "edit",
            {"path": "src/a.py", "old": "x = 1", "new": "x = 2"},
            [("src/a.py", "x = 1", "x = 2", False)],
        ),
        (
            "FileEdit",
            {"file_path": "/w/src/a.py", "old_string": "x", "new_string": "y"},
            [("src/a.py", "x", "y", False)],
        ),
        (
            "change",
            {
                "path": "src/a.py",
                "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "p", "newText": "q"}],
            },
            [("src/a.py", "x", "y", False), ("src/a.py", "p", "q", False)],
        ),
        ("write", {"path": "src/a.py", "content": "x = 2\n"}, [("src/a.py", "", "x = 2\n", True)]),
        (
            "apply_patch",
            {"input": PATCH},
            [("src/a.py", "limit = 10", "limit = 20", False), ("src/b.py", "", "", True)],
        ),
        ("apply", {"diff": DIFF}, [("src/a.py", "limit = 10", "limit = 20", False)]),
        (
            "bash",
            {"command": r"sed -i 's/1\.4\.2/1.5.0/' src/a.py && rm src/b.py"},
            [("src/a.py", "1.4.2", "1.5.0", False), ("src/b.py", "", "", True)],
        ),
        ("bash", {"command": "sed -i 's/a.*b/c/' src/a.py"}, []),
        ("bash", {"command": "sed -n 's/abc/def/p' src/a.py"}, []),
        ("read", {"path": "src/a.py"}, []),
    ],
)
def test_edits_by_shape(name, arguments, expected):
    found = edits(uses(talk((name, arguments))))
    kept = [
        (edit.path, edit.old, edit.new, edit.whole) for edit in found if edit.old or edit.new or edit.whole
    ]
    assert [row for row in kept if row[1] != row[2] or row[3]] == expected


def test_an_edit_that_failed_changed_nothing():
    assert (
        edits(uses(talk(("edit", {"path": "a.py", "old": "x", "new": "y"}), answers=["Error: no match"])))
        == ()
    )


@pytest.mark.parametrize(
    ("line", "old", "new", "whole", "expected"),
    [
        (
            "serve --port 8080 --threads 8",
            "--port 8080",
            "--port 9090",
            False,
            "serve --port 9090 --threads 8",
        ),
        ("serve --threads 8", "--port 8080", "--port 9090", False, "serve --threads 8"),
        ("import json", "import json", "import json\nimport os", False, "import json"),
        ("redis_url: str = 'x'", "redis_url: str = 'x'\n", "", False, None),
        (
            "a = first(1)\nb".split("\n", maxsplit=1)[0],
            "a = first(1)\nb = 2",
            "a = first(2)\nb = 2",
            False,
            "a = first(2)",
        ),
        ("take(name, rate)", "take(name, rate)\nclose()", "close()\nopen_it()", False, None),
        ("limit = 10", "", "limit = 10\nburst = 5", True, "limit = 10"),
        ("per_minute: int = 60", "", "per_minute: int = 90\nburst = 5", True, "per_minute: int = 90"),
        ("import redis", "", "import sqlite3\nburst = 5", True, None),
    ],
)
def test_a_quoted_line_after_an_edit(line, old, new, whole, expected):
    assert stale.after(line, FileEdit("a.py", old, new, "e", whole)) == expected


def test_values_that_edits_replaced():
    def made(old, new, whole=False):
        return FileEdit("a.py", old, new, "e", whole)

    assert replaced_values([made("port 8081", "port 9091")]) == {"8081"}
    assert replaced_values([made("port 8081", "port 9091"), made("port 9091", "port 8081")]) == {"9091"}
    assert replaced_values([made("port 8081", "port 9091"), made("", "port 8081", True)]) == frozenset()


def test_a_checkpoint_quotes_the_newer_line_and_cites_the_edit():
    read = ("read", {"path": "src/server.py"})
    edit = ("edit", {"path": "src/server.py", "old": "listen_port = 8081", "new": "listen_port = 9091"})
    entries = talk(read, edit, answers=["1\tlisten_port = 8081  # where the proxy asks us", "ok"])
    quoted = [excerpt for excerpt in collect(entries).excerpts if excerpt.kind in ("line", "outline")]
    assert [excerpt.text for excerpt in quoted] == ["listen_port = 9091 # where the proxy asks us"]
    assert [excerpt.entry for excerpt in quoted] == ["a1"]
    removed = talk(
        read, ("bash", {"command": "rm src/server.py"}), answers=["1\tlisten_port = 8081  # where it asks"]
    )
    assert [e for e in collect(removed).excerpts if e.kind == "line"] == []


def test_what_a_shown_diff_takes_out_is_not_quoted():
    shown = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old_limit = 10 requests for each kiosk\n+new_limit = 20 requests for each kiosk"
    entries = talk(("bash", {"command": "git diff"}), answers=[shown])
    texts = " ".join(excerpt.text for excerpt in collect(entries).excerpts)
    assert "old_limit" not in texts
    assert "new_limit" in texts


def test_an_error_goes_with_the_name_that_it_is_about():
    entries = talk(
        ("write", {"path": "src/a.py", "content": "import redis\n"}),
        ("bash", {"command": "python -c 'import a'"}),
        ("write", {"path": "src/a.py", "content": "import sqlite3\n"}),
        answers=[
            "ok",
            "Traceback (most recent call last)\nModuleNotFoundError: No module named 'redis'",
            "ok",
        ],
    )
    assert [fact.fixed for fact in collect(entries).errors] == [True]
    assert [fact.fixed for fact in collect(entries[:4]).errors] == [False]


def test_a_hit_in_an_edited_file_without_a_suffix_is_quoted_as_it_reads_now():
    grep = ("bash", {"command": "grep -rn loadtest ."})
    sed = ("bash", {"command": "sed -i 's/8081/9091/g' Makefile"})
    found = "./Makefile:15:\t$(PYTHON) scripts/loadtest.py --base http://127.0.0.1:8081 --seconds 20"
    texts = " ".join(excerpt.text for excerpt in collect(talk(grep, sed, answers=[found])).excerpts)
    assert "8081" not in texts.replace("s/8081/9091/g", "")
    assert "http://127.0.0.1:9091" in texts
