"""Files from calls of any shape: several agents' tools under odd names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from foldline.core.checkpoint import listing
from foldline.core.ledger.facts import files
from foldline.core.ledger.facts.actions import stretch
from foldline.core.ledger.facts.kinds import FileFact, Ledger
from foldline.core.ledger.table import collect, merge
from foldline.core.log.entries import Noted, Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def ran(*calls: tuple[str, Any], result: str = "ok", is_error: bool = False) -> list[Said]:
    entries: list[Said] = []
    for i, (name, arguments) in enumerate(calls):
        entries.append(Said(f"a{i}", None, Message("assistant", (ToolCall(f"c{i}", name, arguments),)), ""))
        answer = ToolResult(f"c{i}", (Text(result),), is_error=is_error)
        entries.append(Said(f"r{i}", None, Message("tool", (answer,)), ""))
    return entries


def taken(entries: list[Said]) -> tuple[FileFact, ...]:
    return files.collect(stretch(entries))


def touched(*calls: tuple[str, Any], **how: Any) -> dict[str, str]:
    return {fact.path: fact.status for fact in taken(ran(*calls, **how))}


PATCH = """*** Begin Patch
*** Add File: docs/new.md
+# Hello
*** Update File: src/app.py
@@
-a = 1
+a = 2
*** Delete File: old.txt
*** Update File: src/from.py
*** Move to: src/to.py
@@
+x = 1
*** End Patch"""
PATCHED = {"docs/new.md": "created", "src/app.py": "modified", "old.txt": "deleted", "src/from.py": "deleted", "src/to.py": "created"}  # fmt: skip
DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/y.py\n@@ -0,0 +1 @@\n+c\n--- a/z.py\n+++ /dev/null\n"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        # Claude Code
        ("Read", {"file_path": "/p/a.py", "offset": 3, "limit": 9}, {"/p/a.py": "read"}),
        ("Edit", {"file_path": "/p/a.py", "old_string": "x", "new_string": "y", "replace_all": False}, {"/p/a.py": "modified"}),
        ("edit_file", {"path": "a.py", "old": "x", "new": "y"}, {"a.py": "modified"}),
        ("Write", {"file_path": "/p/a.py", "content": "x"}, {"/p/a.py": "created"}),
        ("MultiEdit", {"file_path": "/p/a.py", "edits": [{"old_string": "x", "new_string": "y"}]}, {"/p/a.py": "modified"}),
        ("NotebookEdit", {"notebook_path": "/p/n.ipynb", "new_source": "x = 1", "cell_id": "3"}, {"/p/n.ipynb": "modified"}),
        ("Grep", {"pattern": "x", "path": "/p/src"}, {}),
        ("Glob", {"pattern": "**/*.py"}, {}),
        ("LS", {"path": "/p"}, {}),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}, {"a.py": "read"}),
        ("str_replace_based_edit_tool", {"command": "create", "path": "a.py", "file_text": "x"}, {"a.py": "created"}),
        ("str_replace_editor", {"command": "insert", "path": "a.py", "insert_line": 1, "new_str": "x"}, {"a.py": "modified"}),
        # pi
        ("read", {"path": "a.ts", "offset": 1, "limit": 5}, {"a.ts": "read"}),
        ("edit", {"path": "a.ts", "oldText": "x", "newText": "y"}, {"a.ts": "modified"}),
        ("write", {"path": "a.ts", "content": "x"}, {"a.ts": "created"}),
        # OpenCode, Gemini
        ("edit", {"filePath": "/p/a.ts", "oldString": "x", "newString": "y"}, {"/p/a.ts": "modified"}),
        ("replace", {"file_path": "a.ts", "instruction": "do it", "old_string": "x", "new_string": "y"}, {"a.ts": "modified"}),
        ("read_many_files", {"paths": ["a.ts", "b/c.ts"]}, {"a.ts": "read", "b/c.ts": "read"}),
        ("list_directory", {"dir_path": "src"}, {}),
        # Codex
        ("apply_patch", {"input": PATCH}, PATCHED),
        ("apply_patch", PATCH, PATCHED),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, PATCHED),
        ("shell", {"command": ["apply_patch", PATCH]}, PATCHED),
        ("git_apply", {"diff": DIFF}, {"x.py": "modified", "y.py": "created", "z.py": "deleted"}),
        # by shape, whatever the name
        ("zorp", {"targetFile": "a.rs", "search": "x", "replace": "y"}, {"a.rs": "modified"}),
        ("blub", {"uri": "file:///p/a.rs", "contents": "x"}, {"/p/a.rs": "created"}),
        ("frob", {"changes": [{"path": "a.rs", "oldText": "x", "newText": "y"}, {"path": "b.rs", "content": "z"}]}, {"a.rs": "modified", "b.rs": "created"}),
        ("delete_file", {"path": "a.rs"}, {"a.rs": "deleted"}),
        ("move_file", {"source": "a.rs", "destination": "b.rs"}, {"a.rs": "deleted", "b.rs": "created"}),
        ("copy_file", {"source": "a.rs", "destination": "b.rs"}, {"b.rs": "created"}),
        ("append_to_file", {"path": "a.rs", "content": "x"}, {"a.rs": "modified"}),
        ("create_file", {"path": "empty.rs"}, {"empty.rs": "created"}),
        ("fetch", {"path": "https://example.org/a.html"}, {}),
        ("mystery", {"file": {"nested": 1}, "path": 3, "paths": [None, 4]}, {}),
        ("mystery", "not json at all", {}),
        ("mystery", {}, {}),
        # shell
        ("Bash", {"command": "cd web && cat src/a.ts | head -5"}, {"web/src/a.ts": "read"}),
        ("shell_command", {"command": "sed -n '1,9p' a.ts", "workdir": "/p"}, {"/p/a.ts": "read"}),
        ("run", {"cmd": "git mv a.py b.py && rm -f c.py"}, {"a.py": "deleted", "b.py": "created", "c.py": "deleted"}),
        ("exec", {"script": "cat > new.py <<'EOF'\nrm everything.py\nEOF\necho x >> log.txt"}, {"new.py": "created", "log.txt": "modified"}),
    ],
)  # fmt: skip
def test_what_a_call_does_to_files(name: str, arguments: Any, expected: dict[str, str]) -> None:
    assert touched((name, arguments)) == expected


@pytest.mark.parametrize(
    ("result", "is_error"),
    [
        ("anything", True),
        ("<tool_use_error>String to replace not found in file.</tool_use_error>", False),
        ("Exit code: 1\nOutput:\n", False),
        ("apply_patch verification failed: no such lines", False),
        ("The user doesn't want to proceed with this tool use.", False),
        ("Error: ENOENT: no such file or directory", False),
    ],
)
def test_a_call_that_failed_did_nothing(result: str, is_error: bool) -> None:
    call = ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"})
    assert touched(call, result=result, is_error=is_error) == {}


def test_a_call_without_a_result_did_nothing_yet() -> None:
    assert taken(ran(("Write", {"file_path": "a.py", "content": "x"}))[:1]) == ()


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        (["read", "modified"], "modified"),
        (["created", "modified", "read"], "created"),
        (["read", "created"], "modified"),
        (["created", "deleted"], "deleted"),
        (["deleted", "created"], "created"),
        (["modified", "deleted", "read"], "modified"),
    ],
)
def test_the_status_that_counts(steps: list[str], status: str) -> None:
    calls = {
        "read": ("Read", {"file_path": "a.py"}),
        "created": ("Write", {"file_path": "a.py", "content": "x"}),
        "modified": ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}),
        "deleted": ("Bash", {"command": "rm a.py"}),
    }
    assert touched(*(calls[step] for step in steps)) == {"a.py": status}
    first, second = (
        taken(ran(calls[steps[0]])),
        taken(ran(*(calls[step] for step in steps[1:]))),
    )
    assert [(fact.path, fact.status) for fact in files.merge(first, second, Ledger())][-1:] == [
        ("a.py", status)
    ]


def test_a_relative_path_joins_the_one_absolute_path_that_ends_in_it() -> None:
    calls = [("Read", {"file_path": "/p/src/a.py"}), ("Bash", {"command": "cat src/a.py && cat other/b.py"})]
    assert touched(*calls) == {"/p/src/a.py": "read", "other/b.py": "read"}
    facts = {fact.path: fact for fact in taken(ran(*calls))}
    assert facts["/p/src/a.py"].entries == ("a0", "a1")


def test_a_folder_is_no_file() -> None:
    listing = "<path>/p/src</path>\n<type>directory</type>\n<entries>a.py</entries>"
    assert touched(("read", {"filePath": "/p/src"}), result=listing) == {}


def command(line: str) -> tuple[str, Any]:
    return "Bash", {"command": line}


WRITTEN = ("Write", {"path": "old/a.py", "content": "x"})


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ([WRITTEN, command("rm -rf old")], {"old": "deleted"}),
        ([WRITTEN, command("rm -rf old"), WRITTEN], {"old": "deleted", "old/a.py": "created"}),
        ([WRITTEN, command("git mv old new")], {"old": "deleted", "new": "created", "new/a.py": "created"}),
        (
            [WRITTEN, command("mv old new"), command("mv new newer")],
            {"old": "deleted", "new": "deleted", "newer": "created", "newer/a.py": "created"},
        ),
        (
            [WRITTEN, command("mv old new"), command("rm -r new")],
            {"old": "deleted", "new": "deleted"},
        ),
        (
            [WRITTEN, ("move", {"source": "old", "destination": "new"}), ("Read", {"path": "new/a.py"})],
            {"old": "deleted", "new": "created", "new/a.py": "created"},
        ),
        (
            [WRITTEN, command("mv old new"), command("mv new old")],
            {"new": "deleted", "old": "created", "old/a.py": "created"},
        ),
    ],
)
def test_files_go_and_move_with_their_folder(steps: list[tuple[str, Any]], left: dict[str, str]) -> None:
    assert touched(*steps) == left
    for cut in range(1, len(steps)):
        first, second = taken(ran(*steps[:cut])), taken(ran(*steps[cut:]))
        merged = files.merge(first, second, Ledger())
        assert {fact.path: fact.status for fact in merged} == left


def test_a_folder_that_was_removed_is_told_until_a_file_is_made_in_it() -> None:
    removed = taken(ran(WRITTEN, command("rm -rf old")))
    again = taken(ran(WRITTEN, command("rm -rf old"), WRITTEN))
    assert listing.write(removed, "", len, 500) == ["<modified-files>", "old (deleted)", "</modified-files>"]
    assert listing.write(again, "", len, 500) == ["<modified-files>", "old/a.py", "</modified-files>"]


def test_thousands_of_removed_folders_come_to_an_end() -> None:
    many = [FileFact(f"{'d/' * 20}{at}/a.py", "read") for at in range(4_000)]
    gone = [FileFact(f"{'d/' * 20}{at}", "deleted") for at in range(4_000)]
    assert len(files.unified([*many, *gone])) == 4_000


def test_patches_with_stray_headers() -> None:
    stray = "*** Begin Patch\n*** Move to: b.py\n+x\n*** End Patch"
    assert touched(("apply_patch", stray)) == {}
    assert touched(("git_apply", {"text": "--- a/x.py\t2024\n+++ b/x.py\t2024\n+new = 1\n"})) == {
        "x.py": "modified"
    }


def test_merging_the_same_file_again_changes_nothing() -> None:
    facts = taken(ran(("Read", {"file_path": "/p/a.py"}), ("Read", {"file_path": "/p/b.py"})))
    assert files.merge(facts, facts, Ledger()) == facts


def note(id_: str = "n1", kind: str = files.FILES, parent: str | None = None, **data) -> Noted:
    return Noted(id_, parent, kind, data)


def noted(*notes: Noted, before: Sequence[FileFact] = ()) -> tuple[FileFact, ...]:
    return files.tracked(notes, before, (), ())[1].files


def test_each_file_of_a_note_is_a_fact_that_cites_it():
    found = noted(note(read=["a.py"], modified=["b.py", "c.py"]), note("n2", deleted=["a.py"]))
    assert [(fact.path, fact.status, fact.entries) for fact in found] == [
        ("a.py", "read", ("n1",)),
        ("b.py", "modified", ("n1",)),
        ("c.py", "modified", ("n1",)),
        ("a.py", "deleted", ("n2",)),
    ]


def test_other_notes_and_what_is_no_path_are_left_out():
    assert noted(note(kind="title", read=["a.py"])) == ()
    assert noted(note(read="a.py"), note(read=["", 4, None]), note(renamed=["a.py"])) == ()


def test_notes_that_facts_cite_are_known():
    before = [FileFact("b.py", "created", ("n2", *(f"e{at}" for at in range(11))))]
    found = noted(
        note("n1", deleted=["b.py"]), note("n2", modified=["b.py"]), note("n3", read=["c.py"]), before=before
    )
    assert [fact.path for fact in found] == ["c.py"]


@pytest.mark.parametrize(
    ("behind", "status"), [(0, "created"), (1, "created"), (2, "deleted"), (3, "deleted")]
)
def test_a_note_and_a_call_count_in_the_order_in_which_they_came(behind: int, status: str) -> None:
    said = ran(("Read", {"path": "b.py"}), ("Write", {"path": "a.py", "content": "x"}))
    title = note("n0", "title", parent=said[behind].id)
    found = collect(said)
    earlier, later = files.tracked([title, note(parent="n0", deleted=["a.py"])], (), found.files, said)
    known = merge(merge(earlier, found), later)
    assert {fact.path: fact.status for fact in known.files} == {"a.py": status, "b.py": "read"}


def test_a_note_makes_no_check_outdated():
    said = ran(("bash", {"command": "make test"}), result="9 passed")
    found = collect(said)
    earlier, later = files.tracked([note(modified=["a.py"])], (), found.files, said)
    assert [fact.outdated for fact in merge(merge(earlier, found), later).checks] == [False]


def test_a_note_names_only_what_there_is():
    assert files.files_note({"read": ("a.py",), "created": (), "modified": ["b.py"]}) == {
        "read": ["a.py"],
        "modified": ["b.py"],
    }
