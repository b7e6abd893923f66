"""A checkpoint in short: the receipt first, then the story, the state and the rules."""

import pytest
from tests.cli.calling import EXAMPLES

from foldline.cli.reports.gist import ITEMS, NEWEST, REQUESTS, RULES, in_short

PAGE = """## State
Newest request, being worked on: Mend the login page.
{checks}

## Rules
<user-rules>
- Never drop any data.
</user-rules>

## Conversation
{told}

Other names met: app_db

<read-files>
src/app.py
</read-files>"""


def page(requests=3, steps=4, checks=3):
    told = [
        line
        for number in range(requests)
        for line in (
            f"[User] Part {number}.\n# as in the plan",
            *(f"- edit step {step} of {number}" for step in range(steps)),
            f"[Assistant] Part {number} is done.\nAnd tested.",
        )
    ]
    states = [f"- `test {number}`: {number} passed" for number in range(checks)]
    return PAGE.format(told="\n".join(told), checks="\n".join(states))


def test_it_tells_story_state_and_rules_and_leaves_out_the_rest():
    parts = {part.heading: part.lines for part in in_short(page())}
    assert list(parts) == ["Conversation", "State", "Rules"]
    assert parts["Rules"] == ["- Never drop any data."]
    assert parts["Conversation"] == [
        *("[User] Part 0.", "[Assistant] Part 0 is done.", "[User] Part 1.", "[Assistant] Part 1 is done."),
        *(
            "[User] Part 2.",
            *(f"- edit step {step} of 2" for step in range(4)),
            "[Assistant] Part 2 is done.",
        ),
    ]
    assert parts["State"][0] == "Newest request, being worked on: Mend the login page."


def test_long_sections_say_how_many_lines_are_left_out():
    parts = {part.heading: part for part in in_short(page(requests=40, steps=30, checks=30))}
    story = parts["Conversation"]
    assert len(story.lines) == 2 * (REQUESTS - 1) + NEWEST
    assert (story.newest, story.left_out) == (True, 40 * 34 + 1 - len(story.lines))
    assert (len(parts["State"].lines), parts["State"].left_out) == (ITEMS, 31 - ITEMS)


def test_a_rule_is_never_clipped_and_any_other_line_is():
    rule = "- Never " + "ever " * 60 + "drop any data."
    text = f"## Constraints & Preferences\n{rule}\n\n## Next Steps\n- {'mend ' * 80}"
    rules, steps = sorted(in_short(text), key=lambda part: part.heading)
    assert rules.lines == [rule]
    assert steps.lines[0].endswith("…")
    assert RULES > ITEMS


@pytest.mark.parametrize("text", ["", "just a sentence", "## Verlauf\n- eins\n- zwei"])
def test_a_text_without_the_usual_headings_is_shown_from_its_beginning(text):
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [line for part in in_short(text) for line in part.lines] == lines


def test_compact_prints_the_receipt_first_and_a_short_checkpoint(foldline):
    done = foldline("compact", EXAMPLES / "session.jsonl", "--target", 9_000)
    whole = foldline("compact", EXAMPLES / "session.jsonl", "--target", 9_000, "--full")
    assert done.code == whole.code == 0
    for told in (done.out, whole.out):
        assert told.index(" receipt ") < told.index(" checkpoint") < told.index("Never touch anything under")
    assert done.out.count("Never touch anything under migrations/ without asking me first.") == 1
    assert "--full shows all of it" in done.out
    assert "--full" not in whole.out
    assert len(done.out.splitlines()) < len(whole.out.splitlines()) / 2


def test_with_an_output_the_receipt_alone_is_printed_unless_all_is_asked_for(foldline, tmp_path):
    asked = ("compact", EXAMPLES / "session.jsonl", "--target", 9_000, "-o", tmp_path / "out.jsonl")
    assert " checkpoint" not in foldline(*asked).out.split("dropped")[0].split("receipt")[0]
    assert "## Conversation" not in foldline(*asked).out
    assert "## Conversation" in foldline(*asked, "--full").out
