"""The lines that say what was asked, decided and done."""

from __future__ import annotations

from foldline.core.ledger.facts.kinds import (
    CommandFact,
    ConstraintFact,
    DecisionFact,
    ErrorFact,
    FileFact,
    Ledger,
    OpenFact,
    ReportFact,
    RequestFact,
    WorkFact,
)
from foldline.core.ledger.page import commands, decisions, goal
from foldline.core.ledger.page.page import compose, parse, says_already
from foldline.core.ledger.page.sheet import DECISIONS, Sheet
from foldline.core.measure.tokens import OFFLINE

SCRIPT = "cd /w && python3 - <<'PY'\nimport ast\nprint(1)\nPY"


def test_a_script_is_told_by_its_reason():
    fact = CommandFact(
        SCRIPT, True, "===== 29 passed in 0.3s =====", why="Check that every function has hints."
    )
    assert (
        commands.line_of(fact)
        == "- Check that every function has hints: `python3 - <<…` passed: 29 passed in 0.3s"
    )
    assert (
        commands.line_of(CommandFact("make test", True, "WantedBy=multi-user.target"))
        == "- `make test` passed"
    )
    assert commands.line_of(CommandFact("make test", False, "boom")) == "- `make test` failed: boom"


def test_a_call_that_was_stopped_says_what_the_user_said():
    fact = OpenFact("bash: load.py --base staging", "call", "unanswered", then="Stop, not staging!")
    text = compose(Ledger(open=(fact,)), 400, OFFLINE.count).text
    assert (
        "- A call was never answered: bash: load.py --base staging; the user then said: Stop, not staging!"
        in text
    )
    assert parse(text).open == (fact,)


def test_the_users_choices_come_first_and_stand_in_the_order_they_were_made():
    facts = (
        DecisionFact("We'll use a queue.", "e1"),
        DecisionFact("Put it into SQLite.", "e2", user=True),
        DecisionFact("Never push.", "e3", user=True),
    )
    small, large = Sheet(500, len), Sheet(1_000, len)
    ledger = Ledger(decisions=facts, constraints=(ConstraintFact("Never push.", "e3"),))
    decisions.write(small, ledger, most=24)
    decisions.write(large, ledger, most=500)
    assert small.parts[DECISIONS] == ["- Put it into SQLite."]
    assert large.parts[DECISIONS] == ["- We'll use a queue.", "- Put it into SQLite."]


def test_reports_stand_under_done_and_are_read_back():
    reports = (ReportFact("Invoice INV-20771 is on hold.", "e1"), ReportFact("It's in place now.", "e2"))
    errors = (ErrorFact("it broke", "make old", fixed=True),)
    ledger = Ledger(reports=reports, errors=errors)
    text = compose(ledger, 600, OFFLINE.count).text
    assert (
        "### Done\n- Invoice INV-20771 is on hold.\n- It's in place now.\n- Fixed since: it broke (from `make old`)"
        in text
    )
    again = parse(text)
    assert [fact.text for fact in again.reports] == [fact.text for fact in reports]
    assert [(fact.text, fact.source, fact.fixed) for fact in again.errors] == [("it broke", "make old", True)]


def test_files_that_were_changed_leave_less_room_for_reports():
    reports = tuple(
        ReportFact(f"The {word} importer is finished now.", word) for word in ("big", "old", "new")
    )
    without = compose(Ledger(reports=reports), 250, OFFLINE.count).text
    file = FileFact("a.py", "modified")
    beside = compose(Ledger(reports=reports, files=(file,)), 250, OFFLINE.count).text
    assert without.count("importer is finished") > beside.count("importer is finished")


def test_no_request_is_told_twice():
    rule = "Never push to main."
    requests = (
        RequestFact("Build the importer.", "e1"),
        RequestFact(f"Thanks. {rule} Mend the nightly job and its tests, then tell me what it was.", "e2"),
        RequestFact("Ship it on Friday.", "e3"),
    )
    assert goal.between(requests, [rule]) == [
        "- Asked before: Mend the nightly job and its tests, then tell me what it was."
    ]
    assert says_already(
        "Mend the nightly job and its tests, then tell me",
        "- Asked before: Mend the nightly job and its tests, then tell me what it was.",
    )
    assert not says_already("Mend the daily job.", "Mend the nightly job")


def test_what_the_assistant_meant_to_do_is_no_choice_once_the_request_is_answered():
    work = (WorkFact("Mend it.", "r1", answered=True), WorkFact("Ship it.", "r2"))
    facts = (
        DecisionFact("I'll keep the old icon.", "e1", work="r1"),
        DecisionFact("We went with Postgres.", "e2", work="r1"),
        DecisionFact("I'll use a queue instead.", "e3", work="r2"),
    )
    text = compose(Ledger(work=work, decisions=facts), 600, OFFLINE.count).text
    assert "old icon" not in text
    assert "- We went with Postgres.\n- I'll use a queue instead." in text


def test_what_failed_for_an_answered_request_blocks_nothing():
    failed = CommandFact("make lint", False, "3 errors", work="r1")
    ledger = Ledger(
        work=(
            WorkFact("Mend it.", "r1", answered=True, ran=(failed, CommandFact("make check", True, "ok"))),
            WorkFact("Ship it.", "r2", ran=(CommandFact("make ship", False, "no key"),)),
        ),
        commands=(failed, CommandFact("make ship", False, "no key", work="r2")),
        errors=(ErrorFact("no key", "make ship", work="r2"), ErrorFact("bad type", "make types", work="r1")),
    )
    blocked = compose(ledger, 600, OFFLINE.count).text.partition("### Blocked")[2].partition("##")[0]
    assert "`make ship` failed: no key" in blocked
    assert "make lint" not in blocked
    assert "bad type" not in blocked
