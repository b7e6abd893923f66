"""What names are worth."""

from __future__ import annotations

from hypothesis import given, settings
from tests.core.ledger.session_samples import SESSION, answer, assistant, said, sessions, user

from foldline.core.ledger.facts.calls import argument_texts
from foldline.core.ledger.worth import salience, survey
from foldline.core.log.messages import ToolCall


def test_channels_are_counted_apart() -> None:
    met = survey.survey(SESSION)
    importer = met.names["ledger/importer.py"]
    assert (importer.user, importer.addressed, importer.modified, importer.results) == (1, 2, 1, 1)
    assert met.names["keep_row"].defined == 1
    assert met.names["DEFAULT_CURRENCY"].body == 1
    assert survey.root(met) == "/home/ann/shop/"


def test_a_file_in_use_is_worth_more_than_one_that_was_listed() -> None:
    session = said(
        user("Fix the parser in src/app/parser.py."),
        assistant("Listing.", ToolCall("a", "ls", {"path": "src/app"})),
        answer("a", "\n".join(f"src/app/other_{n}.py" for n in range(40))),
        assistant("Reading it.", ToolCall("b", "read", {"path": "src/app/parser.py"})),
        answer("b", "def parse_it(): ..."),
    )
    met = survey.survey(session)
    worth = {key: salience.worth(seen, met) for key, seen in met.names.items()}
    assert worth["app/parser.py"] > 5 * worth["app/other_7.py"]


def test_bodies_are_told_from_what_addresses() -> None:
    given_arguments = {
        "path": "a.py",
        "new_text": "x",
        "n": 5,
        "flag": True,
        "items": ["b", {"content": "c"}],
    }
    assert list(argument_texts(given_arguments)) == [
        (False, "a.py"), (True, "x"), (False, "5"), (False, "b"), (True, "c"),
    ]  # fmt: skip
    assert list(argument_texts("y" * 500)) == [(True, "y" * 500)]


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_worth_is_a_probability(session) -> None:
    met = survey.survey(session)
    for seen in met.names.values():
        assert 0.0 <= salience.worth(seen, met) <= 1.0
