"""A checkpoint read back."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.ledger.session_samples import SESSION, rough_count, sessions

from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.page.page import compose, parse


def test_what_was_written_is_read_back() -> None:
    ledger = collect(SESSION)
    back = parse(compose(ledger, 1_200, rough_count).text)
    assert [fact.text for fact in back.constraints] == [fact.text for fact in ledger.constraints]
    assert [(fact.path, fact.status) for fact in back.files] == [("src/ledger/importer.py", "modified")]
    assert {(fact.command, fact.passed) for fact in back.commands} == {
        (fact.command, fact.passed) for fact in ledger.commands
    }
    assert [fact.text for fact in back.open] == [fact.text for fact in ledger.open]
    assert {fact.value for fact in back.values} == {fact.value for fact in ledger.values}
    assert {name for excerpt in back.excerpts for name in excerpt.names} >= {
        "keep_row",
        "ledger/nightly_job.py",
    }


def test_ten_folds_in_a_row_change_nothing_more() -> None:
    text = compose(collect(SESSION), 700, rough_count).text
    texts = []
    for _ in range(10):
        text = compose(parse(text), 700, rough_count).text
        texts.append(text)
    assert len(set(texts[1:])) == 1


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_constraints_survive_word_for_word(session) -> None:
    ledger = collect(session)
    texts = [fact.text for fact in ledger.constraints]
    assert [fact.text for fact in parse(compose(ledger, 3_000, rough_count).text).constraints] == texts


@given(
    st.lists(
        st.text(alphabet="ab-# \n`<>", min_size=1, max_size=30).map(str.strip).filter(bool),
        max_size=4,
        unique=True,
    )
)
def test_a_constraint_of_any_shape_survives(texts: list[str]) -> None:
    ledger = Ledger(constraints=tuple(ConstraintFact(text, "e") for text in texts))
    back = parse(compose(ledger, 3_000, rough_count).text)
    assert [fact.text for fact in back.constraints] == texts


@given(st.text(max_size=500))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(parse(text), Ledger)
    assert isinstance(parse("## Goal\n" + text + "\n\n## Next Steps\n- " + text), Ledger)


def test_uses_of_tools_without_a_topic_make_a_ledger_that_can_be_stored() -> None:
    text = "## Critical Context\n- ran `make deploy-all`; searched `keep_row`\n"
    stored = msgspec.to_builtins(parse(text))
    assert {fact.topic for fact in msgspec.convert(stored, Ledger).excerpts} == {""}
