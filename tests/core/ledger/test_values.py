"""Ids, URLs and numbers that tools were called with."""

from __future__ import annotations

from tests.core.ledger.session_samples import SESSION, answer, assistant, said

from foldline.core.ledger.facts import values
from foldline.core.ledger.facts.calls import uses
from foldline.core.ledger.facts.kinds import ValueFact
from foldline.core.log.messages import ToolCall


def test_values_come_with_what_they_were_for() -> None:
    found = {fact.value: fact for fact in values.collect(uses(SESSION))}
    assert found["http://127.0.0.1:8433/health"].words == "Check the shop API"
    assert found["http://127.0.0.1:8433/health"].kind == "url"


def test_a_newer_value_of_a_name_replaces_the_older() -> None:
    session = said(
        assistant("Start it.", ToolCall("a", "bash", {"command": "serve --port 8431"})),
        answer("a", "ok"),
        assistant("The port is taken.", ToolCall("b", "bash", {"command": "serve --port 9217"})),
        answer("b", "ok"),
    )
    assert [(fact.name, fact.value) for fact in values.collect(uses(session))] == [("port", "9217")]
    first, second = values.collect(uses(session[:2])), values.collect(uses(session[2:]))
    assert values.merge(first, second) == values.collect(uses(session))


def test_repeats_are_counted_and_bodies_left_out() -> None:
    call = ToolCall("a", "fetch", {"ticket": "ABC-77", "content": "about ABC-99"})
    found = values.collect(uses(said(assistant("Look.", call), assistant("Again.", call))))
    assert [(fact.value, fact.name, fact.uses) for fact in found] == [("ABC-77", "ticket", 2)]


def test_the_base_directory_stays_first() -> None:
    old = (ValueFact("/a/", "name", name=values.BASE),)
    new = tuple(ValueFact(str(n), "number") for n in range(5000, 5400))
    merged = values.merge(old, new)
    assert merged[0].value == "/a/"
    assert len(merged) == values.MOST + 1
