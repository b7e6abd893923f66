"""The effect of a later sentence on a rule: labelled pairs, and unclear ones that keep both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foldline.core.checkpoint.page import compose, parse
from foldline.core.ledger.facts import constraints
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data/constraint_changes.jsonl").read_text("utf-8").splitlines()
]


def held(*texts: str) -> tuple[ConstraintFact, ...]:
    entries = [Said(f"u{i}", None, Message("user", (Text(text),)), f"u{i}") for i, text in enumerate(texts)]
    return constraints.standing(entries)


def is_gone(pair: dict[str, str]) -> bool:
    stands = [fact.text for fact in held(pair["rule"], pair["later"])]
    return bool(held(pair["rule"])) and pair["rule"] not in stands


def test_there_are_sixty_pairs_of_every_kind() -> None:
    assert len(PAIRS) >= 60
    assert {pair["expected"] for pair in PAIRS} == {"lifted", "replaced", "kept", "both"}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["later"])
def test_no_rule_leaves_by_a_sentence_that_does_not_change_it(pair: dict[str, str]) -> None:
    if pair["expected"] in ("kept", "both"):
        assert not is_gone(pair)


def test_most_changes_are_seen() -> None:
    changed = [pair for pair in PAIRS if pair["expected"] in ("lifted", "replaced") and held(pair["rule"])]
    assert len(changed) >= 30
    assert sum(map(is_gone, changed)) >= 0.9 * len(changed)


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        ("Port 8080 must stay free for the proxy.", "Change of plan: use port 9090."),
        ("Never log passwords or tokens.", "You may now log tokens."),
        ("Never deploy to production on Fridays.", "You can now deploy to production."),
        ("Never deploy the billing service on Fridays.", "Actually, deploy the search service on Fridays."),
    ],
)
def test_doubt_keeps_both_and_marks_the_newer_as_later(rule: str, later: str) -> None:
    facts = held(rule, later)
    assert [(fact.text, fact.later) for fact in facts] == [(rule, False), (later, True)]
    text = compose(Ledger(constraints=facts), 1_000, len).text
    assert text.index(rule) < text.index(later)
    assert [(fact.text, fact.later) for fact in parse(text).constraints] == [(rule, False), (later, True)]


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        # reports, questions, tasks, conditions
        ("Never log customer emails.", "Customer emails no longer log on Safari, please debug."),
        ("Never log customer emails.", "We no longer log customer emails since the update."),
        ("Never log customer emails.", "+ Customer emails no longer get logged"),
        ("Never log customer emails.", "Actually the customer emails are logged twice, look into it."),
        ("Never log customer emails.", "You can log customer emails now, just this once."),
        ("Never log customer emails.", "If the audit is over you may log customer emails again."),
        ("Never log customer emails.", "Ignore the customer emails in the log for this bug."),
        ("Never log customer emails.", "Are you sure that you may now log customer emails?"),
        ("Never log passwords.", "Passwords are now logged in plain text, that's a bug."),
        ("Always run the tests before you commit.", "The tests no longer run before the commit hook."),
        ("Do not touch the database schema.", "The database schema is now documented in docs/schema.md."),
        ("Use tabs for indentation.", "The old files use spaces for indentation."),
        ("Use tabs for indentation.", "Convert the spaces in main.c to tabs."),
        ("Answer in German.", "Translate the error message into English."),
        ("Keep functions under 40 lines.", "This function is 60 lines now."),
        ("Only admins can see salaries.", "Now all users can see salaries, fix that."),
        ("Use npm, not yarn.", "yarn is installed now on the CI, use npm ci there."),
        ("Ask me before deleting files.", "Yes, you may delete that file now."),
        ("Never push to main.", "ok you can push now"),
        ("Refunds need my approval.", "Actually, the refund of Anna is approved, go ahead."),
        ("Dates must always be in UTC.", "The dates in the export are no longer in UTC, please look."),
        ("Never send emails to customers.", "Instead of an email, send the customers a letter."),
        ("Never deploy on Fridays.", "We deploy on Friday after all, because of the hotfix."),
        (
            "Invalid themes must never explode.",
            "16 - **Invalid Theme Handling**: Invalid themes no longer crash the",
        ),
        # what may mean less than the rule
        ("Never edit tides.toml.", "You may edit moorings.toml now."),
        ("Always run the formatter before pushing.", "You don't need to run the formatter today."),
        ("Always run the formatter before pushing.", "You don't need to run the spell checker anymore."),
        ("Always run the formatter and the tests before pushing.", "No need to run the formatter anymore."),
        ("Never push before running the tests.", "You may push now."),
        ("Don't merge into release.", "Merging into develop is fine from now on."),
        ("Don't merge into release.", "You may merge into release now if Ida agrees."),
    ],
)
def test_what_may_mean_less_than_the_rule_leaves_it(rule: str, later: str) -> None:
    assert [fact.text for fact in held(rule, later)][:1] == [rule]


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        ("Keep the line length under 100.", "Change of plan: line length 120."),
        ("Use port 8080, never 80.", "Change of plan: use port 9090."),
        ("Use tabs for indentation.", "New rule: spaces for indentation."),
        ("Use tabs for indentation.", "We use spaces now."),
        ("Answer in German.", "Switch to English."),
        ("Keep functions under 40 lines.", "Functions can be up to 60 lines from now on."),
        ("Ask me before deleting files.", "You needn't ask before deleting files any more."),
        ("Never push to main.", "You're allowed to push to main now."),
        ("Never push to main.", "I lift the ban on pushing to main."),
        ("Never push to main.", "The rule about main no longer applies."),
        ("No emojis.", "Emojis are ok now."),
        ("Refunds need my approval.", "Refunds don't need my approval anymore."),
        ("Always store dates in local time.", "Update: store dates in UTC."),
        ("Only deploy to eu-west-1.", "Deploy to us-east-1 instead of eu-west-1."),
        # in common words
        ("Never edit tides.toml.", "You may edit tides.toml now."),
        ("Always run the formatter before pushing.", "You don't need to run the formatter anymore."),
        ("Always run the formatter before pushing.", "The formatter is no longer required."),
        ("Always run the formatter after each change.", "Running the formatter is no longer necessary."),
        ("Don't merge into release.", "Merging into release is fine from now on."),
        ("Don't merge into release.", "Feel free to merge into release from now on."),
        ("Never rename v2.1/boats.", "You can rename v2.1/boats again."),
        ("Never edit tides.toml.", "tides.toml may be edited again."),
    ],
)
def test_a_rule_is_lifted_in_common_words(rule: str, later: str) -> None:
    assert is_gone({"rule": rule, "later": later})


# ---- what agrees with a ban leaves it


WAIVED = ("You don't have to {}.", "You don't need to {} any more.", "No need to {} any more.", "You no longer need to {}.", "You needn't {} any more.")  # fmt: skip
DEEDS = ("push to main", "delete the backups", "rename database columns", "run the integration tests")


@pytest.mark.parametrize("waiver", WAIVED)
@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize(
    "ban", ["Never {}.", "Please don't {}.", "You must not {}.", "From now on, do not {}, ever."]
)
def test_a_duty_that_is_waived_leaves_a_ban(ban: str, deed: str, waiver: str) -> None:
    rule, later = ban.format(deed), waiver.format(deed)
    assert held(rule)
    assert not is_gone({"rule": rule, "later": later})
    assert is_gone({"rule": f"Always {deed}.", "later": later})


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        ("Niemals direkt auf main pushen.", "Wir müssen nicht mehr direkt auf main pushen."),
        ("Niemals direkt auf main pushen.", "Du musst nicht mehr direkt auf main pushen."),
        ("Ne modifie jamais le dossier legacy.", "Plus besoin de modifier le dossier legacy."),
        ("No toques la carpeta legacy.", "Ya no hace falta tocar la carpeta legacy."),
        ("不要修改 config 目录。", "不用再修改 config 目录了。"),
        ("mainに直接プッシュしないでください。", "もうmainに直接プッシュする必要はありません。"),
        # something else instead of the banned thing
        ("Never push to main.", "Actually, push to the branch instead of main."),
        ("Never write to the production database.", "Actually write to the staging database instead of the production database."),
        ("Never write to the production database of the billing service.", "Actually, write to the staging database of the billing service instead of production."),
        ("Never force-push.", "Use rebase instead of merge and force-push."),
        ("Never merge to main.", "Always rebase on main."),
        ("Never merge to main.", "Never rebase on main."),
        # a task that is only postponed
        ("Never change the login page.", "Forget about the login page, let's do search first."),
        ("Never change the login page.", "Forget about the login page."),
    ],
)  # fmt: skip
def test_what_agrees_with_a_ban_leaves_it(rule: str, later: str) -> None:
    assert held(rule)
    assert not is_gone({"rule": rule, "later": later})


PAIRS_OF_A_SET = [
    ("tabs", "spaces"),
    ("npm", "pnpm"),
    ("single quotes", "double quotes"),
    ("MySQL", "Postgres"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS_OF_A_SET)
def test_one_of_a_set_ends_another_where_both_are_wanted(one: str, other: str) -> None:
    wanted, banned = f"Always use {one}.", f"Never use {one}."
    assert is_gone({"rule": wanted, "later": f"Always use {other}."})
    assert is_gone({"rule": banned, "later": f"Always use {one}."})
    assert is_gone({"rule": f"Use {one}, not {other}.", "later": f"Actually use {other}."})
    assert not is_gone({"rule": banned, "later": f"Always use {other}."})
    assert not is_gone({"rule": wanted, "later": f"Never use {other}."})


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        ("Never deploy without my approval.", "You no longer need my approval to deploy."),
        ("Don't use npm, use pnpm.", "Actually, use yarn instead of pnpm."),
        (
            "Never forget about the changelog: update it before each release.",
            "Forget the rule about the changelog.",
        ),
    ],
)
def test_what_a_ban_asks_for_beside_it_can_be_waived(rule: str, later: str) -> None:
    assert is_gone({"rule": rule, "later": later})


def test_the_history_says_what_ended_a_rule() -> None:
    said = [
        "Never push to main.",
        "Use tabs, not spaces.",
        "You may now push to main.",
        "Actually use spaces.",
    ]
    entries = [Said(f"u{i}", None, Message("user", (Text(text),)), "") for i, text in enumerate(said)]
    found = constraints.ConstraintHistory()
    found.read(entries)
    assert [fact.text for fact in found.standing] == said[2:]
    assert [(end.fact.text, end.by.entry, end.how) for end in found.ended] == [
        (said[0], "u2", "lifted"),
        (said[1], "u3", "replaced"),
    ]
