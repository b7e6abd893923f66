"""Codex, OpenCode and lists of messages: what each format does in its own way."""

from __future__ import annotations

import json

import pytest
from tests.exports.moving import as_loaded, boundaries, content, export, load
from tests.exports.sessions import START, anthropic_messages, chat_messages, entries
from tests.support.openers import open_in_codex, open_in_opencode, rows

from foldline.core.log.messages import Media, Text
from foldline.dialects import get, names


def test_a_boundary_takes_the_place_of_all_before_it_but_what_it_kept():
    path = entries(fold_at=6, keep_from=4)
    raw, result = export(path, "codex")
    history = open_in_codex(raw)
    text = json.dumps(history)

    assert "Mend it." in json.dumps(history[0])
    assert "Like this picture" in json.dumps(history[1])
    assert [item["type"] for item in history] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]
    assert "Please mend the parser" not in text
    assert "items kept by a boundary are written twice, also in its history (2)" in result.warnings
    assert len([row for row in rows(raw) if row["type"] == "response_item"]) == 12


def test_a_boundary_that_kept_nothing_comes_back():
    path = entries(fold_at=4)
    again = load(export(path, "codex")[0])

    ((summary, _, at, count, kept),) = boundaries(again)
    assert (summary, at, count, kept) == ("## Goal\nMend it.", boundaries(as_loaded(path))[0][2], 7, None)


def test_messages_of_programs_get_the_developer_role_in_codex():
    raw, result = export(entries(chat_messages(), dialect="openai-chat", title=None), "codex")
    history = open_in_codex(raw)

    assert [item.get("role") for item in history if item["type"] == "message"] == [
        "user",
        "developer",
        "assistant",
    ]
    assert "Be brief." not in raw.decode()
    assert "system prompt left out (the agent adds its own) (1)" in result.warnings
    assert "messages of programs became the developer's (1)" in result.warnings


def test_images_are_carried_to_codex():
    again = load(export(entries(), "codex")[0])

    assert sum(isinstance(part, Media) for _, part in content(again)) == 1
    assert [part.text for _, part in content(again) if isinstance(part, Text)][-2:] == [
        "And then commit.",
        anthropic_messages()[-1]["content"],
    ]


@pytest.mark.parametrize("keep_from", [None, 4])
def test_a_boundary_is_opencodes_own_and_names_what_it_kept(keep_from):
    path = entries(fold_at=6 if keep_from else 4, keep_from=keep_from, title=None)
    raw, _ = export(path, "opencode")
    context = open_in_opencode(raw)
    again = load(raw)

    assert context[0]["parts"][0]["type"] == "compaction"
    assert context[1]["info"]["summary"] is True
    assert [b[0] for b in boundaries(again)] == ["## Goal\nMend it."]
    kept = next(e for e in again.entries if hasattr(e, "checkpoint")).first_kept
    named = [e.message.text for e in again.entries if e.id == kept]
    assert named == (["Like this picture:"] if keep_from else [])


def test_a_call_without_a_result_stays_open_and_a_late_result_becomes_a_note():
    late = [
        *anthropic_messages()[:2],
        {"role": "user", "content": "Never mind."},
        anthropic_messages()[2],
        anthropic_messages()[3],
    ]
    raw, result = export(entries(late), "opencode")
    context = open_in_opencode(raw)
    states = [
        part["state"]["status"] for message in context for part in message["parts"] if part["type"] == "tool"
    ]

    assert states == ["pending", "pending"]
    assert "late results became notes (2)" in result.warnings
    assert "[Late result of tool call toolu_1, quoted as data]\\ndef parse(): ..." in raw.decode()


def test_messages_of_programs_are_synthetic_in_opencode():
    raw, result = export(entries(chat_messages(), dialect="openai-chat", title=None), "opencode")
    context = open_in_opencode(raw)

    assert "Be brief." not in raw.decode()
    assert [p["text"] for m in context for p in m["parts"] if p.get("synthetic")] == ["The clock struck ten."]
    assert {
        "system prompt left out (the agent adds its own) (1)",
        "system messages became notes (1)",
    } <= set(result.warnings)
    assert [c.arguments for _, c in content(load(raw)) if hasattr(c, "arguments")][1] == {"input": "broken"}


def test_ids_rise_when_times_fall():
    path = entries([*anthropic_messages(), *anthropic_messages()[:1]], title=None)
    path[-1] = type(path[-1])(
        **{f: getattr(path[-1], f) for f in path[-1].__struct_fields__ if f != "at"}, at=START - 500
    )

    open_in_opencode(export(path, "opencode")[0])


def messages(raw):
    return [json.loads(line) for line in raw.splitlines()]


def test_messages_of_the_dialect_are_as_received():
    raw, result = export(entries(), "anthropic")

    assert messages(raw) == anthropic_messages()
    assert (result.count, result.warnings, result.place) == (8, (), None)


def test_a_system_prompt_that_stands_apart_is_a_line_before_them():
    raw, result = export(entries(chat_messages()[:5], dialect="openai-chat", model=None), "anthropic")

    assert messages(raw)[0] == {"system": "Be brief."}
    assert "call arguments that are not a JSON object wrapped in one (1)" in result.warnings


def test_boundaries_have_no_form_in_a_list_but_a_checkpoint_has():
    path = entries(fold_at=6, keep_from=4)
    raw, result = export(path, "openai-chat")
    view, _ = export(path, "openai-chat", view=True)

    assert "boundaries left out (a list has no form for them) (1)" in result.warnings
    assert messages(raw)[0]["content"] == anthropic_messages()[0]["content"]
    assert "Mend it." in messages(view)[0]["content"]


@pytest.mark.parametrize("dialect", names())
def test_every_dialect_writes_a_valid_view(dialect):
    raw, _ = export(entries(fold_at=6, keep_from=4), dialect, view=True)

    assert get(dialect).validate(messages(raw)) == []
