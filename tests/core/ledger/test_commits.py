"""What is committed, pushed, and changed since."""

from __future__ import annotations

import pytest
from tests.core.ledger.session_samples import rough_count

from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts.kinds import CommitFact, Ledger
from foldline.core.ledger.merge import merge
from foldline.core.ledger.page.page import compose, parse
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def did(*steps: tuple[str, dict[str, str], str]) -> list[Said]:
    found: list[Said] = []
    for number, (tool, arguments, answer) in enumerate(steps):
        call = ToolCall(f"c{number}", tool, arguments)
        found.append(Said(f"a{number}", None, Message("assistant", (call,)), ""))
        found.append(
            Said(f"r{number}", None, Message("tool", (ToolResult(f"c{number}", (Text(answer),)),)), "")
        )
    return found


COMMIT = (
    "bash",
    {"command": 'git add -A && git commit -m "Mend the export"'},
    "[main 1f2e3d4] Mend the export\n 1 file changed",
)
PUSH = ("bash", {"command": "git push origin main"}, "To github.com:x/y\n   aaa..1f2e3d4  main -> main")
EDIT = ("edit", {"path": "src/export.py", "old": "a", "new": "b"}, "ok")


def test_the_newest_commit_is_known_with_its_branch() -> None:
    first = ("bash", {"command": "git commit -m one"}, "[main (root-commit) aaaaaaa] one")
    (fact,) = collect(did(first, EDIT, COMMIT)).commits
    assert (fact.key, fact.branch, fact.subject) == ("1f2e3d4", "main", "Mend the export")
    assert (fact.pushed, fact.later) == (False, ())


@pytest.mark.parametrize(
    ("steps", "pushed", "later"),
    [
        ((COMMIT, PUSH), True, ()),
        ((COMMIT, EDIT), False, ("src/export.py",)),
        ((COMMIT, PUSH, EDIT), True, ("src/export.py",)),
    ],
)
def test_what_came_after_it(
    steps: tuple[tuple[str, dict[str, str], str], ...], pushed: bool, later: tuple[str, ...]
) -> None:
    (fact,) = collect(did(*steps)).commits
    assert (fact.pushed, fact.later) == (pushed, later)


def test_a_commit_that_failed_is_none() -> None:
    refused = (
        "bash",
        {"command": "git commit -m one"},
        "nothing to commit, working tree clean\nexit code: 1",
    )
    assert collect(did(refused)).commits == ()


def test_the_page_says_it_and_it_is_read_back() -> None:
    fact = CommitFact("1f2e3d4", "main", "Mend the export", True, ("src/export.py", "src/rows.py"))
    text = compose(Ledger(commits=(fact,)), 500, rough_count).text
    assert "- Committed: `1f2e3d4` on main (pushed): Mend the export" in text
    assert "- Not committed: `src/: export.py, rows.py`" in text
    assert parse(text).commits == (fact,)


def test_files_changed_in_a_later_range_are_not_committed() -> None:
    (fact,) = merge(
        collect(did(COMMIT)), collect([Said(f"x{one.id}", None, one.message, "") for one in did(EDIT)])
    ).commits
    assert fact.later == ("src/export.py",)
