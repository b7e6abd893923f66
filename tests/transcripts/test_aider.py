from __future__ import annotations

from tests.support.synthetic import SYNTHETIC
from tests.transcripts.reading import facts, messages_in, records, texts, warnings

from foldline.core.log.messages import Usage
from foldline.transcripts import read

HISTORY = SYNTHETIC / "aider.chat.history.md"
BEGINS = "# aider chat started at 2025-12-24 16:45:52\n\n"


def chat(*lines: str):
    return records((BEGINS + "\n".join(lines) + "\n").encode())


def test_a_history_of_two_chats():
    parsed = list(read(HISTORY))
    assert facts(parsed, "format") == [{"format": "aider", "dialect": "openai-chat"}]
    assert [told.split("\n")[0] for told in texts(parsed)] == [
        "user: Make the primary colour red.",
        "assistant: I will change `primary` alone.",
        "user: /run npm test",
        "user: Where is the hover colour set?",
        "assistant: In `src/theme.ts`, as `primaryHover`; it is derived from `primary`.",
        "user: /clear",
        "user: Now the dark mode.",
        "assistant: The dark palette already uses `primary`.",
    ]
    assert [record.message.injected for record in messages_in(parsed)] == [
        False,
        False,
        True,
        False,
        False,
        True,
        False,
        False,
    ]
    assert facts(parsed, "boundary") == [{"reason": "/clear"}, {"reason": "a new chat"}]
    assert not warnings(parsed)


def test_models_usage_and_times_are_kept():
    parsed = list(read(HISTORY))
    assert facts(parsed, "model") == [{"model": "claude-sonnet-4-5"}, {"model": "gpt-5.2"}]
    replies = [record for record in messages_in(parsed) if record.message.role == "assistant"]
    assert [one.message.usage for one in replies] == [
        Usage(2400, 1200, 0, 217),
        Usage(4100, 0, 0, 31),
        Usage(2000, 0, 0, 12),
    ]
    assert [one.message.model for one in replies] == ["claude-sonnet-4-5", "claude-sonnet-4-5", "gpt-5.2"]
    assert [one.at for one in replies] == [1766594752.0, 1766594752.0, 1766826131.0]
    assert replies[0].line == 12


def test_a_reply_keeps_its_code_its_headings_and_its_own_quotes():
    reply = messages_in(list(read(HISTORY)))[1].message.text
    assert "# primary\nexport const primary" in reply
    assert reply.endswith("> The value is read in one place.")


def test_a_reply_that_was_broken_off_inside_code_ends_at_the_next_request():
    parsed = chat("#### a  ", "", "```py", "#### not a request", "x = 1", "", "#### b  ", "", "ok")
    assert texts(parsed) == [
        "user: a",
        "assistant: ```py\n#### not a request\nx = 1",
        "user: b",
        "assistant: ok",
    ]


def test_what_aider_says_of_several_lines_is_no_reply():
    parsed = chat("> aider --message Fix it.  ", "## Plan", "Do this.", "", "#### Fix it.  ", "", "Fixed.")
    assert texts(parsed) == ["user: Fix it.", "assistant: Fixed."]
    assert {"text": "## Plan\nDo this."} in facts(parsed, "notice")


def test_a_history_whose_line_ends_an_editor_stripped():
    parsed = chat(
        "> Aider v0.86.1",
        "",
        "#### a",
        "#### b",
        "",
        "ok",
        "",
        "> Tokens: 12k sent, 1.5k received.",
        "",
        "#### c",
    )
    assert texts(parsed) == ["user: a\nb", "assistant: ok", "user: c"]
    assert messages_in(parsed)[1].message.usage == Usage(12000, 0, 0, 1500)


def test_paths_and_questions_are_requests_commands_are_none():
    parsed = chat(
        "#### /etc/hosts is wrong  ",
        "",
        "#### /add a.py  ",
        "",
        "#### /architect Plan it.  ",
        "",
        "#### <blank>  ",
    )
    assert texts(parsed) == ["user: /etc/hosts is wrong", "user: /add a.py", "user: Plan it."]
    assert [record.message.injected for record in messages_in(parsed)] == [False, True, False]


def test_a_history_without_its_beginning_and_with_bytes_that_are_no_text():
    parsed = records(b"> Tokens: 9 sent, 1 received.  \n\n#### caf\xe9  \n\nok\n")
    assert texts(parsed) == ["user: caf\ufffd", "assistant: ok"]
    assert [one.line for one in warnings(parsed)] == [3]
