"""The checkpoint that is written without a model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.ledger.session_samples import SESSION, rough_count, sessions

from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts.kinds import (
    CommandFact,
    ConstraintFact,
    ErrorFact,
    Excerpt,
    FileFact,
    Ledger,
    RequestFact,
)
from foldline.core.ledger.page.page import compose, parse
from foldline.core.ledger.page.sheet import HEADINGS
from foldline.core.measure.tokens import OFFLINE


def test_headings_stand_in_order_and_sections_say_what_happened() -> None:
    text = compose(collect(SESSION), 900, rough_count).text
    places = [f"\n{text}".find(f"\n{heading}\n") for heading in HEADINGS]
    there = [place for place in places if place >= 0]
    assert there == sorted(there)
    assert [heading for heading, place in zip(HEADINGS, places, strict=True) if place < 0] == [
        "### Done",
        "### In Progress",
    ]
    assert "- Never change the public signature of `parse_rows`." in text
    assert "`pytest tests/test_importer.py --strict-markers` failed" in text
    assert "<modified-files>\nsrc/ledger/importer.py\n</modified-files>" in text
    assert "NameError: name 'DEFAULT_CURRENCY' is not defined" in text
    assert "Said to come next: Next I'll import DEFAULT_CURRENCY" in text


def test_constraints_come_first_in_line_for_the_budget() -> None:
    rules = tuple(
        ConstraintFact(f"Never touch table number {n}.\nNot even to read it.", f"e{n}") for n in range(6)
    )
    ledger = Ledger(requests=(RequestFact("Do it. " * 400, "e0"),), constraints=rules)
    text = compose(ledger, 200, rough_count).text
    for rule in rules:
        assert rule.text.replace("\n", "\n  ") in text


def test_a_focus_raises_what_it_names() -> None:
    pool = tuple(
        Excerpt(f"the {word} step calls `name_{n}_of_it`", kind="said", names={f"name_{n}_of_it": 0.2})
        for n, word in enumerate(("import", "export", "billing", "search"))
    )
    ledger = Ledger(excerpts=pool)
    assert "billing" not in compose(ledger, 30, rough_count).text
    assert "billing" in compose(ledger, 30, rough_count, instructions="Keep all about billing").text


@pytest.mark.parametrize("budget", [0, 10, 50, 120, 200, 400, 1_000, 5_000, 100_000])
def test_no_budget_is_exceeded(budget: int) -> None:
    assert rough_count(compose(collect(SESSION), budget, rough_count).text) <= budget


@settings(max_examples=60, deadline=None)
@given(sessions(), st.integers(0, 3_000))
def test_no_budget_is_exceeded_whatever_was_said(session, budget: int) -> None:
    done = compose(collect(session), budget, rough_count)
    assert rough_count(done.text) <= budget
    assert len(done.ledger.excerpts) <= len(collect(session).excerpts)


def test_a_larger_budget_says_more() -> None:
    ledger = collect(SESSION)
    sizes = [len(compose(ledger, budget, rough_count).text) for budget in (150, 300, 600, 1_200)]
    assert sizes == sorted(sizes)


def test_where_not_all_constraints_fit_as_many_as_do_are_whole() -> None:
    rules = tuple(
        ConstraintFact(f"Never touch table number {n}, whatever happens to it.", f"e{n}") for n in range(20)
    )
    text = compose(Ledger(constraints=rules), 120, rough_count).text
    written = [line for line in text.split("\n") if line.startswith("- Never")]
    assert 0 < len(written) < 20
    assert all(line.endswith("happens to it.") for line in written)


@pytest.mark.parametrize("budget", [300, 800, 3_000, 12_000])
def test_the_first_request_stands_beside_the_newest_however_long_both_are(budget: int) -> None:
    first, newest = (
        "Build the importer for bank files. " * 300,
        "Now look at /v1/limits, 429s and x=1. " * 300,
    )
    ledger = Ledger(requests=(RequestFact(first, "e0"), RequestFact(newest, "e1")))
    for _ in range(10):
        text = compose(ledger, budget, OFFLINE.count).text
        assert "First request: Build the importer" in text
        assert "Newest request: Now look at" in text
        ledger = parse(text)


def test_what_failed_is_blocked_unless_it_was_repaired() -> None:
    ledger = Ledger(
        commands=(
            CommandFact("make old", False),
            CommandFact("make new", False),
            CommandFact("make ok", True),
        ),
        errors=(ErrorFact("E1 was wrong", "make old", fixed=True),),
    )
    text = compose(ledger, 600, rough_count).text
    done, blocked = text.split("### Done")[1].split("### Blocked")
    assert "`make ok` passed" in done
    assert "failed" not in done
    assert "`make new` failed" in blocked
    assert "`make old` failed" not in text


def test_a_request_is_not_quoted_twice() -> None:
    line = "Please make the nightly job keep empty currencies."
    ledger = Ledger(
        requests=(RequestFact(line, "e1"),),
        excerpts=(Excerpt(line, entry="e1", kind="asked", names={"nightly": 0.9}),),
    )
    assert compose(ledger, 600, rough_count).text.count(line) == 1


def test_a_deleted_file_is_marked_in_the_list_of_changed_ones_and_read_back_as_deleted() -> None:
    files = (
        FileFact("src/a.py", "modified"),
        FileFact("src/b.py", "deleted"),
        FileFact("limits.db", "deleted"),
    )
    text = compose(Ledger(files=files), budget=2_000, count=rough_count).text
    assert "src/: b.py (deleted), a.py" in text
    assert "limits.db (deleted)" in text
    assert {(fact.path, fact.status) for fact in parse(text).files} >= {
        ("src/a.py", "modified"),
        ("src/b.py", "deleted"),
        ("limits.db", "deleted"),
    }
