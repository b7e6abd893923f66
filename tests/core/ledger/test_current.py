from foldline.core.ledger.current import current, within
from foldline.core.ledger.facts.kinds import (
    CommandFact,
    ConstraintFact,
    DecisionFact,
    ErrorFact,
    Excerpt,
    FileFact,
    Ledger,
    RequestFact,
    ValueFact,
)
from foldline.core.ledger.merge import cited, merge

KEPT = frozenset({"k1", "k2"})


def words(text: str) -> int:
    return len(text.split())


def test_facts_that_stand_in_kept_entries_alone_are_left_to_the_view():
    folded = Ledger(
        requests=(RequestFact("Fix it", "f"),),
        files=(FileFact("a.py", "read", entries=("f",)),),
        turns=3,
        messages=9,
    )
    tail = Ledger(
        requests=(RequestFact("And test it", "k1"),),
        files=(FileFact("b.py", "read", entries=("k1", "k2")),),
        commands=(CommandFact("pytest", True, entries=("k2",)),),
        errors=(ErrorFact("boom", entries=("k2",)),),
        decisions=(DecisionFact("Use SQLite", "k1"),),
        values=(ValueFact("8080", "number", entries=("k1",)),),
        excerpts=(Excerpt("a sentence", entry="k1"),),
        turns=1,
        messages=2,
    )
    found = current(folded, tail, kept=KEPT)
    assert [fact.text for fact in found.requests] == ["Fix it"]
    assert [fact.path for fact in found.files] == ["a.py"]
    assert (found.commands, found.errors, found.decisions, found.values, found.excerpts) == ((),) * 5
    assert (found.turns, found.messages) == (3, 9)


def test_a_fact_that_stands_in_folded_entries_too_stays_and_takes_its_newest_state():
    folded = Ledger(files=(FileFact("a.py", "read", entries=("f",)),), messages=1)
    tail = Ledger(files=(FileFact("a.py", "deleted", entries=("k1",)),), messages=1)
    (file,) = current(folded, tail, kept=KEPT).files
    assert file.status == "deleted"
    assert "f" in file.entries


def test_a_fact_that_cites_nothing_stays():
    folded = Ledger(files=(FileFact("old.py", "modified"),), messages=1)
    assert [fact.path for fact in current(folded, Ledger(), kept=KEPT).files] == ["old.py"]


def test_what_was_folded_of_each_kind_stays():
    folded = Ledger(
        commands=(CommandFact("make", False, entries=("f",)),),
        errors=(ErrorFact("boom", entries=("f", "k1")),),
        decisions=(DecisionFact("Use SQLite", "f"),),
        values=(ValueFact("8080", "number", entries=("f",)),),
        excerpts=(Excerpt("a sentence", entry="f"),),
        messages=1,
    )
    found = current(folded, Ledger(), kept=KEPT)
    assert (found.commands, found.errors, found.decisions, found.values, found.excerpts) == (
        folded.commands,
        folded.errors,
        folded.decisions,
        folded.values,
        folded.excerpts,
    )


def test_a_constraint_of_the_tail_supersedes_and_stays_though_the_view_has_it():
    old = ConstraintFact("Always use port 80.", "f", subject="port")
    new = ConstraintFact("Always use port 90.", "k1", subject="port")
    found = current(Ledger(constraints=(old,), messages=1), Ledger(constraints=(new,), messages=1), kept=KEPT)
    assert new in found.constraints


# ---- the share of the constraints


def rules(*texts: str, pinned: str = "") -> Ledger:
    return Ledger(constraints=tuple(ConstraintFact(text, text, pinned=text == pinned) for text in texts))


def kept_of(ledger: Ledger, tokens: int) -> tuple[list[str], tuple[str, ...]]:
    inside, excess = within(ledger, tokens, words)
    return [fact.text for fact in inside.constraints], excess


def test_as_many_constraints_stay_as_fit_newest_first_and_the_others_are_named():
    ledger = rules("never one", "never two", "never three")
    assert kept_of(ledger, 18) == (["never one", "never two", "never three"], ())
    assert kept_of(ledger, 17) == (["never two", "never three"], ("never one",))
    assert kept_of(ledger, 12) == (["never two", "never three"], ("never one",))
    assert kept_of(ledger, 6) == (["never three"], ("never one", "never two"))
    assert kept_of(ledger, 0) == ([], ("never one", "never two", "never three"))


def test_a_smaller_older_one_may_fit_where_a_larger_newer_one_does_not():
    ledger = rules("never", "never " * 20 + "x", "never ever")
    assert kept_of(ledger, 12)[0] == ["never", "never ever"]


def test_pinned_ones_stay_whatever_they_take_and_take_it_from_the_others():
    ledger = rules("never one", "never two", pinned="never two")
    assert kept_of(ledger, 0) == (["never two"], ("never one",))
    assert kept_of(ledger, 11) == (["never two"], ("never one",))
    assert kept_of(ledger, 12) == (["never one", "never two"], ())


def test_nothing_else_of_the_ledger_changes():
    ledger = Ledger(requests=(RequestFact("Fix it", "f"),), turns=2)
    assert within(ledger, 0, words) == (ledger, ())


def test_what_a_ledger_cites_are_the_entries_of_facts_of_every_kind():
    ledger = Ledger(
        requests=(RequestFact("Fix it", "a"),),
        files=(FileFact("a.py", "read", entries=("b", "c")),),
        excerpts=(Excerpt("a sentence", entry="d"),),
        turns=1,
        messages=4,
    )
    assert cited(ledger) == {"a", "b", "c", "d"}


def test_a_check_that_ran_behind_the_last_change_is_told_where_it_alone_is_kept():
    """Else the page would say that nothing was checked since."""
    folded = Ledger(commands=(CommandFact("pytest tests/a.py", True, entries=("f",)),))
    change = FileFact("a.py", "modified", entries=("k1",))
    tail = Ledger(files=(change,), commands=(CommandFact("pytest tests/b.py", True, entries=("k2",)),))
    found = current(folded, tail, kept=KEPT).commands
    assert [(fact.command, fact.outdated) for fact in found] == [
        ("pytest tests/a.py", True),
        ("pytest tests/b.py", False),
    ]
    unchecked = current(folded, Ledger(files=(change,)), kept=KEPT).commands
    assert [fact.outdated for fact in unchecked] == [True]


def test_a_kept_check_that_was_told_stays_fresh_in_the_next_fold():
    folded = Ledger(commands=(CommandFact("pytest tests/a.py", True, entries=("f",)),))
    change = FileFact("a.py", "modified", entries=("k1",))
    check = CommandFact("pytest tests/b.py", True, entries=("k2",))
    tail = Ledger(files=(change,), commands=(check,))
    first = current(folded, tail, kept=KEPT)
    again = merge(first, tail)  # what was kept is folded now
    assert [(fact.command, fact.outdated) for fact in again.commands] == [
        ("pytest tests/a.py", True),
        ("pytest tests/b.py", False),
    ]
