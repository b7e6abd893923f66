"""Which passages are carried."""

from __future__ import annotations

from hypothesis import given, settings
from tests.core.ledger.session_samples import SESSION, answer, assistant, rough_count, said, sessions, user

from foldline.core.ledger.facts.kinds import Excerpt
from foldline.core.ledger.worth import excerpts, selection
from foldline.core.ledger.worth.passages import Reader
from foldline.core.log.messages import ToolCall


def test_a_definition_is_carried_with_its_comment() -> None:
    texts = [excerpt.text for excerpt in excerpts.collect(SESSION) if excerpt.kind == "outline"]
    assert "`keep_row`: Decide whether a row has a currency" in texts


def test_passages_keep_to_what_was_said() -> None:
    said_texts = {passage.text for passage in Reader().read(SESSION) if passage.kind == "said"}
    assert "`keep_row` treats an empty currency as broken." in said_texts


def test_hits_belong_to_the_file_they_were_found_in() -> None:
    hits = [excerpt for excerpt in excerpts.collect(SESSION) if "nightly import" in excerpt.text]
    assert [excerpt.topic for excerpt in hits] == ["src/ledger/nightly_job.py"]


def test_a_sentence_tells_more_than_a_bare_line() -> None:
    assert (
        selection.clarity("said", plain=4)
        > selection.clarity("line", plain=4)
        > selection.clarity("line", plain=0)
    )


def test_picking_prefers_new_names_to_repeats() -> None:
    pool = [
        Excerpt("the importer reads `alpha_one` rows", kind="said", names={"alpha_one": 0.5}),
        Excerpt("the importer writes `alpha_one` rows", kind="said", names={"alpha_one": 0.5}),
        Excerpt("the nightly cleanup drops `beta_two`", kind="said", names={"beta_two": 0.4}),
    ]
    assert selection.pick(pool, 28, rough_count) in ([0, 2], [1, 2])


def test_picking_holds_to_six_quoted_lines_a_topic() -> None:
    pool = [
        Excerpt(f"value of name_{n}_x", topic="a.py", kind="line", names={f"name_{n}_x": 0.5})
        for n in range(20)
    ]
    assert len(selection.pick(pool, 10_000, rough_count)) == selection.MOST_QUOTES


def test_merging_fades_the_old_and_joins_what_both_know() -> None:
    old = (Excerpt("reads `alpha_one`", weight=1.0, names={"alpha_one": 0.5}),)
    new = (Excerpt("writes `alpha_one`", weight=1.0, names={"alpha_one": 0.5}),)
    merged = excerpts.merge(old, new)
    assert [round(excerpt.names["alpha_one"], 3) for excerpt in merged] == [0.675, 0.675]
    assert merged[0].weight == excerpts.DECAY
    assert excerpts.merge((), new) == new


def test_long_and_many_lines_are_read_to_a_bound() -> None:
    huge = said(
        user("Look at some_thing."),
        assistant("Reading.", ToolCall("a", "read", {"path": "a/b.py"})),
        answer("a", "some_thing " * 100_000 + "\n" + "\n".join(f"x_{n}_y = {n}" for n in range(30_000))),
    )
    assert 0 < len(excerpts.collect(huge)) <= excerpts.MOST


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_any_session_gives_bounded_excerpts(session) -> None:
    for excerpt in excerpts.collect(session):
        assert "\n" not in excerpt.text
        assert len(excerpt.text) <= 400


def test_one_topic_has_a_bound_of_items() -> None:
    pool = [
        Excerpt(
            f"`name_{n}_x`: reads the nightly report",
            topic="a.py",
            kind="outline",
            names={f"name_{n}_x": 0.5},
        )
        for n in range(40)
    ]
    assert len(selection.pick(pool, 10_000, rough_count)) == selection.MOST_ITEMS


def test_what_kept_messages_name_counts_less() -> None:
    folded = (Excerpt("reads `alpha_one` and `beta_two`", names={"alpha_one": 0.5, "beta_two": 0.5}),)
    kept = (Excerpt("writes `alpha_one`", names={"alpha_one": 0.9}),)
    assert excerpts.beside(folded, kept)[0].names == {"alpha_one": 0.2, "beta_two": 0.5}


def test_the_index_line_of_a_diff_is_not_quoted() -> None:
    session = said(
        user("Show the change."),
        assistant("", ToolCall("c1", "bash", {"command": "git diff src/a.py"})),
        answer("c1", "index a52b0521..f37f36a2 100644\n+def fetch_page(): pass"),
    )
    texts = [passage.text for passage in Reader().read(session)]
    assert any("fetch_page" in text for text in texts)
    assert not any("a52b0521" in text for text in texts)


def test_a_long_line_of_json_is_cut_between_its_pairs() -> None:
    pairs = ", ".join(f'"field_{number}": "value number {number}"' for number in range(12))
    session = said(
        user("Show the record."),
        assistant("", ToolCall("c1", "show", {"id": "7"})),
        answer("c1", "{" + pairs + "}"),
    )
    shown = [passage.text for passage in Reader().read(session) if passage.kind == "line"]
    assert shown
    assert all(text.strip("{…").endswith('"') for text in shown)
    assert all(len(text) <= 112 for text in shown)


def test_a_signature_is_the_names_of_its_parameters_whatever_their_types() -> None:
    lines = (
        "def cancel(database: Database, hold_id: int, *, clock: Callable[[], float] = time.time) -> None:\n"
        "def from_environ(cls, environ: dict[str, Any]) -> Settings:\n"
        "export function renderTurn(turn: Map<string, Turn>, includeDay = false) {"
    )
    talk = said(
        assistant("Let me read the desk.", ToolCall("c", "read", {"path": "src/desk.py"})),
        answer("c", lines),
    )
    texts = {passage.text for passage in Reader().read(talk) if passage.kind == "outline"}
    assert "`def cancel(database, hold_id, clock)`" in texts
    assert "`def from_environ(cls, environ)`" in texts
    assert any("renderTurn(turn, includeDay)" in text for text in texts)
