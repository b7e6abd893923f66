"""What an earlier fold told is brought up to date by what is folded later, and by what is kept."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st
from tests.core.ledger.test_facts import EDIT, RUNS, checks, of, ran, used
from tests.support.talk import entries, user

from foldline.core.checkpoint.page import compose, parse
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.table import bounded, collect, current, extended
from foldline.core.log.messages import Message

NO_CHANGES = [ran("make lint > lint.log", ""), ran("touch done", "")]


@given(st.lists(st.sampled_from([*RUNS, EDIT, *NO_CHANGES]), max_size=8), st.data())
def test_checks_of_folds_and_of_what_is_kept_are_those_of_all_together(steps, data):
    said, places = entries(*chain.from_iterable(steps)), st.integers(0, len(steps))
    first, second, kept = sorted(2 * data.draw(places) for _ in range(3))
    known = current(bounded(extended(Ledger(), said[:first])), said[first:second])
    known = current(bounded(extended(bounded(known), said[first:kept])), said[kept:])
    assert {*checks(known)} == {*checks(collect(said))}


COMMITS = [
    ran("git commit -m a", "[main 1a2b3c4] First\n"),
    ran("git commit -m b", "[main 2b3c4d5] Second\n"),
    ran("git commit --amend -m c", "[main 3c4d5e6] Better\n"),
    ran("git commit --amend -m d", "[main 4d5e6f7] Better still\n"),
    ran("git commit -qm e", ""),
    ran("git reset --soft HEAD~1", ""),
    ran("git reset HEAD^", ""),
    ran("git push", "To example.org:a"),
    ran("git push origin main", "To example.org:a"),
    EDIT,
]


@given(st.lists(st.sampled_from(COMMITS), max_size=7, unique_by=id), st.data())
def test_commits_and_changed_files_of_ranges_are_those_of_all_together(steps, data):
    """Whatever is folded first, and kept beside it: no commit that was taken back, no push unseen."""
    said, places = entries(*chain.from_iterable(steps)), st.integers(0, len(steps))
    first, second, kept = sorted(2 * data.draw(places) for _ in range(3))
    known = current(bounded(extended(Ledger(), said[:first])), said[first:second])
    known = current(bounded(extended(bounded(known), said[first:kept])), said[kept:])
    whole = collect(said)
    assert [(fact.key, fact.pushed) for fact in known.commits] == [
        (fact.key, fact.pushed) for fact in whole.commits
    ]
    assert [fact.path for fact in known.uncommitted] == [fact.path for fact in whole.uncommitted]


def test_a_commit_that_a_page_tells_and_what_is_kept_shows_is_one():
    said = entries(user("Go."), *ran("git commit -m a", "[main 1a2b3c4] First\n"))
    page = compose(current(collect(said[:1]), said[1:]), 2_000, len).text
    again = current(extended(parse(page), ()), said[1:])
    assert [(fact.key, fact.pushed) for fact in again.commits] == [("1a2b3c4", False)]


def test_paths_of_later_folds_are_told_from_the_same_folder():
    def reads(folder: str, name: str) -> list[Message]:
        return [one for at in range(4) for one in used("Read", {"path": f"/home/me/{folder}/{name}{at}.py"})]

    first = extended(Ledger(), entries(*reads("lamp", "a"), *reads("lamp/web", "b")))
    plan = used("Write", {"path": "/home/me/.notes/plan.md", "content": "1. Go."})
    for later in (plan, reads("lamp/web/src", "c"), ran("cd /home/me/lamp && make test", "9 passed")):
        assert extended(first, entries(*later)).base == "/home/me/lamp/"
    moved = entries(*(one for name in "abcdefgh" for one in reads("pier", name)))
    assert extended(first, moved).base == "/home/me/pier/"


def test_an_update_that_says_no_state_leaves_that_of_an_earlier_fold():
    first = of(*used("TaskUpdate", {"taskId": "3", "subject": "Read", "status": "completed"}))
    later = extended(first, entries(*used("TaskUpdate", {"taskId": "3", "addBlocks": ["4"]})))
    assert [(step.text, step.state) for step in later.plan] == [("#3 Read", "completed")]
