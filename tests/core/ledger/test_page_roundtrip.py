"""What a page says is read back from it: whatever the texts look like, no fact that was written is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.ledger.session_samples import rough_count

from foldline.core.ledger.facts.kinds import (
    CommandFact,
    ConstraintFact,
    DecisionFact,
    ErrorFact,
    Excerpt,
    FileFact,
    Ledger,
    OpenFact,
    ReportFact,
    RequestFact,
    ValueFact,
)
from foldline.core.ledger.facts.requests import shown
from foldline.core.ledger.page import (
    blocked,
    commands,
    decisions,
    done,
    errors,
    in_progress,
    next_steps,
    values,
)
from foldline.core.ledger.page.items import one_line
from foldline.core.ledger.page.page import compose, parse
from foldline.core.ledger.page.sheet import BLOCKED, CONTEXT, DECISIONS, DONE, IN_PROGRESS, NEXT_STEPS, split
from foldline.core.ledger.text.paths import relative
from foldline.core.ledger.text.sentences import clip

LARGE = 400_000

UGLY = st.lists(
    st.sampled_from(
        (
            "the importer", "keep_row", "src/app/main_loop.py", "x", " ", "  ", ", ", ": ", "; ", " / ", "/: ", "\n", "\n\n", "\t",
            "`", "` passed", "` failed: ", "` ran", "`make`", "; `", "): `", "=", " = `8431`", " (from `make`)", "(", ")", "…", '"',
            "- ", "  - ", "* ", "## Goal", "\n## Next Steps\n", "### Done", "(none)", "<read-files>", "\n</modified-files>\n",
            "<system-reminder>", "- First request: ", "Newest request: ", "Asked before: ", "Asked: ", 'Asked under "x":', "Said: ",
            "Noted earlier: ", "Noted: ", "Reported: ", "Went wrong: ", "Fixed since: ", "To do: ", "Said to come next: ", "defines ",
            "Asked last (what follows this summary may answer it): ", "A call was never answered: ", "; the user then said: ",
            "shows: ", "seen (x): ", "seen in a listing: ", "(modified)", " (deleted)", "(3 more)", "漢字。", "é", "\x00", "\r",
            "\u2028", "🙂", "word " * 90, "a" * 700, "8431", "https://x.org/a?b=1", "#12", "abc1234",
        )
    ),
    min_size=1,
    max_size=6,
).map("".join).map(str.strip).filter(bool)  # fmt: skip
"""Texts out of all that the page itself is made of."""
ENTRY = st.just("e1")
PATH = st.lists(
    st.sampled_from(
        (
            "src",
            "app",
            "(auth)",
            "a.py",
            "b.py",
            "Makefile",
            "a, b.md",
            "x: y",
            "`q`.py",
            "(3 more)",
            "<read-files>",
            "é 漢.txt",
            "c (deleted)",
        )
    ),
    min_size=1,
    max_size=3,
).map("/".join)
PATHS = st.one_of(PATH, PATH.map("/{}".format), PATH.map("/w/shop/{}".format))
WORTH = st.dictionaries(
    st.sampled_from(("keep_row", "app/main_loop.py", "8431", "other_name")),
    st.just(0.4),
    min_size=1,
    max_size=3,
)


TOLD = st.builds("{} keepsake{:05d}".format, UGLY, st.integers(0, 99_999))
"""Such texts, each of which can be found again."""


def excerpts_of(
    kind: str, text: st.SearchStrategy[str], topic: st.SearchStrategy[str]
) -> st.SearchStrategy[Excerpt]:
    return st.builds(Excerpt, text, topic, st.floats(0.001, 1), ENTRY, st.just(kind), WORTH, UGLY)


EXCERPT = st.one_of(
    excerpts_of("asked", TOLD, st.one_of(st.just(""), UGLY)),
    excerpts_of("told", TOLD, st.one_of(st.just(""), UGLY)),
    excerpts_of("said", TOLD, st.one_of(st.just(""), PATHS)),
    excerpts_of("line", TOLD, st.one_of(st.just(""), PATHS)),
    excerpts_of("hit", TOLD, PATHS),
    excerpts_of("outline", TOLD.map(lambda text: f"`{text.replace('`', '')}`: what it does"), PATHS),
    excerpts_of("opened", TOLD, PATHS),
    excerpts_of("changed", TOLD, PATHS),
    excerpts_of("listing", PATHS, st.one_of(st.just(""), UGLY)),
    excerpts_of("ran", TOLD.map(lambda text: f"bash `{clip(text, 200)}`"), st.one_of(st.just(""), UGLY)),
    excerpts_of(
        "searched", TOLD.map(lambda text: f"Grep pattern `{clip(text, 120)}`"), st.one_of(st.just(""), UGLY)
    ),
    excerpts_of("mention", TOLD.map(lambda text: f"`{text.replace('`', '').replace(', ', ' ')}`"), PATHS),
)
STATUS = st.sampled_from(("read", "created", "modified", "deleted"))
OPEN = st.one_of(
    st.builds(
        OpenFact, UGLY, st.sampled_from(("todo", "plan")), st.sampled_from(("pending", "in_progress")), ENTRY
    ),
    st.builds(OpenFact, UGLY, st.just("next"), st.sampled_from(("", "asked")), ENTRY),
    st.builds(OpenFact, UGLY, st.just("call"), st.just("unanswered"), ENTRY, st.one_of(st.just(""), UGLY)),
)
VALUE = st.one_of(
    st.builds(ValueFact, st.just("8431"), st.just("number"), UGLY, UGLY),
    st.builds(ValueFact, st.just("8432"), st.just("number"), UGLY, st.sampled_from(("", "id", "port", "number", "url"))),
    st.builds(ValueFact, st.just("https://x.org/a?b=1"), st.just("url"), UGLY, st.sampled_from(("", "url", "link"))),
    st.builds(ValueFact, st.sampled_from(("/w/shop/", "/w/`a b`/")), st.just("name"), st.just(""), st.just("base directory")),
)  # fmt: skip


def several(strategy: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


LEDGERS = st.builds(
    Ledger,
    requests=several(st.builds(RequestFact, UGLY, ENTRY, st.one_of(st.just(""), UGLY))),
    constraints=several(st.builds(ConstraintFact, UGLY, ENTRY)),
    files=st.lists(st.builds(FileFact, PATHS, STATUS, st.integers(1, 3), several(UGLY)), max_size=4, unique_by=lambda fact: fact.path).map(tuple),
    commands=several(st.builds(CommandFact, UGLY, st.sampled_from((True, False, None)), UGLY, why=st.one_of(st.just(""), UGLY))),
    errors=several(st.builds(ErrorFact, UGLY, st.one_of(st.just(""), UGLY), st.booleans())),
    decisions=several(st.builds(DecisionFact, UGLY, ENTRY, st.booleans())),
    values=several(VALUE, 2),
    open=several(OPEN, 4),
    reports=several(st.builds(ReportFact, UGLY, ENTRY)),
    excerpts=several(EXCERPT, 6),
)  # fmt: skip


def flat(text: str) -> str:
    """A text as far as a page keeps it: on one line; marks that would end it early are others there."""
    text = " ".join(text.replace("`", "'").split())
    return text.replace(" / ", "/").replace("/: ", "/:").replace(", ", ",").replace("; ", ",")


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


def lost(expected: Iterable[Any], found: Iterable[Any]) -> tuple[set[Any], set[Any]]:
    """What should have been read and was not, and what was read and should not have been."""
    expected, found = set(expected), set(found)
    return expected - found, found - expected


NONE: tuple[set[Any], set[Any]] = (set(), set())


def test_a_page_of_nothing_says_nothing() -> None:
    assert parse(compose(Ledger(), 500, rough_count).text) == Ledger()


@settings(max_examples=250, deadline=None)
@given(LEDGERS, st.sampled_from((LARGE, LARGE, 1_500, 700)))
def test_every_fact_that_was_written_is_read_back(ledger: Ledger, budget: int) -> None:
    text = compose(ledger, budget, rough_count).text
    parts, back = split(text), parse(text)
    if budget == LARGE:
        assert [fact.text for fact in back.constraints] == [fact.text for fact in ledger.constraints]
    check_sentences(ledger, parts, back)
    check_runs(ledger, parts, back)
    check_open_work(ledger, parts, back)
    check_requests(ledger, back, everything=budget == LARGE)
    check_files(ledger, back, everything=budget == LARGE)
    check_values(ledger, parts, back)
    check_excerpts(ledger, text, back)


def check_sentences(ledger: Ledger, parts: dict[str, list[str]], back: Ledger) -> None:
    chosen = {
        clip(fact.text, 300) for fact in ledger.decisions if decisions.line_of(fact) in parts[DECISIONS]
    }
    assert lost(chosen, (fact.text for fact in back.decisions)) == NONE
    told = {clip(fact.text, 300) for fact in ledger.reports if done.report_line_of(fact) in parts[DONE]}
    assert lost(told, (fact.text for fact in back.reports)) == NONE


def check_runs(ledger: Ledger, parts: dict[str, list[str]], back: Ledger) -> None:
    def ran(fact: CommandFact) -> tuple[str, bool | None]:
        return flat(commands.telling(fact.command)), fact.passed

    run = {ran(fact) for fact in ledger.commands if commands.line_of(fact) in (*parts[DONE], *parts[BLOCKED])}
    assert lost(run, ((flat(fact.command), fact.passed) for fact in back.commands)) == NONE
    wrong = {
        (flat(clip(fact.text, 240)), flat(clip(fact.source, 80)), False)
        for fact in ledger.errors
        if not fact.fixed and blocked.error_line_of(fact) in parts[BLOCKED]
    }
    fixed = {
        (flat(clip(fact.text, 140)), flat(commands.telling(fact.source, 60)), True)
        for fact in ledger.errors
        if fact.fixed and errors.fixed_line_of(fact) in parts[DONE]
    }
    found = ((flat(fact.text), flat(fact.source), fact.fixed) for fact in back.errors)
    assert lost(wrong | fixed, found) == NONE


def check_open_work(ledger: Ledger, parts: dict[str, list[str]], back: Ledger) -> None:
    expected = set[tuple[str, str, str]]()
    for fact in ledger.open:
        if fact.kind == "call":
            if blocked.call_line_of(fact) in parts[BLOCKED]:
                expected.add((flat(clip(fact.text, 160)), "call", flat(fact.then)))
        elif in_progress.is_begun(fact):
            if in_progress.line_of(fact) in parts[IN_PROGRESS]:
                expected.add((flat(clip(fact.text, 240)), "todo", "in_progress"))
        elif next_steps.line_of(fact) in parts[NEXT_STEPS]:
            state = fact.state if fact.kind == "next" else "pending"
            size = 500 if fact.state == "asked" else 240
            expected.add((flat(clip(fact.text, size)), "next" if fact.kind == "next" else "todo", state))
    found = (
        (flat(fact.text), fact.kind, flat(fact.then) if fact.kind == "call" else fact.state)
        for fact in back.open
    )
    assert lost(expected, found) == NONE


def check_requests(ledger: Ledger, back: Ledger, *, everything: bool) -> None:
    asked = [flat(text) for fact in ledger.requests for text in (fact.text, shown(fact))]
    for fact in (*back.requests[:1], *back.requests[-1:]) if everything else ():
        assert any(flat(fact.text.removesuffix("…")) in text for text in asked)
    assert bool(back.requests) == bool(ledger.requests)


def check_files(ledger: Ledger, back: Ledger, *, everything: bool) -> None:
    base = values.base_of(ledger.values)
    status = {relative(fact.path, base): fact.status for fact in ledger.files}
    found = {fact.path: fact.status for fact in back.files}
    assert set(found) <= set(status)
    if len(status) < len(ledger.files):
        return  # two spellings of one path
    about = {excerpt.topic for excerpt in ledger.excerpts}
    for fact in ledger.files if everything else ():
        path = relative(fact.path, base)
        if fact.status == "read" and any(topic.endswith(fact.path[-3:]) for topic in about):
            continue  # named by what is carried about it
        assert found[path] in (fact.status, "modified" if fact.status == "created" else fact.status)


def check_values(ledger: Ledger, parts: dict[str, list[str]], back: Ledger) -> None:
    def said(fact: ValueFact) -> tuple[str, str, str]:
        name = "" if fact.name == fact.kind else flat(fact.name)[:20]
        return flat(fact.value), name, flat(clip(fact.words, 90))

    written = [fact for fact in ledger.values if values.line_of(fact) in parts[CONTEXT]]
    expected = {(value, words) for value, _, words in map(said, written)}
    assert lost(expected, ((value, words) for value, _, words in map(said, back.values))) == NONE
    plain = {said(fact) for fact in written if fact.name.isalpha()}
    assert plain <= {said(fact) for fact in back.values}


def check_excerpts(ledger: Ledger, text: str, back: Ledger) -> None:
    page = flat(text)
    said = [flat(each) for each in strings(msgspec.to_builtins(back))]
    said += [flat(f"{excerpt.topic}: {excerpt.text}") for excerpt in back.excerpts]
    for excerpt in ledger.excerpts:
        if flat(excerpt.text) in page:
            assert any(flat(excerpt.text) in each for each in said), excerpt
    kinds = {(excerpt.kind, one_line(excerpt.text)) for excerpt in ledger.excerpts}
    for excerpt in back.excerpts:
        if excerpt.kind in ("asked", "told", "answer"):
            assert (excerpt.kind, excerpt.text) in kinds


def test_reports_that_look_like_other_lines_are_reports() -> None:
    texts = [
        "`make test` passed",
        "`src/a.py`: fixed",
        "`src/a.py` (modified): done",
        "Fixed since: it broke",
        "Reported: done",
    ]
    back = parse(
        compose(Ledger(reports=tuple(ReportFact(text, "e") for text in texts)), LARGE, rough_count).text
    )
    assert [fact.text for fact in back.reports] == texts
    assert (back.commands, back.files, back.errors, back.excerpts) == ((), (), (), ())


@pytest.mark.parametrize(
    "fact",
    [
        ErrorFact("Fixed since: it broke"),
        ErrorFact("`make` failed: boom"),
        ErrorFact("A call was never answered: Bash"),
        ErrorFact("`make` failed: boom", fixed=True),
        ErrorFact("Went wrong: at last", "make all"),
    ],
)
def test_errors_that_look_like_other_lines_are_errors(fact: ErrorFact) -> None:
    back = parse(compose(Ledger(errors=(fact,)), LARGE, rough_count).text)
    assert (back.errors, back.commands, back.open) == ((fact,), (), ())


def test_an_error_that_ends_as_if_it_had_a_source_has_none() -> None:
    back = parse(compose(Ledger(errors=(ErrorFact("boom (from `make`)"),)), LARGE, rough_count).text)
    assert back.errors == (ErrorFact("boom (from 'make`)"),)


@pytest.mark.parametrize(
    ("fact", "read"),
    [
        (CommandFact("make", False, "`test` failed"), None),
        (CommandFact("make `date` now", True), None),
        (CommandFact("check '` passed: ' log", True), CommandFact("check '' passed: ' log", True)),
        (CommandFact(f"make {'x' * 195}", True, why="..."), CommandFact(f"make {'x' * 104}…", True)),
        (
            CommandFact(f"make {'x' * 195}", True, why="Said: why"),
            CommandFact(f"make {'x' * 104}…", True, why="(Said: why)"),
        ),
    ],
)
def test_commands_are_told_from_their_verdicts(fact: CommandFact, read: CommandFact | None) -> None:
    back = parse(compose(Ledger(commands=(fact,)), LARGE, rough_count).text)
    assert (back.commands, back.reports, back.errors) == ((read or fact,), (), ())


@pytest.mark.parametrize("status", ["read", "modified", "deleted"])
@pytest.mark.parametrize(
    "path",
    [
        "(auth)/page.tsx",
        "docs/a, b.md",
        "docs/x: y/z.md",
        "/Makefile",
        "`q`.py",
        "(3 more)",
        "<read-files>",
        "old (deleted)",
        " x",
    ],
)
def test_files_of_any_name_are_listed(path: str, status: str) -> None:
    files = (FileFact("docs/c.md", status), FileFact(path, status), FileFact("/notes", status))
    back = parse(compose(Ledger(files=files), LARGE, rough_count).text)
    assert {(fact.path, fact.status) for fact in back.files} == {(fact.path, status) for fact in files}


def test_why_a_file_was_changed_is_no_command() -> None:
    why = Excerpt(
        "Now that `make` failed, mend it / them", "src/a.py", 1.0, kind="changed", names={"app/a.py": 0.5}
    )
    again = Excerpt("The tests say `make` failed", "src/a.py", 1.0, kind="changed", names={"app/a.py": 0.5})
    ledger = Ledger(files=(FileFact("src/a.py", "modified", 2),), excerpts=(why, again))
    back = parse(compose(ledger, LARGE, rough_count).text)
    assert (back.commands, [(fact.path, fact.status, fact.uses) for fact in back.files]) == (
        (),
        [("src/a.py", "modified", 2)],
    )
    assert [fact.text for fact in back.excerpts] == [
        "Now that `make` failed, mend it/them",
        "The tests say `make` failed",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "`pytest` failed: 3 tests",
        "`thinkingLow`: blue",
        "port = `8431`",
        "Said: see keep_row",
        "seen in a listing: `a/b.py`",
        "Asked: why keep_row is there",
        "Uses `keep_row`; `drop_row` is gone",
        "defines keep_row",
    ],
)
@pytest.mark.parametrize("topic", ["", "src/a.py"])
def test_a_sentence_that_looks_like_another_line_stays_whole(text: str, topic: str) -> None:
    ledger = Ledger(excerpts=(Excerpt(text, topic, 1.0, "e", "said", {"keep_row": 0.5}),))
    back = parse(compose(ledger, LARGE, rough_count).text)
    assert (back.commands, back.values, back.files, back.requests) == ((), (), (), ())
    (fact,) = back.excerpts
    assert text in (fact.text, f"{fact.topic}: {fact.text}")


def test_a_value_keeps_a_name_that_is_also_a_kind() -> None:
    facts = (
        ValueFact("84315", "number", "", "id"),
        ValueFact("84316", "number"),
        ValueFact("#12", "id", "", "a=`b`:  c"),
    )
    back = parse(compose(Ledger(values=facts), LARGE, rough_count).text)
    assert {(fact.value, fact.name) for fact in back.values} == {
        ("84315", "id"),
        ("84316", ""),
        ("#12", "a 'b':c"),
    }


def test_what_the_user_then_said_is_told_from_the_call() -> None:
    fact = OpenFact(
        "echo; the user then said: no", "call", "unanswered", "e", "stop; the user then said: now"
    )
    (back,) = parse(compose(Ledger(open=(fact,)), LARGE, rough_count).text).open
    assert (back.text, back.then) == ("echo, the user then said: no", fact.then)


def test_an_item_that_begins_like_a_next_step_stays_on_its_list() -> None:
    facts = tuple(
        OpenFact(text, "todo", "pending") for text in ("Said to come next: tests", "To do: docs", "ship")
    )
    assert parse(compose(Ledger(open=facts), LARGE, rough_count).text).open == facts


def test_open_errors_keep_their_order_over_three_folds() -> None:
    made = tuple(
        ErrorFact(f"{name}.py:1: undefined name {name}", f"make {name}") for name in ("one", "two", "three")
    )
    ledger = Ledger(errors=(*made, ErrorFact("four.py:1: gone", "make four", fixed=True)))
    pages: list[str] = []
    for _ in range(3):
        pages.append(compose(ledger, LARGE, rough_count).text)
        ledger = parse(pages[-1])
        assert [fact.text for fact in ledger.errors if not fact.fixed] == [fact.text for fact in made]
    assert pages[0] == pages[1] == pages[2]
