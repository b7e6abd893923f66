import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.core.checkpoint.talk import assistant, call, result, user

from foldline.core.checkpoint.files import file_lists, without_file_lists
from foldline.core.checkpoint.ground import ground
from foldline.core.checkpoint.sections import put_under
from foldline.core.ledger.facts.kinds import (
    CommandFact,
    ConstraintFact,
    ErrorFact,
    FileFact,
    Ledger,
    OpenFact,
    RequestFact,
    ValueFact,
)

LEDGER = Ledger(
    requests=(
        RequestFact("Move the server to a new port", "e1"),
        RequestFact("Now write the changelog", "e5"),
    ),
    constraints=(ConstraintFact("Never push to main.", "e1"), ConstraintFact("Keep it\nin one file.", "e2")),
    files=(
        FileFact("src/server.py", "modified"),
        FileFact("src/old.py", "deleted"),
        FileFact("README.md", "read"),
        FileFact("docs/port.md", "created"),
    ),
    commands=(
        CommandFact("pytest -q", passed=True, outcome="9 passed"),
        CommandFact("pytest -q tests/net", passed=False, outcome="1 failed, 8 passed"),
        CommandFact("ruff check .", passed=True),
    ),
    errors=(
        ErrorFact("OSError: address already in use", "pytest -q tests/net"),
        ErrorFact("NameError: name 'prot' is not defined", fixed=True),
    ),
    values=(
        ValueFact("8080", "number", "the port of the server", "port"),
        ValueFact("9090", "number", "the new port of the server", "port"),
        ValueFact("200", "number", "", "limit"),
    ),
    open=(OpenFact("Write the changelog entry", "todo", "pending"), OpenFact("bash(sleep 60)", "call")),
)
SAID = (user("Move src/server.py to 9090, see issue #4121"), assistant("On it, in commit 3f5d763aab0912."))

SUMMARY = """\
## Goal
Move the server.

## Constraints & Preferences
- (none)

## Progress
### Done
- [x] src/server.py listens on port 8080
- [x] all tests pass
### In Progress
(none)
### Blocked
- (none)

## Key Decisions
- **New port**: see `lib/ports.py:12` and commit 3f5d763, build 7654321

## Next Steps
1. Release

## Critical Context
- issue #4121
"""


def test_a_summary_is_mended_from_the_ledger_and_marked_where_nothing_bears_it_out():
    done = ground(SUMMARY, LEDGER, SAID)

    assert done.text == snapshot("""\
## Goal
Move the server.
Newest request: Now write the changelog

## Constraints & Preferences
<user-rules>
- Never push to main.
- Keep it
  in one file.
</user-rules>

## Progress
### Done
- [x] src/server.py listens on port 8080 (superseded: now 9090)
- [x] all tests pass (unverified: the last run of `pytest -q tests/net` failed: 1 failed, 8 passed)
### In Progress
(none)
### Blocked
- Open error: OSError: address already in use (from `pytest -q tests/net`)

## Key Decisions
- **New port**: see `lib/ports.py:12` (unverified) and commit 3f5d763, build 7654321 (unverified)

## Next Steps
1. Release
- Write the changelog entry
- A call was never answered: bash(sleep 60)

## Critical Context
- issue #4121
- port = `9090` (the new port of the server)

<read-files>
README.md
</read-files>

<modified-files>
src/server.py
src/old.py (deleted)
docs/port.md (created)
</modified-files>\
""")
    assert done.repaired == snapshot(
        (
            "Never push to main.",
            """\
Keep it
in one file.\
""",
            "Now write the changelog",
            "OSError: address already in use",
            "Write the changelog entry",
            "bash(sleep 60)",
            "9090",
            "src/old.py",
            "docs/port.md",
        )
    )
    assert done.unverified == snapshot(("lib/ports.py", "7654321"))


def test_a_summary_that_holds_everything_is_left_as_it_is():
    text = """\
## Goal
- Newest request: Now write the changelog

## Constraints & Preferences
<user-rules>
- Never push to main.
- Keep it
  in one file.
</user-rules>

## Progress
### Blocked
- `pytest -q tests/net` ends with OSError: address already in use

## Next Steps
1. Write the changelog entry for the release
2. the call bash(sleep 60) has no answer

## Critical Context
- the server's port: 9090

<read-files>
README.md
</read-files>

<modified-files>
src/server.py
src/old.py (deleted)
docs/port.md (created)
</modified-files>"""

    done = ground(text, LEDGER, SAID)

    assert done.text == text
    assert done.repaired == done.unverified == ()


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("port 8080", "port 8080 (superseded: now 9090)"),
        ("PORT=8080 there", "PORT=8080 (superseded: now 9090) there"),
        ("the port is `8080`.", "the port is `8080` (superseded: now 9090)."),
        ("port went from 8080 to 9090", "port went from 8080 to 9090"),
        ("port: 9090", "port: 9090"),
        ("report 8080 done", "report 8080 done"),
        ("limit: 100", "limit: 100"),
        ("port 8080, not 90900", "port 8080 (superseded: now 9090), not 90900"),
        ("port /dev/tty0", "port /dev/tty0"),
        ("url https://a.test/v1", "url https://a.test/v1 (superseded: now https://b.test/v2)"),
        ("url v1/a", "url v1/a"),
    ],
)
def test_a_value_that_was_replaced_does_not_come_back_as_current(line, marked):
    ledger = Ledger(values=(*LEDGER.values, ValueFact("https://b.test/v2", "url", "", "url")))
    said = ["8080 90900 /dev/tty0 https://a.test/v1 v1/a"]

    assert marked in ground(f"## Critical Context\n{line}", ledger, said).text.split("\n")


@pytest.mark.parametrize(
    "line",
    [
        "all tests pass",
        "The test suite is green.",
        "- [x] Tests passed (9)",
        "checks pass now",
        "All 9 unit tests are passing",
    ],
)
def test_a_claim_that_the_last_run_contradicts_says_so(line):
    text = ground(f"## Progress\n{line}", LEDGER, SAID).text

    assert f"{line} (unverified: the last run of `pytest -q tests/net` failed: 1 failed, 8 passed)" in text


@pytest.mark.parametrize(
    "line",
    [
        "make all tests pass",
        "tests do not pass",
        "- [ ] tests pass",
        "until the tests pass",
        "pass the token",
    ],
)
def test_what_claims_nothing_is_not_marked(line):
    assert line in ground(f"## Progress\n{line}", LEDGER, SAID).text.split("\n")


def test_a_claim_is_let_stand_where_the_last_run_passed():
    ledger = Ledger(commands=(CommandFact("make test", passed=False), CommandFact("npm test", passed=True)))

    assert ground("all tests pass", ledger, ()).text == "all tests pass"


KNOWN = (
    assistant(
        "", call("a", "bash", command="cd /srv/app && ls lib/core", port=54321, deep={"x": ["C:\\w\\a.py"]})
    ),
    result("a", "engine.py\nsize 1,234,567 at https://x.test/a?b=1"),
    assistant("", call("b", "bash", "raw src/raw.ts")),
)


@pytest.mark.parametrize(
    "name",
    [
        "lib/core/engine.py",
        "/home/me/lib/core/engine.py",
        "54321",
        "1234567",
        "C:/w/a.py",
        "https://x.test/a?b=1",
        "src/raw.ts",
        "prev/file.go",
        "/deep/prev/file.go",
        "read/write",
        "src/**/x.py",
        "1234",
    ],
)
def test_a_name_that_stands_in_some_spelling_is_not_marked(name):
    assert ground(f"see {name}", Ledger(), KNOWN, "before: prev/file.go").unverified == ()


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("see lib/core/motor.py.", "see lib/core/motor.py (unverified)."),
        ("`lib/motor.py:7` and lib/motor.py", "`lib/motor.py:7` (unverified) and lib/motor.py (unverified)"),
        ("id 99887766554 here", "id 99887766554 (unverified) here"),
        ("[it](https://y.test/a)", "[it](https://y.test/a) (unverified)"),
        ("commit 0badf00d1", "commit 0badf00d1 (unverified)"),
        ("already ./gone.sh (unverified)", "already ./gone.sh (unverified)"),
    ],
)
def test_a_name_that_stands_nowhere_is_marked_and_kept(line, marked):
    assert ground(line, Ledger(), KNOWN).text == marked


def test_arguments_that_nest_too_deeply_bear_nothing_out():
    deep = []
    for _ in range(5_000):
        deep = [deep]

    assert ground("see a/b/c.py", Ledger(), [assistant("", call("a", "x", v=deep))]).unverified == (
        "a/b/c.py",
    )


def test_secrets_in_a_ledger_are_not_put_back():
    key = "gh" + "p_" + "a1B2c3D4e5" * 4
    ledger = Ledger(constraints=(ConstraintFact(f"Always use {key} here", "e1"),))

    assert "- Always use [redacted: GitHub token] here" in ground("## Goal\nx", ledger, ()).text


def test_a_missing_section_is_added_at_the_end_and_a_none_goes():
    assert put_under("## A\n(none)\n\n## B\nx", ["- y"], ["A"]) == "## A\n- y\n\n## B\nx"
    assert put_under("## A\nx", ["- y"], ["C", "A"]) == "## A\nx\n- y"
    assert put_under("text", ["- y"], ["C"]) == "text\n\n## C\n- y"
    assert put_under("", ["- y"], ["C"]) == "## C\n- y"
    assert put_under("### **A**:\n\n\n### B", ["- y"], ["A"]) == "### **A**:\n- y\n\n### B"
    assert put_under("x", [], ["A"]) == "x"


def test_long_file_lists_keep_the_newest_and_say_how_many_are_left_out():
    files = [FileFact(f"f{n}.py", "read") for n in range(50)]
    text = file_lists(files)

    assert text.startswith("<read-files>\n(10 more, older)\nf10.py\n")
    assert without_file_lists(f"body\n\n{text}") == "body"
    assert file_lists([]) == ""


def test_a_list_that_only_the_prose_names_is_left_alone():
    prose = "the `<read-files>` block\n\n<modified-files>\nnever closed\n\n## Goal\nx"

    assert without_file_lists(prose) == prose


WORDS = st.sampled_from(
    [
        *re.findall(r"\S+|\n", SUMMARY),
        "port",
        "8080",
        "9090",
        "`",
        "(none)",
        "- ",
        "\n",
        "## Goal\n",
        "Never push",
        "x/y/z.py",
        "tests pass",
        "(unverified)",
        "<read-files>\n",
        "</read-files>\n",
        "Keep it\n",
        "in one file.",
        "123456789",
        ":12",
    ]
)
TEXTS = st.text(alphabet="ab/. \n-#8090portNever`:", max_size=24)
LEDGERS = st.builds(
    Ledger,
    requests=st.lists(st.builds(RequestFact, TEXTS, st.just("e")), max_size=2).map(tuple),
    constraints=st.lists(st.builds(ConstraintFact, TEXTS.filter(str.strip), st.just("e")), max_size=3).map(
        tuple
    ),
    commands=st.sampled_from([(), LEDGER.commands]),
    errors=st.lists(st.builds(ErrorFact, TEXTS.filter(str.strip)), max_size=2).map(tuple),
    values=st.sampled_from([(), LEDGER.values]),
    open=st.lists(st.builds(OpenFact, TEXTS.filter(str.strip), st.just("todo")), max_size=2).map(tuple),
    files=st.sampled_from([(), LEDGER.files]),
)


@settings(max_examples=300)
@given(st.lists(WORDS, max_size=30).map(" ".join), LEDGERS)
def test_grounding_twice_changes_nothing_and_constraints_always_stand(text, ledger):
    once = ground(text, ledger, SAID)
    twice = ground(once.text, ledger, SAID)

    assert twice.text == once.text
    whole = " ".join(once.text.split())
    assert all(" ".join(fact.text.split()) in whole for fact in ledger.constraints)


@pytest.mark.parametrize(
    "stray", ["<read-files>\n", "</read-files>\n", "<read-files>\n<modified-files>\na.py\n"]
)
def test_a_list_that_was_never_closed_swallows_none_that_is(stray):
    ledger = Ledger(files=(FileFact("src/server.py", "modified"), FileFact("README.md", "read")))
    once = ground(stray, ledger, SAID)
    assert ground(once.text, ledger, SAID).text == once.text
