"""Standing constraints: their sources, and which replaces which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.core.ledger.facts import constraints
from foldline.core.ledger.facts.constraints import standing
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.table import bounded, collect, current, extended
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def user(*texts: str) -> list[Said]:
    return [Said(f"u{i}", None, Message("user", (Text(text),)), f"u{i}") for i, text in enumerate(texts)]


def held(*texts: str) -> list[str]:
    return [fact.text for fact in standing(user(*texts))]


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        (["Use spaces for indentation.", "Actually use tabs now."], ["Actually use tabs now."]),
        (["Always use spaces.", "Always use tabs."], ["Always use tabs."]),
        (["Never push to main.", "You may now push to main."], ["You may now push to main."]),
        (["Never push to main.", "You may push to main now."], ["You may push to main now."]),
        (["Never push to main.", "You can push to main again."], ["You can push to main again."]),
        (["Never push to main.", "Pushing to main is allowed now."], ["Pushing to main is allowed now."]),
        (["Never push to main.", "You can see main on the screen now."], ["Never push to main."]),
        (["Never push to main.", "Wait until you may push to main again."], ["Never push to main."]),
        (["Never push to main.", "I did not say you can push to main now."], ["Never push to main."]),
        (["Never push to main.", "I will tell you when you may push to main again."], ["Never push to main."]),
        (["Never write to the production database.", "The production database is fine now."], ["Never write to the production database."]),
        (["Never change the public API.", "Don't forget the thing about the API."], ["Never change the public API."]),
        (["Never change the public API.", "Do not ignore the rule about the public API."], ["Never change the public API.", "Do not ignore the rule about the public API."]),
        (["Answers must have 3 sentences at most.", "Forget the rule about 3 sentences; 5 sentences are fine."], ["Forget the rule about 3 sentences; 5 sentences are fine."]),
        (["Answers must have 3 sentences at most.", "Forget the rule about the tests."], ["Answers must have 3 sentences at most."]),
        (["Do not use Redis.", "We use Redis after all."], ["We use Redis after all."]),
        (["Never push to main.", "Never push to staging."], ["Never push to main.", "Never push to staging."]),
        (["Keep functions under 40 lines.", "Keep functions under 60 lines."], ["Keep functions under 60 lines."]),
        (["Answer in German from now on.", "Answer in English from now on."], ["Answer in English from now on."]),
        (["Always write comments in English.", "Always answer in German."], ["Always write comments in English.", "Always answer in German."]),
        (["Don't touch src/a.py.", "Don't touch src/b.py."], ["Don't touch src/a.py.", "Don't touch src/b.py."]),
        (["Use pnpm, not npm.", "Let's use yarn instead of pnpm."], ["Let's use yarn instead of pnpm."]),
        (["No emojis in comments.", "Forget about the emojis rule."], ["Forget about the emojis rule."]),
        (["Always add a docstring.", "Actually, can you look at the login page?"], ["Always add a docstring."]),
        (["Always run make lint.", "Actually, run it again."], ["Always run make lint."]),
        (["Never delete the database.", "It's fine to delete the files in tmp."], ["Never delete the database."]),
        (["From now on, run the unit tests before pushing.", "From now on, run the linter before pushing."],
         ["From now on, run the unit tests before pushing.", "From now on, run the linter before pushing."]),
        (["Always keep the retry limit of the billing-service below the documented value.", "Always keep the retry limit of the search-service below the documented value."],
         ["Always keep the retry limit of the billing-service below the documented value.", "Always keep the retry limit of the search-service below the documented value."]),
        (["Always use port 8443 for staging.", "Always use port 9443 for staging."], ["Always use port 9443 for staging."]),
        (["Never cancel order 17.", "Never cancel order 18."], ["Never cancel order 17.", "Never cancel order 18."]),
        (["Never push to main.", "You can now push."], ["Never push to main.", "You can now push."]),
        (["Never commit generated files.", "Always commit the generated files."], ["Always commit the generated files."]),
        (["Never log passwords.", "Never log passwords."], ["Never log passwords."]),
        (["All temperatures should be in Fahrenheit.", "All temperatures should be in Celsius."], ["All temperatures should be in Celsius."]),
        (["All public functions need type hints.", "All public functions need docstrings."], ["All public functions need type hints.", "All public functions need docstrings."]),
    ],
)  # fmt: skip
def test_the_newest_of_one_subject_stays(said: list[str], stays: list[str]) -> None:
    assert held(*said) == stays


@pytest.mark.parametrize("cut", range(1, 3))
def test_a_later_range_turns_around_what_an_earlier_one_holds(cut: int) -> None:
    entries = user(
        "Never push to main. Use spaces for indentation.",
        "fix it",
        "You may now push to main. Actually use tabs.",
    )
    old, new = entries[:cut], entries[cut:]
    merged = standing(new, standing(old))
    assert merged == standing(entries)
    assert [fact.text for fact in merged] == ["You may now push to main.", "Actually use tabs."]


TALK = "We talk about the data here. " * 420  # the words behind it are not in what is carried of a message
PIECES = st.sampled_from(
    [
        "Never push to main.", "You may now push to main.", "Use spaces for indentation.", "Actually use tabs.",
        "Change of plan: use port 9090.", "Always use port 8080.", "Fix the login.", "", TALK,
        TALK[:11_970] + "\nNever delete the customer data unless I tell you so in writing.", TALK * 3,
        "ERROR: push to main was refused by the hook", "Implement the following plan:\n# Plan\nNever use tabs.",
        "<system-reminder>Never use spaces.</system-reminder>", "<context>Never answer.</context>",
        "2026-11-28 10:00:00 INFO started\nNever stop the server.", "```\nAlways use tabs.\n```",
        "<command-name>/clear</command-name>", "Forget about main.",
    ]
)  # fmt: skip
PARTS = st.lists(PIECES, min_size=1, max_size=3)
SAID = st.lists(st.one_of(PARTS, PARTS.map(lambda parts: ["\n\n".join(parts)])), min_size=1, max_size=8)


@given(SAID, st.lists(st.integers(0, 8), max_size=3))
def test_rules_are_the_same_in_how_many_steps_a_session_is_folded(
    said: list[list[str]], cuts: list[int]
) -> None:
    entries = [
        Said(f"u{at}", None, Message("user", tuple(map(Text, parts))), f"u{at}")
        for at, parts in enumerate(said)
    ]
    whole, before, at = collect(entries).constraints, Ledger(), 0
    for cut in (*sorted(cuts), len(entries)):
        assert current(before, entries[at:]).constraints == whole
        before, at = bounded(extended(before, entries[at:cut])), max(at, cut)
    assert before.constraints == whole


def test_merging_again_changes_nothing() -> None:
    entries = user("Never push to main.", "Always run make lint.")
    facts = standing(entries)
    assert constraints.merge(facts, facts, collect(entries)) == facts


def test_a_pinned_constraint_is_never_superseded() -> None:
    pinned = ConstraintFact("Never push to main.", "p", pinned=True)
    later = user("You may now push to main.")
    merged = constraints.merge((pinned,), standing(later), collect(later))
    assert merged[0] == pinned


RULE = "Never delete the database."
CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. The conversation "
    "is summarized below:"
)


@pytest.mark.parametrize(
    "message",
    [
        Message("assistant", (Text(RULE),)),
        Message("system", (Text(RULE),)),
        Message("developer", (Text(RULE),)),
        Message("tool", (ToolResult("c", (Text(RULE),)),)),
        Message("user", (ToolResult("c", (Text(RULE),)),)),
        Message("user", (Text(RULE),), injected=True),
        Message("user", (Text(f"<system-reminder>{RULE}</system-reminder>"),)),
        Message(
            "user", (Text(f"# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\n{RULE}\n</INSTRUCTIONS>"),)
        ),
        Message("user", (Text(f"<environment_context>{RULE}</environment_context>"),)),
        Message("user", (Text(f"Stop hook feedback:\n{RULE}"),)),
        Message("user", (Text(f"{CONTINUED} {RULE}"),)),
        Message("user", (Text(f"Implement the following plan:\n\n# Plan\n\n- {RULE}"),)),
        Message("user", (Text(f"Look at this:\n```\n{RULE}\n```"),)),
        Message("user", (Text(f'The log says "{RULE}" again.'),)),
        Message("assistant", (ToolCall("c", "Write", {"content": RULE}),)),
    ],
)
def test_only_the_users_own_words_bind(message: Message) -> None:
    assert standing([Said("e", None, message, "e")]) == ()


def test_words_beside_a_reminder_bind_and_cite_their_entry() -> None:
    text = f"Please fix the tests. {RULE}\n<system-reminder>Always be brief.</system-reminder>\nUse tabs, not spaces."
    facts = standing([Said("e7", None, Message("user", (Text(text),)), "e7")])
    assert [(fact.text, fact.entry) for fact in facts] == [(RULE, "e7"), ("Use tabs, not spaces.", "e7")]


def test_only_the_ends_of_a_long_paste_are_read() -> None:
    filler = "word " * 20_000
    text = (
        f"Never push to main.\n{filler}\nNever log passwords in the middle.\n{filler}\nUse tabs, not spaces."
    )
    assert held(text) == ["Never push to main.", "Use tabs, not spaces."]


@pytest.mark.parametrize("at", range(0, 96, 5))
def test_no_half_sentence_of_a_long_message_is_a_rule(at: int) -> None:
    rule = "- Never delete the customer data on Sundays, and never tell them unless I have told you so in writing."
    for before, behind in ((20_000 - at, 12_000), (30_000, 5_000 - at)):
        text = f"{'We talk. ' * (before // 9)}{'x' * (before % 9)}\n{rule}\n{'And more follows. ' * 3_000}"[
            : before + len(rule) + behind
        ]
        assert set(held(text)) <= {rule.removeprefix("- ")}


def test_sentences_without_content_words_and_additions_replace_nothing() -> None:
    assert constraints.verdict("Always do it.", "Never do it.") == "none"
    assert constraints.verdict("Always do it.", "Always do it.") == "replaces"
    assert held("Never push to main.", "Never push to main or staging either.") == [
        "Never push to main.",
        "Never push to main or staging either.",
    ]


def test_a_constraint_that_came_without_its_request_is_merged_too() -> None:
    old = standing(user("Use spaces for indentation."))
    new = standing(user("Use tabs for indentation."))
    assert [fact.text for fact in constraints.merge(old, new, Ledger())] == ["Use tabs for indentation."]


def test_what_one_speaker_stated_another_does_not_end() -> None:
    said = [
        ("alma", "Never push to main."),
        ("birk", "You may push to main now."),
        ("alma", "You may push to main now."),
    ]
    entries = [
        Said(f"u{at}", None, Message("user", (Text(text),), name=name), "")
        for at, (name, text) in enumerate(said)
    ]
    assert [fact.told for fact in standing(entries[:2])] == ["alma: Never push to main."]
    assert [fact.told for fact in standing(entries)] == ["alma: You may push to main now."]


@pytest.mark.parametrize(
    "text",
    [
        "never " * 170_000,
        "no a " * 200_000,
        "x" * 1_000_000,
        "all " + "a," * 500_000,
        "(" * 500_000 + "a.\n" * 90_000,
        "ban is " * 150_000,
    ],
)
def test_a_megabyte_of_anything_is_read(text: str) -> None:
    assert len(held(text, f"Never push to main.\n\n{text}")) <= 2
