"""What was answered in plain words: the last to get room, and all there is in a talk that names nothing."""

from __future__ import annotations

import msgspec

from foldline.core.ledger.bounds import bounded
from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts import answers
from foldline.core.ledger.merge import merge
from foldline.core.ledger.page.page import compose, parse
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall
from foldline.core.measure.tokens import OFFLINE

TALK = (
    ("user", "Which apples are good for a pie?"),
    (
        "assistant",
        "Take ones that stay firm and taste sour. Boskoop is the usual choice here. Do you have some?",
    ),
    ("user", "Only sweet ones. And how long do I bake it?"),
    (
        "assistant",
        "Then use less sugar and add the juice of a lemon.\n\n## Baking\nBake it until the crust is brown.",
    ),
)

WORDS = [f"{first}{second}" for first in ("one", "two", "six", "ten", "red") for second in "abcdefghijkl"]


def said(talk: tuple[tuple[str, str], ...] = TALK, *, ids: bool = True) -> list[Said]:
    return [
        Said(f"e{number}" if ids else "", None, Message(role, (Text(text),)), "")  # type: ignore[arg-type]
        for number, (role, text) in enumerate(talk)
    ]


def test_an_answer_is_what_it_says_beside_names_questions_and_headings() -> None:
    assert [fact.text for fact in answers.collect(said())] == [
        "Take ones that stay firm and taste sour. Boskoop is the usual choice here.",
        "Then use less sugar and add the juice of a lemon. Bake it until the crust is brown.",
    ]


def test_words_before_a_call_are_no_answer() -> None:
    call = ToolCall("c1", "read", {"path": "pie.md"})
    message = Message("assistant", (Text("I look at the recipe that we wrote down."), call))
    assert answers.collect([Said("e1", None, message, "")]) == ()


def test_a_sentence_that_holds_no_more_is_left_out() -> None:
    (fact, _) = answers.collect(said(), frozenset(["Take ones that stay firm"]))
    assert fact.text == "Boskoop is the usual choice here."


def test_another_systems_summary_is_taken_sentence_by_sentence() -> None:
    summary = "## Goal\nFind a pie for the party on Sunday.\n- The oven is old and runs too hot."
    assert [fact.text for fact in answers.collect(said((("assistant", summary),), ids=False))] == [
        "Find a pie for the party on Sunday.",
        "The oven is old and runs too hot.",
    ]


def test_a_talk_that_names_nothing_is_carried_by_its_answers_and_read_back() -> None:
    many = tuple(pair for _ in range(6) for pair in TALK)
    text = compose(collect(said(many)), 2_000, OFFLINE.count).text
    assert "- Said: Then use less sugar and add the juice of a lemon." in text
    back = parse(text)
    assert any(fact.kind == answers.KIND and "lemon" in fact.text for fact in back.excerpts)
    assert "- Said: Then use less sugar" in compose(back, 2_000, OFFLINE.count).text


def test_answers_take_at_most_half_as_much_as_the_rest() -> None:
    talk = tuple(
        pair
        for number in range(40)
        for pair in (
            ("user", "And then?"),
            ("assistant", f"Then you go on and do the thing called {chr(97 + number % 26) * 9}."),
        )
    )
    ledger = collect(said(talk))
    bare = msgspec.structs.replace(ledger, excerpts=())
    rest = OFFLINE.count(compose(bare, 8_000, OFFLINE.count).text)
    assert rest < OFFLINE.count(compose(ledger, 8_000, OFFLINE.count).text) <= rest * 3 // 2 + 8


def test_of_many_folds_the_newest_answers_are_carried() -> None:
    ledger = None
    for number, word in enumerate(WORDS):
        text = f"Answer number {word} is long enough to stay."
        talk = [("user", "Go on."), ("assistant", text)]
        entries = [msgspec.structs.replace(entry, id=f"{entry.id} {number}") for entry in said(tuple(talk))]
        ledger = collect(entries) if ledger is None else merge(ledger, collect(entries))
    assert ledger is not None
    told = [fact.text for fact in bounded(ledger).excerpts if fact.kind == answers.KIND]
    assert len(told) == answers.MOST
    assert told[-1] == f"Answer number {WORDS[-1]} is long enough to stay."
