"""Instructions are recognised by their shape, in any message."""

from __future__ import annotations

import pytest
from tests.support.growth import grows_in_step

from foldline.core.carried.instructions import instructions_in, kind_of, on_compacting, ridden_in
from foldline.core.carried.summaries import summary_in
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Opaque, Role, Text, ToolResult

REMINDER = """<system-reminder>
Use the following context:
# claudeMd
These instructions OVERRIDE any default behaviour.

Contents of /mill/CLAUDE.md (project instructions, checked into the codebase):

- Paint in the morning.

Contents of /home/ann/.claude/CLAUDE.md (user's private global instructions for all projects):

- Speak plainly.
</system-reminder>"""
AGENTS = "# AGENTS.md instructions for /mill\n\n<INSTRUCTIONS>\n- Oil the wheel.\n</INSTRUCTIONS>"


def message(text: str, role: Role = "developer") -> Message:
    return Message(role, (Text(text),))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("<mode>\nread only", "<mode>\nread and write"),
        ("# Weather\nIt rains.", "# Weather\nIt is dry."),
        ("MODE: read-only", "MODE: full access"),
        ("It is 12:03 now, and 4 mills turn.", "It is 14:30 now, and 11 mills turn."),
        ("Quote in euro.", "Quote in euro."),
    ],
)
def test_messages_of_one_shape_are_of_a_kind(older: str, newer: str) -> None:
    assert kind_of(message(older)) == kind_of(message(newer)) is not None
    assert kind_of(message(older)) != kind_of(message(newer, "system"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Policy change: quote prices in euro only.", "Policy change: the mill is closed on Sundays."),
        ("You are a miller.", "You are a painter."),
        ('<skill name="paint">', '<skill name="mill">'),
    ],
)
def test_different_ones_are_of_two_kinds(one: str, other: str) -> None:
    assert kind_of(message(one)) != kind_of(message(other))


def test_tools_are_of_a_kind_with_their_equals_alone() -> None:
    def tools(name: str, item: str) -> Message:
        data = {"type": "additional_tools", "id": item, "tools": [{"name": name}]}
        return Message("developer", (Opaque("openai-responses", "additional_tools", data),))

    assert kind_of(tools("look", "a")) == kind_of(tools("look", "b"))
    assert kind_of(tools("look", "a")) != kind_of(tools("book", "a"))


@pytest.mark.parametrize(
    "other",
    [
        message("Go on.", "user"),
        message(" "),
        message("Conversation summary:\nThe mill is red.", "system"),
        Message("developer", (Opaque("openai-responses", "compaction_trigger", {}),)),
    ],
)
def test_what_says_nothing_that_holds_later_is_of_no_kind(other: Message) -> None:
    assert kind_of(other) is None


def test_a_reminder_with_instruction_files_is_one_block_of_all_of_them() -> None:
    text = f"{REMINDER}\nPaint the mill.\n{AGENTS}"
    assert list(instructions_in(text)) == [
        (("/mill/CLAUDE.md", "/home/ann/.claude/CLAUDE.md"), REMINDER),
        (("AGENTS.md for /mill",), AGENTS),
    ]


@pytest.mark.parametrize(
    "block",
    [
        "<user_instructions>\nSpeak plainly.\n</user_instructions>",
        "<INSTRUCTIONS>\nSpeak plainly.\n</INSTRUCTIONS>",
        "<repo_rules>\nSpeak plainly.\n</repo_rules>",
        "Contents of /mill/CLAUDE.md (project instructions, checked in):\n\n- Speak plainly.",
        "# CLAUDE.md\nThis file provides guidance to Claude Code when it works here.\n- Speak plainly.",
    ],
)
def test_each_form_is_taken_whole(block: str) -> None:
    ((_, found),) = instructions_in(block)
    assert found == block


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>The todo list is empty.</system-reminder>",
        "<environment_context><cwd>/mill</cwd></environment_context>",
        "Read the instructions, and never break the rules.",
        "Contents of the box (nails):\nnone",
    ],
)
def test_other_blocks_are_none(text: str) -> None:
    assert not list(instructions_in(text))


def test_only_users_messages_are_read_and_no_results_in_them() -> None:
    result = ToolResult("c", (Text(AGENTS),))
    entries = [
        Said("a", None, Message("tool", (result,)), ""),
        Said("b", None, Message("user", (result, Text("Go on."))), ""),
        Said("c", None, Message("assistant", (Text(AGENTS),)), ""),
        Said("d", None, Message("user", (Text("Go on."), Text(AGENTS))), ""),
    ]
    assert [(one.entry, one.text) for one in ridden_in(entries)] == [("d", AGENTS)]


@pytest.mark.parametrize(
    "piece",
    ["<system-reminder>", "<a_rules>", "<rules>a</rules>", "# a.md instructions for b\n<INSTRUCTIONS>\n", "Contents of (instructions\n"],
)  # fmt: skip
def test_a_hostile_message_takes_time_in_step_with_its_size(piece):
    def read(size):
        text = piece * (size // len(piece))
        return list(instructions_in(text)), summary_in(f"<summary>{text}")

    assert grows_in_step(read, 12_500)


# ---- what they say of summaries


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Compact instructions\n\nKeep SQL.\n\n# Style\nTabs.", "Keep SQL."),
        ("# Mill\n## COMPACT INSTRUCTIONS ##\nKeep SQL.\n### Most of all\nJoins.\n## Style\nTabs.", "Keep SQL.\n### Most of all\nJoins."),
        ("### Compact Instructions:\na\n# Style\nb\n# compact instructions\nc", "a\nc"),
        ("# Compact instructions\n```\n# no heading\n```\nx\n# End", "```\n# no heading\n```\nx"),
        ("<INSTRUCTIONS>\n# Compact instructions\nKeep SQL.\n</INSTRUCTIONS>\nHello", "Keep SQL."),
        ("```\n# Compact instructions\n```\nx", ""),
        ("See # Compact instructions\nx", ""),
        ("# Compact instructions for tea\nx", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_section_on_compacting_is_read(text: str, said: str) -> None:
    assert on_compacting(text) == said


def test_the_section_ends_where_the_next_file_begins() -> None:
    text = REMINDER.replace("- Paint in the morning.", "# Compact instructions\n- Name the colours.")
    assert on_compacting(text) == "- Name the colours."


def test_many_headings_take_time_in_step_with_their_number() -> None:
    made = "# Compact instructions #: ", "\n# x" * 5
    assert grows_in_step(lambda many: on_compacting("".join(one * many for one in made)), 1_000)
