"""A session of everything, written for each tool, opened there by its rules, and read again."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.exports.moving import as_loaded, boundaries, content, export, load, prompts, reload, replies
from tests.exports.sessions import START, anthropic_messages, boundary, chat_messages, entries
from tests.support.openers import OPEN, open_in_claude_code, open_in_pi, rows

from foldline.core.log.entries import Compacted, Lifted, Pinned, Pruned, Receipt, Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Media, Text, Thinking, ToolResult, Usage
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.errors import InputError

DESIGNS = ("klaude-code", "coop", "gencode")  # without a program to open them here
FORMS = {"pi": open_in_pi, "claude-code": open_in_claude_code}


@pytest.fixture(params=sorted(FORMS))
def form(request):
    return request.param


def same(again, path):
    assert again.warnings == []
    assert content(again) == content(as_loaded(path))
    assert replies(again) == replies(as_loaded(path))
    assert prompts(again) == prompts(as_loaded(path))
    assert boundaries(again) == boundaries(as_loaded(path))
    assert again.title == "The parser"


@pytest.mark.parametrize("keep_from", [None, 1, 4])
def test_a_boundary_is_the_tools_own_and_keeps_what_it_kept(form, keep_from):
    path = entries(fold_at=6 if keep_from else 4, keep_from=keep_from)
    raw, _ = export(path, form)
    context = FORMS[form](raw)

    same(load(raw), path)
    assert "Mend it." in json.dumps(context[0])
    assert ("Please mend the parser" in json.dumps(context)) is False
    assert ("It is `parse`" in json.dumps(context)) is (keep_from == 1)
    assert "Mended and committed" in json.dumps(context)


LIMITS = {  # what a form has no place for
    "codex": (Thinking, "flag"),
    "opencode": (Thinking, Media, "flag"),
    "klaude-code": (Thinking, Media, "flag"),
    "coop": (Thinking, Media, "flag"),
    "gencode": (Thinking, Media, "flag"),
}
SHOWN = Text("[Shown by the tool calls above]")  # where images of results stand in a message of their own


def result(loaded, form):
    """Who said what, as far as a form has a place for it."""
    limits = LIMITS.get(form, ())
    found = [(role, part) for role, part in content(loaded) if type(part) not in limits and part != SHOWN]
    if "flag" not in limits:
        return found
    return [(r, (p.call_id, p.text) if isinstance(p, ToolResult) else p) for r, p in found]


@pytest.mark.parametrize("tool", [*sorted(OPEN), *DESIGNS])
def test_everything_comes_back(tool, tmp_path):
    path = entries()
    raw, exported = export(path, tool)
    OPEN.get(tool, bool)(raw)
    again, original = reload(raw, exported, tmp_path), as_loaded(path)

    assert (again.format, again.warnings) == (tool, [])
    assert result(again, tool) == result(original, tool)
    assert [one for one in prompts(again) if one[0] != SHOWN.text] == prompts(original) or tool == "gencode"
    assert again.title == (None if tool == "coop" else "The parser")
    if tool in OPEN:
        assert [(r[0], r[1].total, *r[2:]) for r in replies(again)] == [
            (r[0], r[1].total, *r[2:]) for r in replies(original)
        ]
        assert again.model == "claude-sonnet-4-5"
        assert sorted(one for one in exported.warnings if "left out" in one) == LEFT_OUT.get(tool, [])


def test_what_was_cached_for_an_hour_comes_back_through_claude_code(tmp_path):
    usage = Usage(input=10, cache_read=1000, cache_write=50, output=20, cache_write_hour=30)
    raw, exported = export(entries(usage=usage), "claude-code")
    assert {found[1] for found in replies(reload(raw, exported, tmp_path))} == {usage}


LEFT_OUT = {"codex": ["error flags of tool results left out (1)", "signed thinking left out (1)"]}


@pytest.mark.parametrize("tool", [*sorted(OPEN), *DESIGNS])
def test_the_folded_form_begins_with_the_checkpoint(tool, tmp_path):
    path = entries(fold_at=6, keep_from=4)
    raw, exported = export(path, tool, view=True)
    context = OPEN.get(tool, bool)(raw)
    again = reload(raw, exported, tmp_path)
    first = next(entry for entry in again.entries if isinstance(entry, Compacted))

    assert "Please mend the parser" not in raw.decode()
    assert "Mend it." in first.checkpoint.text
    kept = as_loaded([entry for entry in path if isinstance(entry, Said)][4:])
    assert result(again, tool) == result(kept, tool)
    if tool in OPEN:
        assert "Mend it." in json.dumps(context[:2])
        assert first.checkpoint == ViewState(path, counter=OFFLINE).boundary.checkpoint
        assert "usage measured before the fold left out (1)" in exported.warnings
        assert [r[1].total for r in replies(again)] == [0, 7_042]


def test_it_comes_back_through_the_other_tool(form):
    path = entries(fold_at=6, keep_from=4)
    other = "pi" if form == "claude-code" else "claude-code"
    there = load(export(path, form)[0])

    same(load(export(there, other)[0]), path)


def test_a_folded_form_with_nothing_behind_it(form):
    path = entries(title=None)
    path.append(chained(boundary(None), path[-1].id))
    raw, result = export(path, form, view=True)

    assert result.count == 0
    FORMS[form](raw)
    assert load_alone(raw, form) == "## Goal\nMend it."


def load_alone(raw, form):
    """The summary in a file without a message, which no reader of sessions loads."""
    found = [row for row in rows(raw) if row.get("isCompactSummary") or row["type"] == "compaction"]
    text = found[0]["summary"] if form == "pi" else found[0]["message"]["content"]
    return text.partition("<summary>\n")[2].partition("\n</summary>")[0]


def test_the_same_session_gets_the_same_ids_and_another_one_others(form):
    path = entries()

    assert export(path, form)[0] == export(path, form)[0]
    assert export(path, form)[1].session != export(path[:-2], form)[1].session
    assert export(path, form)[1].session != export(path, form, view=True)[1].session


def test_messages_without_times_follow_one_another(form):
    path = entries(timed=False)
    first = export(path[:3], form)[0]
    path[1] = msgspec.structs.replace(path[1], at=START)
    raw, _ = export(path, form)

    FORMS[form](raw)
    FORMS[form](first)
    stamps = [row["timestamp"] for row in rows(raw) if "timestamp" in row]
    assert "2026-01-02T02:46:40.125Z" in stamps


def test_a_chat_of_the_other_dialect_is_carried_over_and_losses_are_named(form):
    path = entries(chat_messages(), dialect="openai-chat", model=None, title=None)
    raw, result = export(path, form)
    context = FORMS[form](raw)

    assert "system prompt left out (the agent adds its own) (1)" in result.warnings
    assert "call arguments that are not a JSON object wrapped in one (1)" in result.warnings
    assert any(warning.startswith("system messages became") for warning in result.warnings)
    assert "Be brief." not in raw.decode()
    assert "The clock struck ten." in json.dumps(context)
    assert [part.text for _, part in content(load(raw)) if hasattr(part, "call_id")] == ["a.py", "no JSON"]


def test_ids_that_anthropic_refuses_are_renamed_for_claude_code_alone():
    path = entries(chat_messages(), dialect="openai-chat", title=None)
    claude, result = export(path, "claude-code")
    pi, _ = export(path, "pi")

    assert [part.id for _, part in content(load(claude)) if hasattr(part, "arguments")] == [
        "call_1",
        "call_2",
    ]
    assert "call ids changed (2)" in result.warnings
    assert [part.id for _, part in content(load(pi)) if hasattr(part, "arguments")] == ["call|1", "call|2"]


def test_what_only_our_log_knows_is_named(form):
    path = entries(title=None)
    receipt = Receipt("manual")
    at = path[-1].id
    for make in (
        lambda: Pruned("", None, receipt),
        lambda: Pinned("", None, path[0].id, on=True, text="x"),
        lambda: boundary(None),
    ):
        path.append(chained(make(), at))
        at = path[-1].id
    path.append(chained(Lifted("", None, at, lifted=True), at))
    raw, result = export(path, form)

    assert {
        "prunes left out (the results are complete) (1)",
        "pins left out (1)",
        "undone boundaries left out (1)",
    } <= set(result.warnings)
    assert "Mend it." not in raw.decode()


def test_a_reply_that_failed_or_says_nothing(form):
    path = entries(
        [
            anthropic_messages()[0],
            {"role": "assistant", "content": []},
            *anthropic_messages()[:1],
            {"role": "assistant", "content": "Overloaded"},
        ],
        stop="error",
    )
    raw, result = export(path, form)
    FORMS[form](raw)

    assert replies(load(raw))[-1][3] == "error"
    assert ("empty messages left out (1)" in result.warnings) is (form == "claude-code")


def test_a_result_longer_than_any_and_half_an_emoji(form):
    messages = anthropic_messages()
    messages[2]["content"][0]["content"] = "x" * 300_000 + "half \ud83d"
    raw, _ = export(entries(messages), form)

    assert load(raw).warnings == []
    assert any(getattr(part, "text", "").endswith("half \ufffd") for _, part in content(load(raw)))


def test_a_message_is_held_by_no_writer(form):
    """What is written of a message is written before the next one is looked at."""
    from foldline.exports.base import Origin
    from foldline.exports.run import writer_of
    from foldline.exports.steps import StepSurvey, said_step

    path = entries()
    survey = StepSurvey()
    for entry in path:
        survey.note(entry)
    origin = Origin("s", START, START, "/project")
    pieces: list[bytes] = []
    writer = writer_of(form)(origin, origin.uuid(form, None), pieces.append)
    writer.begin()
    for entry in path:
        step = said_step(entry, survey, writer.losses)
        if step is not None:
            pieces.clear()
            writer.say(step)
            written = b"".join(pieces)
            assert entry.message.text.encode()[:20] in written.replace(b'\\"', b'"')


@pytest.mark.parametrize(("tool", "folder"), [("pi", "--a-b-c--"), ("klaude-code", "a-b-c")])
def test_a_session_is_put_where_the_transcripts_of_its_folder_are_looked_for(tool, folder):
    _, result = export(entries(), tool, cwd="/a/b:c/")

    assert f"/{folder}/" in result.place


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(
        InputError, match=r"unknown format 'word': choose one of jsonl, pi, claude-code, .*anthropic"
    ):
        export(entries(), "word")


# ---- turns, step by step

TOOL = {"type": "tool-bash", "state": "output-available"}
TURN = [
    {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "How many?"}]},
    {"id": "m2", "role": "assistant", "parts": [
        {"type": "step-start"},
        {"type": "text", "text": "I count."},
        {**TOOL, "toolCallId": "call_1", "input": {"command": "ls | wc -l"}, "output": "7"},
        {"type": "step-start"},
        {**TOOL, "toolCallId": "call_2", "input": {"command": "ls"}, "output": "a b c d e f g"},
        {"type": "step-start"},
        {"type": "text", "text": "Seven."},
    ]},
]  # fmt: skip


@pytest.mark.parametrize("tool", sorted(OPEN))
def test_a_turn_that_is_one_message_is_told_step_by_step(tool):
    raw, result = export(entries(TURN, dialect="ui-message", title=None), tool)
    OPEN[tool](raw)
    again = load(raw)
    shapes = [(role, type(part).__name__) for role, part in content(again)]

    assert shapes == [
        ("user", "Text"),
        ("assistant", "Text"),
        ("assistant", "ToolCall"),
        ("user", "ToolResult"),
        ("assistant", "ToolCall"),
        ("user", "ToolResult"),
        ("assistant", "Text"),
    ]
    assert [part.text for _, part in content(again) if hasattr(part, "text")] == [
        "How many?", "I count.", "7", "a b c d e f g", "Seven."
    ]  # fmt: skip
    assert [usage.total > 0 for _, usage, _, _ in replies(again)] == [False, False, True]
    assert not [warning for warning in result.warnings if "step-start" in warning]


@pytest.mark.parametrize("tool", sorted(OPEN))
def test_calls_that_stand_one_by_one_before_their_results(tool):
    items = [
        {"type": "message", "role": "user", "content": "Both."},
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'},
        {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": '{"path":"b"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "A"},
        {"type": "function_call_output", "call_id": "call_2", "output": "B"},
        {"type": "message", "role": "assistant", "content": "A and B."},
    ]
    raw, result = export(entries(items, dialect="openai-responses", title=None), tool)
    OPEN[tool](raw)

    assert [part.text for _, part in content(load(raw)) if hasattr(part, "call_id")] == ["A", "B"]
    assert not [warning for warning in result.warnings if "late" in warning]
