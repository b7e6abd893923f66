"""The work log: each request in order, what was done for it, and the words that closed it."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.ledger.session_samples import rough_count

from foldline.core.ledger import work_log
from foldline.core.ledger.bounds import bounded
from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts.kinds import CommandFact, Excerpt, FileFact, Ledger, ReportFact, WorkFact
from foldline.core.ledger.merge import merge
from foldline.core.ledger.page import work_log as page
from foldline.core.ledger.page.page import compose, parse
from foldline.core.ledger.page.sheet import WORK_LOG, split
from foldline.core.log.entries import Said
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from foldline.core.secrets.entries import CleanEntries


def entries(*messages: Message) -> list[Said]:
    return [Said(f"e{number}", None, message, "") for number, message in enumerate(messages)]


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def assistant(*parts: Part | str) -> Message:
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def result(call: str, text: str) -> Message:
    return Message("tool", (ToolResult(call, (Text(text),)),))


SESSION = entries(
    user("The export drops the last row. Mend it in src/export.py, please."),
    assistant("I look at the loop.", ToolCall("c1", "read", {"path": "src/export.py"})),
    result("c1", "for row in rows[:-1]: ..."),
    assistant("The slice is off by one.", ToolCall("c2", "edit", {"path": "src/export.py", "old": "[:-1]", "new": ""})),
    result("c2", "ok"),
    assistant(ToolCall("c3", "bash", {"command": "pytest tests/test_export.py"})),
    result("c3", "4 passed in 0.2s"),
    assistant("The export writes the last row now. All four tests pass. Shall I write a changelog entry?"),
    user("yes"),
    assistant(ToolCall("c4", "write", {"path": "CHANGELOG.md", "content": "## 1.2\nThe last row is written."})),
    result("c4", "ok"),
    assistant("Great! I added the entry to `CHANGELOG.md`. Let me know if you need more."),
)  # fmt: skip


def section(ledger: Ledger, budget: int = 2_000) -> list[str]:
    return split(compose(ledger, budget, rough_count).text)[WORK_LOG]


def test_a_request_is_told_with_what_was_done_and_what_came_of_it() -> None:
    first, second = collect(SESSION).work
    assert first.asked == "The export drops the last row. Mend it in src/export.py, please."
    assert first.files == (FileFact("src/export.py", "modified"),)
    assert [(run.command, run.passed) for run in first.ran] == [("pytest tests/test_export.py", True)]
    assert first.closing == (
        "The export writes the last row now.",
        "All four tests pass.",
        "Shall I write a changelog entry?",
    )
    assert (second.asked, second.question, second.answered) == (
        "yes",
        "Shall I write a changelog entry?",
        True,
    )
    assert second.closing == ("I added the entry to `CHANGELOG.md`.",)


def test_the_page_tells_it_in_the_order_of_events() -> None:
    lines = section(collect(SESSION))
    told = "\n".join(lines)
    order = (
        "- Asked: The export drops the last row.",
        "Changed: `src/export.py`",
        "`pytest tests/test_export.py` passed",
        "Result: The export writes the last row now.",
        '- Asked: yes (answering: "Shall I write a changelog entry?")',
        "Created: `CHANGELOG.md`",
        "Result: I added the entry",
    )
    places = [told.index(text) for text in order]
    assert places == sorted(places)


def test_work_that_was_cut_in_two_is_one_item_again() -> None:
    whole = collect(SESSION).work
    for cut in (1, 3, 5, 7, 8, 9, 11):  # never between a call and its result
        joined = merge(collect(SESSION[:cut]), collect(SESSION[cut:])).work
        assert [fact.asked for fact in joined] == [fact.asked for fact in whole]
        assert [fact.files for fact in joined] == [fact.files for fact in whole]
        assert [fact.closing for fact in joined] == [fact.closing for fact in whole]


def test_merging_a_range_again_changes_nothing() -> None:
    once = collect(SESSION)
    assert work_log.merge(once.work, once.work) == once.work


def many(count: int) -> Ledger:
    work = tuple(
        WorkFact(f"Do part {number}.", f"e{number}", closing=(f"Part {number} is done.",), answered=True)
        for number in range(count)
    )
    return Ledger(work=work)


def test_the_newest_requests_are_told_first_and_the_others_are_counted() -> None:
    lines = section(many(200), 900)
    assert "- Asked: Do part 199." in lines
    assert any(line == "  - Result: Part 199 is done." for line in lines)
    told = sum(line.startswith("- Asked: ") for line in lines)
    assert lines[0] == f"- ({200 - told} more requests)"


def counted(ledger: Ledger) -> int:
    """The requests that a section tells of, and those that it says it leaves out."""
    lines = section(ledger, 900)
    gaps = (re.match(r"- \((\d+) more requests?\)$", line) for line in lines)
    return sum(line.startswith("- Asked: ") for line in lines) + sum(int(gap[1]) for gap in gaps if gap)


def test_every_request_of_many_folds_is_told_or_counted() -> None:
    ledger, told = Ledger(), 0
    for fold in range(7):
        asked = [user(f"Look order {n} up, please.") for n in range(told, told + 30)]
        said = [message for one in asked for message in (one, assistant(f"It was sent in {one.text}"))]
        new = collect([Said(f"e{fold}-{at}", None, message, "") for at, message in enumerate(said)])
        ledger, told = merge(bounded(ledger), new), told + 30
        assert counted(ledger) == told
        assert counted(bounded(ledger)) == told
    read = parse(compose(ledger, 900, rough_count).text)
    assert counted(merge(read, Ledger())) == told
    assert counted(merge(bounded(read), new)) == told + 30


def test_only_what_goes_on_is_told_step_by_step() -> None:
    first, *_, last = many(60).work
    steps = [
        Excerpt("`keep_row` skips blanks", "", 1.0, "s", "said", {"keep_row": 0.5}, work=first.key),
        Excerpt("`drop_row` takes the others", "", 1.0, "t", "said", {"drop_row": 0.5}, work=last.key),
    ]
    work = [msgspec.structs.replace(one, answered=False) for one in many(60).work]
    lines = section(Ledger(work=tuple(work), excerpts=tuple(steps)), 600)
    assert lines[lines.index("  - `drop_row` takes the others") - 1] == f"- Asked: {last.asked}"
    assert not any("keep_row" in line for line in lines)


def test_what_was_said_on_the_way_to_an_answer_is_for_looking_up() -> None:
    step = Excerpt("`keep_row` skips blanks", "", 1.0, "s", "said", {"keep_row": 0.5}, work="e3")
    asked = Excerpt("and the sums", "", 1.0, "e3", "asked", {"sums": 0.5}, work="e3")
    text = compose(Ledger(work=many(60).work, excerpts=(step, asked)), 400, rough_count).text
    story, _, index = text.partition("## Index")
    assert "keep_row" not in story
    assert "- `keep_row` skips blanks" in index
    assert "- Asked:\n  - and the sums" in index
    assert {one.kind for one in parse(text).excerpts} == {"said", "asked"}


@pytest.mark.parametrize(
    "text",
    [
        "Let me know if you would like me to go on.",
        "Here is what I did:",
        "No response requested.",
        "Great!",
        "Summary",
    ],
)
def test_words_that_tell_nothing_close_nothing(text: str) -> None:
    assert work_log.closing_words(f"The importer reads both forms. {text}") == (
        "The importer reads both forms.",
    )


def test_of_questions_only_the_last_one_waits_for_an_answer() -> None:
    said = "Why did it fail? The port was taken. Shall I use port 8081?"
    assert work_log.closing_words(said) == ("The port was taken.", "Shall I use port 8081?")


WORDS = st.lists(
    st.sampled_from(("the", "importer", "`keep_row`", "reads", "rows", "Result:", "Asked:", "Done:", "8431", "(x)", "漢字")),
    min_size=2,
    max_size=8,
).map(" ".join)  # fmt: skip
PATHS = st.sampled_from(("src/a.py", "src/b c.py", "Makefile", "docs/é.md", "/tmp/x.txt"))


@given(
    st.lists(
        st.builds(
            WorkFact,
            WORDS,
            st.just(""),
            st.one_of(st.just(""), WORDS),
            st.lists(st.builds(FileFact, PATHS, st.sampled_from(("created", "modified", "deleted"))), max_size=3, unique_by=lambda fact: fact.path).map(tuple),
            st.lists(st.builds(CommandFact, st.sampled_from(("make test", "npm run build")), st.booleans()), max_size=2, unique_by=lambda fact: fact.command).map(tuple),
            st.lists(WORDS, max_size=2).map(tuple),
            st.booleans(),
        ),
        max_size=4,
        unique_by=lambda fact: fact.asked,
    )
)  # fmt: skip
def test_what_the_log_tells_is_read_back(work: list[WorkFact]) -> None:
    ledger = Ledger(work=tuple(work))
    back = parse(compose(ledger, 100_000, rough_count).text).work
    assert [page.head(fact, 500) for fact in back] == [page.head(fact, 500) for fact in work]
    assert [set(fact.files) for fact in back] == [set(fact.files) for fact in work]
    assert [[(run.command, run.passed) for run in fact.ran] for fact in back] == [
        [(run.command, run.passed) for run in fact.ran] for fact in work
    ]
    assert [page.closing_line(fact, 900) for fact in back] == [page.closing_line(fact, 900) for fact in work]


def test_a_report_is_told_with_its_work_and_read_back() -> None:
    ledger = Ledger(
        work=(WorkFact("Mend it.", "e0"),),
        reports=(ReportFact("The cache is gone.", "e1", "e0"),),
    )
    assert "  - Done: The cache is gone." in section(ledger)
    assert [fact.text for fact in parse(compose(ledger, 2_000, rough_count).text).reports] == [
        "The cache is gone."
    ]


def test_what_was_said_to_pass_and_was_never_run_is_told_so() -> None:
    changed = (FileFact("src/a.py", "modified"),)
    run = CommandFact("make check", True, "ok")
    told = "  - No run shows this: All tests pass now."
    said = WorkFact("Mend it.", "e0", files=changed, closing=("All tests pass now.",), answered=True)
    other = WorkFact("Ship it.", "e1", ran=(run,), answered=True)
    assert told in section(Ledger(work=(said, other)))
    assert told not in section(Ledger(work=(msgspec.structs.replace(said, ran=(run,)), other)))
    assert told not in section(Ledger(work=(said,))), "nothing ran here at all: runs may not be shown"
    asked = msgspec.structs.replace(said, closing=("I added tests for the empty case.",))
    assert "No run shows" not in "\n".join(section(Ledger(work=(asked, other))))


def test_the_rows_of_a_table_are_told_without_its_head_and_bars() -> None:
    text = "Both runs agree.\n\n| run | rows | verdict |\n|-----|:----:|---|\n| `load_rates` | 12 | ok |\n| `load_fees` | 7 | late |"
    assert work_log.closing_words(text) == (
        "Both runs agree.",
        "`load_rates`: 12, ok; `load_fees`: 7, late",
    )


def test_the_items_of_a_list_are_told_together_behind_what_introduces_them() -> None:
    text = (
        "All tests pass now.\n\n### Dark theme\n- `thinkingOff` is dim gray\n- `thinkingLow` is plain blue\n\n"
        "### Light theme\n- `thinkingOff` is light gray\n- `thinkingLow` is dark blue\n"
    )
    assert work_log.closing_words(text) == (
        "All tests pass now.",
        "Dark theme: `thinkingOff` is dim gray; `thinkingLow` is plain blue",
        "Light theme: `thinkingOff` is light gray; `thinkingLow` is dark blue",
    )


def test_a_message_that_tells_nothing_does_not_close_the_work() -> None:
    told = entries(
        user("Stop the oven from resetting."),
        assistant("The second call of `resetState` clears the clock."),
        assistant("The problem is clear."),
    )
    [fact] = collect(told).work
    assert fact.closing == ("The second call of `resetState` clears the clock.",)


def test_a_word_to_go_on_belongs_to_the_request_before_it() -> None:
    told = entries(
        user("Stop the oven from resetting."),
        assistant("I found the call that does it."),
        user("continue"),
        assistant("The oven keeps its clock now."),
    )
    [fact] = collect(told).work
    assert fact.asked == "Stop the oven from resetting."
    assert fact.closing == ("The oven keeps its clock now.",)


def test_images_and_documents_leave_a_trace_at_the_request_that_they_came_with() -> None:
    shot = ToolResult("c1", (Text("taken"), Media("image", "image/png", data="QUJD")))
    sessions = entries(
        Message("user", (Text("Here is the sketch of the pier."), Media("image", "image/png", data="QUJD"))),
        assistant("A pier with four bollards."),
        Message("user", (Media("document", "application/pdf", url="file-id:f7", name="dues.pdf"),)),
        assistant("The dues are 4,250."),
        user("Look at the page now."),
        assistant(ToolCall("c1", "screenshot", {}), ToolCall("c2", "screenshot", {})),
        Message("tool", (shot, msgspec.structs.replace(shot, call_id="c2"))),
        assistant("It is blank."),
    )
    ledger = collect(sessions)
    assert [fact.media for fact in ledger.work] == [("[image]", "[PDF: dues.pdf]"), ("[image]", "[image]")]
    lines = section(ledger)
    assert (
        lines[lines.index("- Asked: Here is the sketch of the pier.") + 1]
        == "  - Seen: [image], [PDF: dues.pdf]"
    )
    assert lines[lines.index("- Asked: Look at the page now.") + 1] == "  - Seen: [image] x2"
    again = parse(compose(ledger, 2_000, rough_count).text)
    assert [fact.media for fact in again.work] == [fact.media for fact in ledger.work]
    assert [fact.media for fact in merge(collect(sessions[:7]), collect(sessions[7:])).work] == [
        fact.media for fact in ledger.work
    ]


def test_media_before_any_request_leave_a_trace() -> None:
    sessions = entries(
        Message("user", (Media("image", "image/png", data="QUJD"),)),
        assistant("A blue boat."),
        user("Which colour is it?"),
    )
    assert collect(sessions).work[0].media == ("[image]",)
    assert "  - Seen: [image]" in section(collect(sessions))


def test_what_a_tool_of_the_provider_found_is_told_under_its_request() -> None:
    def asked(berth: str) -> Message:
        call = Opaque("anthropic", "mcp_tool_use", {"id": berth, "name": "berths", "input": {"berth": berth}})
        told = {"tool_use_id": berth, "content": [{"type": "text", "text": f"{berth} is free\nfrom May"}]}
        return assistant(call, Opaque("anthropic", "mcp_tool_result", told), "One berth is free.")

    sessions = CleanEntries()(entries(user("Which berth is free?"), asked("KELP-44"), user("And the next?")))
    ledger = collect(sessions)
    assert ledger.work[0].found == ("berths: KELP-44 is free from May",)
    assert "  - Found: berths: KELP-44 is free from May" in section(ledger)
    assert parse(compose(ledger, 2_000, rough_count).text).work[0].found == ledger.work[0].found
    several = CleanEntries()(entries(user("Look at all."), *(asked(f"B-{n}") for n in range(9))))
    assert [text[8:11] for text in collect(several).work[0].found] == ["B-6", "B-7", "B-8"]
