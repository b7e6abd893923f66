"""Checks, commits and plans: the newest state of each, taken from what calls did."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.talk import assistant, entries, user

from foldline.core.checkpoint import state
from foldline.core.checkpoint.state import is_done
from foldline.core.ledger.facts.kinds import CheckFact, CommitFact, Ledger, PlanStep
from foldline.core.ledger.facts.outcomes import outcome
from foldline.core.ledger.facts.touches import elsewhere
from foldline.core.ledger.table import KINDS, bounded, collect, current, merge
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def used(name: str, arguments: object, output: str = "ok") -> list[Message]:
    return [
        assistant("", ToolCall("c1", name, arguments)),  # type: ignore[arg-type]
        Message("tool", (ToolResult("c1", (Text(output),)),)),
    ]


def ran(command: str, output: str) -> list[Message]:
    return used("bash", {"command": command}, output)


EDIT = used("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"})


def of(*messages: Message) -> Ledger:
    return collect(entries(*messages))


def checks(ledger: Ledger) -> list[tuple[str, str, bool | None, bool]]:
    return [
        (fact.command, fact.outcome, fact.passed, fact.outdated)
        for fact in ledger.checks
        if not fact.only_ran
    ]


def test_the_newest_run_of_each_check_counts():
    found = of(
        *ran("make test", "2 failed"),
        *EDIT,
        *ran("make test", "9 passed"),
        *ran("ruff check", "All checks passed"),
    )
    assert checks(found) == [("make test", "9 passed", True, False)]


def test_a_command_that_failed_and_ran_again_is_a_check():
    failed, passed = ran("mise run lint", "Exit code: 1"), ran("mise run lint", "0 issues.")
    assert checks(of(*failed, *passed)) == [("mise run lint", "0 issues.", None, False)]
    assert checks(of(*failed)) == checks(of(*passed)) == []
    lines = state.lines(of(*failed, *ran("make a", "3 passed")), 500, len)
    assert lines == ["- `make a`: 3 passed"]


RUNS = [
    ran(f"make {name}", output)
    for name in "ab"
    for output in ("fine", "Exit code: 1", "2 passed", "1 failed")
]


@given(st.lists(st.sampled_from([*RUNS, EDIT]), max_size=8), st.data())
def test_checks_of_two_ranges_are_those_of_both_together(steps, data):
    """A check that failed before the last fold and passes now is not reported as failing."""
    said = entries(*chain.from_iterable(steps))
    cut = 2 * data.draw(st.integers(0, len(steps)))
    first = bounded(merge(Ledger(), collect(said[:cut])))
    assert merge(first, collect(said[cut:])).checks == collect(said).checks


@pytest.mark.parametrize(
    "output",
    [
        "--- FAIL: TestLamp (0.09s)\nFAIL\nFAIL\texample.org/lamp\t0.1s\nok  \texample.org/pier\t0.3s",
        "ok  \texample.org/pier\t0.3s\nFAIL\texample.org/lamp [build failed]\nFAIL",
        '12 pass\n0 fail\nRan 12 tests across 2 files.\nerror: script "lint" exited with code 1',
    ],
)
def test_a_run_that_says_it_failed_failed(output):
    """A run of Go's tests has no counts, and its exit code is lost behind a pipe."""
    found = of(*ran("make test", "ok"), *EDIT, *ran("make test", output))
    assert [fact.passed for fact in found.checks] == [False]
    assert "make test" in state.two_sentences(found)


def test_a_check_is_outdated_when_a_file_is_changed_behind_it():
    found = of(*ran("make test", "9 passed"), *EDIT)
    assert checks(found) == [("make test", "9 passed", True, True)]
    later = merge(of(*ran("make test", "9 passed")), of(*EDIT))
    assert checks(later) == checks(found)


def test_runs_in_two_folders_are_two_checks():
    found = of(*ran("cd frontend && npm test", "4 failed"), *ran("cd backend && npm test", "30 passed"))
    assert checks(found) == [
        ("(in frontend) npm test", "4 failed", False, False),
        ("(in backend) npm test", "30 passed", True, False),
    ]
    assert [item.calls for item in found.items] == [1, 1]
    beside = [used("bash", {"command": "npm test", "workdir": f"/app/{name}"}, "1 passed") for name in "ab"]
    assert len(of(*beside[0], *beside[1]).checks) == 2


def test_the_folder_of_the_work_is_not_told():
    looks = [message for name in "abc" for message in used("Read", {"path": f"/home/me/lamp/{name}.py"})]
    found = of(*looks, *ran("make test", "1 failed"), *ran("cd /home/me/lamp && make test", "9 passed"))
    assert checks(found) == [("make test", "9 passed", True, False)]


def test_a_shell_command_that_changes_a_file_makes_checks_outdated_and_a_failed_edit_does_not():
    tests = ran("make test", "9 passed")
    failed = used("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "Error: not found")
    for change in ("sed -i s/x/y/ a.py", "cat > a.py <<'E'\nx\nE", "rm a.py && ls"):
        assert checks(of(*tests, *ran(change, "")))[0][3] is True
    assert checks(of(*tests, *failed))[0][3] is False
    assert checks(of(*tests, *ran("make lint > lint.log", "")))[0][3] is False
    assert checks(of(*ran("sed -i s/x/y/ a.py && make test", "9 passed")))[0][3] is False


@pytest.mark.parametrize(
    "output",
    [
        "To example.org:a\n ! [rejected]        main -> main (fetch first)",
        "error: failed to push some refs to 'example.org:a'",
        "fatal: could not read from remote repository",
    ],
)
def test_a_push_that_was_rejected_pushes_nothing(output):
    made = of(*ran("git commit -m a", "[main 1a2b3c4] First\n"), *ran("git push", output))
    assert [fact.pushed for fact in made.commits] == [False]


def test_a_file_that_was_put_back_is_not_changed_since_the_commit():
    names = ("/home/me/lamp/src/a.py", "/home/me/lamp/src/b.py")
    made = ran("git commit -m a", "[main 1a2b3c4] First\n")
    work = [one for path in names for one in used("Edit", {"path": path, "old": "x", "new": "y"})]
    for command, left in (
        ("git checkout -- src/a.py", names[1:]),
        ("git restore src/a.py ./src/b.py", ()),
        ("git checkout -- .", ()),
        ("git reset --hard", ()),
        ("git restore --staged src/a.py", names),
        ("git checkout src", names),
    ):
        found = of(*made, *work, *ran(command, ""))
        assert tuple(fact.path for fact in found.uncommitted) == left, command
    tests = ran("make test", "9 passed")
    assert checks(of(*work, *tests, *ran("git checkout -- src/a.py", "")))[0][3] is True
    assert checks(of(*work, *tests, *ran("git checkout main", "")))[0][3] is False


def test_a_push_pushes_the_branches_that_git_names():
    temporary = ran("git commit -m a", "[temp 1a2b3c4] First\n")
    made = ran("git commit -m b", "[feature 2b3c4d5] Second\n")
    for line in ("   1a2b3c4..2b3c4d5 ", " + 1a2b3c4...2b3c4d5", " * [new branch]      "):
        output = f"remote: Hello\nTo example.org:a\n{line} feature -> feature (forced update)"
        found = of(*temporary, *made, *ran("git push", output))
        assert [fact.pushed for fact in found.commits] == [False, True]
    fetched = "From example.org:a\n   1a2b3c4..2b3c4d5  feature    -> origin/feature\nEverything up-to-date"
    pushed = of(*temporary, *ran("git pull && git push", fetched))
    assert [fact.pushed for fact in pushed.commits] == [True]


def test_thousands_of_runs_and_edits_come_to_an_end():
    many = [message for n in range(4_000) for message in (*ran(f"make test{n}", "1 passed"), *EDIT)]
    assert sum(fact.outdated for fact in of(*many).checks) == 4_000


def test_files_that_were_changed_behind_the_last_commit_are_told():
    def edit(path: str) -> list[Message]:
        return used("Edit", {"file_path": path, "old_string": "a", "new_string": "b"})

    first = of(*edit("a.py"), *ran("git commit -m a", "[main 1a2b3c4] First\n"), *edit("b.py"))
    later = of(*edit("c.py"))
    assert [fact.path for fact in first.uncommitted] == ["b.py"]
    assert [fact.path for fact in merge(first, later).uncommitted] == ["b.py", "c.py"]
    assert [fact.path for fact in merge(later, first).uncommitted] == ["b.py"]


def test_commits_stand_with_branch_and_push():
    made = of(
        *ran("git commit -m a", "[main 1a2b3c4] First\n"),
        *ran("git commit -m b && git push", "[main 2b3c4d5] Second\n"),
    )
    assert [(fact.key, fact.branch, fact.subject, fact.pushed) for fact in made.commits] == [
        ("1a2b3c4", "main", "First", True),
        ("2b3c4d5", "main", "Second", True),
    ]


FIRST, SECOND = (ran(f"git commit -m {name}", f"[main {name}abc123] {name}\n") for name in "ab")


@pytest.mark.parametrize(
    ("then", "output", "left"),
    [
        ("git commit --amend -m c", "[main cabc123] c\n", ["aabc123", "cabc123"]),
        ("git commit --amend -m c", "Exit code 1\nhook failed", ["aabc123", "babc123"]),
        ("git reset --hard HEAD~1", "HEAD is now at aabc123 a", ["aabc123"]),
        ("git reset --soft HEAD^^ && git commit -m c", "[main cabc123] c\n", ["cabc123"]),
        ("git reset --hard HEAD~9", "HEAD is now at 0000001 old", []),
        ("git reset HEAD a.py", "", ["aabc123", "babc123"]),
    ],
)
def test_a_commit_that_was_taken_back_is_not_told(then, output, left):
    assert [fact.key for fact in of(*FIRST, *SECOND, *ran(then, output)).commits] == left


@pytest.mark.parametrize(
    ("push", "pushed"),
    [
        ("git push", True),
        ("git push -u origin main", True),
        ("git push origin HEAD", True),
        ("git push origin +main:release", True),
        ("git push origin feature", False),
        ("git push --tags", False),
        ("git push --dry-run", False),
    ],
)
def test_a_push_counts_for_the_branch_that_it_names(push, pushed):
    found = of(*FIRST, *ran(push, "To example.org:a\n"), *SECOND)
    assert [fact.pushed for fact in found.commits] == [pushed, False]


@pytest.mark.parametrize(
    ("commit", "output"),
    [
        ("git commit -m a", "[detached HEAD 1a2b3c4] First\n"),
        ("git commit -qam a", "Exit code 0"),
        ("git commit --quiet -m a", ""),
    ],
)
def test_what_was_committed_in_any_way_is_changed_no_more(commit, output):
    assert of(*EDIT, *ran(commit, output)).uncommitted == ()
    assert of(*EDIT, *ran("git commit -qm a", "nothing to commit")).uncommitted != ()


@pytest.mark.parametrize(
    ("command", "output", "named"),
    [
        ("git status", "On branch lamp-2\nnothing to commit", "lamp-2"),
        ("git checkout -b lamp-3", "Switched to a new branch 'lamp-3'", "lamp-3"),
        ("git branch", "  dock\n* lamp-4", "lamp-4"),
        ("git branch --show-current", "lamp-5\n", "lamp-5"),
        ("git commit -m x", "[lamp-6 1a2b3c4] x", "lamp-6"),
        ("git branch", "* (HEAD detached at 1a2b3c4)", ""),
        ("git log", "On branch lamp-7", ""),
        ("git -C /tmp/scratch status && cd /tmp/scratch && git status", "", ""),
    ],
)
def test_the_branch_at_work_is_the_one_that_git_named_last(command, output, named):
    assert of(*ran(command, output)).branch == named
    assert of(*ran("git status", "On branch old"), *ran(command, output)).branch == (named or "old")


def test_what_lies_in_another_project_is_elsewhere():
    base = "/home/ada/work/lamp/src/"
    assert not elsewhere("/home/ada/work/lamp/docs/a.md", base)
    assert not elsewhere("docs/a.md", base)
    assert not elsewhere("/home/ada/work/lamp", base)
    assert elsewhere("/home/ada/work/lamp-old/a.py", base)
    assert elsewhere("/tmp/a.py", base)
    assert not elsewhere("/tmp/a.py", "")


def test_a_commit_on_no_branch_is_read_back():
    made = of(*ran("git commit -m a", "[detached HEAD 1a2b3c4] First\n"))
    assert made.commits[0].branch == "detached HEAD"
    assert state.read(state.lines(made, 500, len)).commits == (
        CommitFact("1a2b3c4", "detached HEAD", "First"),
    )


def test_the_plan_is_the_one_last_written():
    first = used(
        "TodoWrite",
        {"todos": [{"content": "Read", "status": "pending"}, {"content": "Write", "status": "pending"}]},
    )
    second = used(
        "TodoWrite",
        {
            "todos": [
                {"content": "Read", "status": "completed"},
                {"content": "Write", "status": "in_progress"},
            ]
        },
    )
    steps = (("Read", "completed"), ("Write", "in_progress"))
    assert tuple((step.text, step.state) for step in of(*first, *second).plan) == steps
    assert tuple((step.text, step.state) for step in merge(of(*first), of(*second)).plan) == steps
    assert of(*first, *second).items == ()  # it is listed once, in the state


def test_a_list_of_other_things_with_states_is_no_plan():
    orders = [{"name": "A-1", "status": "shipped"}]
    for name, arguments in [
        ("update_orders", {"orders": orders}),
        ("explain_plane", {"items": orders}),
        ("schedule_task", {"when": "noon", "where": "Ulm", "orders": orders}),
        ("TaskOutput", {"task_id": "b1", "block": True}),
        ("schedule_task", {"id": "7", "at": "noon"}),
    ]:
        found = of(*used(name, arguments, "it is done"))
        assert found.plan == ()
        assert [item.text.rpartition(" -> ")[2] for item in found.items] == ["it is done"]


def test_a_plan_is_told_by_the_tool_or_by_the_key():
    step = [{"step": "Read", "status": "pending"}]
    for name, arguments in [
        ("update_plan", {"explanation": "why", "plan": step}),
        ("manage_todo_list", {"todoList": step}),
        ("setTasks", {"entries": step}),
        ("anything", {"steps": step}),
    ]:
        assert [(fact.text, fact.state) for fact in of(*used(name, arguments)).plan] == [("Read", "pending")]


def test_an_empty_list_empties_the_plan():
    first = used("TodoWrite", {"todos": [{"content": "Read", "status": "pending"}]})
    empty = used("TodoWrite", {"todos": []})
    for found in (of(*first, *empty), merge(of(*first), of(*empty))):
        assert [is_done(step) for step in found.plan] == [True]
        assert found.items == ()


def test_numbered_tasks_are_brought_up_to_date():
    made = used("TaskCreate", {"subject": "Read the code"}, "Task #3 created")
    done = used("TaskUpdate", {"taskId": "3", "status": "completed"})
    assert merge(of(*made), of(*done)).plan == (
        PlanStep("#3 Read the code", "completed", of(*done).plan[0].entry, task=True),
    )
    before = Ledger(plan=(PlanStep("#3 Read the code", "pending"),))  # of a page, or of an older version
    assert [(step.text, step.state) for step in merge(before, of(*done)).plan] == [
        ("#3 Read the code", "completed")
    ]


def todo(*steps: str, output: str = "ok") -> list[Message]:
    return used("TodoWrite", {"todos": [{"content": step, "status": "pending"} for step in steps]}, output)


def test_a_step_that_begins_like_a_task_leaves_with_its_list():
    first, second = todo("#12 Fix the login", "Write docs"), todo("Plan the release")
    for found in (of(*first, *second), merge(of(*first), of(*second))):
        assert [step.text for step in found.plan] == ["Plan the release"]


@pytest.mark.parametrize(
    "output", ["The user doesn't want to proceed with this tool use.", "Error: bad list"]
)
def test_a_plan_that_was_refused_or_failed_is_none(output):
    first, refused = todo("A real step"), todo("Drop the database", output=output)
    for found in (of(*first, *refused), merge(of(*first), of(*refused))):
        assert [step.text for step in found.plan] == ["A real step"]


def test_thousands_of_tasks_come_to_an_end():
    steps = [PlanStep(f"#{at} Do it", task=True) for at in range(50_000)]
    assert len(KINDS["plan"].merge((), steps, Ledger())) == 50_000


def test_tools_are_counted_with_three_notable_uses():
    runs = ["make test", "ls", "git commit -m x", "make lint"]
    done = [message for command in runs for message in ran(command, "ok")]
    seen = [*used("Search", {"query": "where is it", "limit": 3}), *used("Ping", {})]
    failed = ran("make broken", "Exit code 1")
    ledger = of(*done, *failed, *seen)
    assert [(fact.name, fact.uses, fact.notable) for fact in ledger.tools] == [
        ("bash", 5, ("make test", "git commit -m x", "make lint")),
        ("Search", 1, ("where is it",)),
        ("Ping", 1, ()),
    ]
    later = merge(of(*done), of(*failed, *seen))
    assert [(fact.name, fact.uses) for fact in later.tools] == [("bash", 5), ("Search", 1), ("Ping", 1)]


def test_what_is_kept_brings_the_folded_up_to_date_and_tells_nothing_twice():
    said = entries(
        user("Never push."),
        *ran("make test", "2 failed"),
        user("You may push now."),
        *ran("make test", "9 passed"),
    )
    found = current(collect(said[:3]), said[3:])
    assert [item.text for item in found.items] == ["Never push.", "$ make test -> 2 failed"]
    assert found.constraints == collect(said).constraints
    assert found.goes_on is False
    assert current(collect(said[:1]), said[1:]).goes_on is True


def test_every_row_of_the_table_is_a_field_of_the_ledger_and_is_bounded():
    assert set(KINDS) <= set(Ledger.__struct_fields__)
    many = Ledger(checks=tuple(CheckFact(f"make {n}", "1 passed") for n in range(500)))
    assert 0 < len(bounded(many).checks) < 500


# ---- how a run ended: its exit code, what passed and failed, and its first error


@pytest.mark.parametrize(
    ("output", "passed", "text"),
    [
        ("...\n3 failed, 9 passed in 2.1s", False, "3 failed, 9 passed in 2.1s"),
        ("9 passed in 2.1s", True, "9 passed in 2.1s"),
        ("Tests:       1 failed, 9 passed, 10 total\nTime: 2 s", False, "Tests:       1 failed, 9 passed, 10 total"),
        ("test result: ok. 9 passed; 0 failed; 0 ignored", True, "test result: ok. 9 passed; 0 failed; 0 ignored"),
        ("Found 3 errors in 2 files", False, "Found 3 errors in 2 files"),
        ("Exit code: 2\nmake: *** [all] Error 2", False, "exit 2; make: *** [all] Error 2"),
        ("FAILED tests/a.py::test_x - KeyError: 'a'\n1 failed, 8 passed", False, "1 failed, 8 passed; FAILED tests/a.py::test_x - KeyError: 'a'"),
        ("ok  \tpkg/a\t0.1s", True, "ok  \tpkg/a\t0.1s"),
        ("built in 3 s", None, "built in 3 s"),
        ("one\ntwo\nthree", None, "three"),
        ("", None, ""),
    ],
)  # fmt: skip
def test_an_outcome_counts_what_failed_too(output, passed, text):
    found = outcome(output, is_error=False)
    assert (found.passed, found.text) == (passed, text)


def test_a_flag_says_that_a_run_failed():
    assert outcome("no such table: users", is_error=True).passed is False


def test_a_call_that_failed_without_a_word_says_so():
    def failed(name: str, **arguments: str) -> list[str]:
        answer = Message("tool", (ToolResult("c1", is_error=True),))
        return [item.text for item in of(assistant("", ToolCall("c1", name, arguments)), answer).items]

    assert failed("bash", command="make deploy") == ["$ make deploy -> failed"]
    assert failed("drop", table="users") == ["drop(table=users) (failed)"]


def test_a_run_that_was_refused_is_no_check():
    refused = ran("git push", "The user doesn't want to proceed with this tool use. The user said: Not yet.")
    assert of(*refused, *refused).checks == ()


def test_colours_and_envelopes_are_left_out():
    found = outcome("Exit code: 0\nWall time: 2 s\nOutput:\n\x1b[32m9 passed\x1b[0m", is_error=False)
    assert (found.passed, found.text) == (True, "9 passed")
