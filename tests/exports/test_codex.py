from __future__ import annotations

import json

from tests.exports.moving import as_loaded, boundaries, export, load, prompts, replies, said
from tests.exports.sessions import chat, entries, talk
from tests.support.openers import open_in_codex, rows

from foldline.core.log.messages import Media, Text, Thinking, ToolResult
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState


def plain(loaded):
    """What was said, without what the Responses API has no place for: signed thoughts and error flags."""
    return [
        (role, (part.call_id, part.content) if isinstance(part, ToolResult) else part)
        for role, part in said(loaded)
        if not isinstance(part, Thinking)
    ]


def test_everything_comes_back():
    path = entries()
    raw, told = export(path, "codex")
    again = load(raw)
    open_in_codex(raw)

    assert again.format == "codex"
    assert again.warnings == []
    assert plain(again) == plain(as_loaded(path))
    assert [(r[0], r[1].total, r[2]) for r in replies(again)] == [
        (r[0], r[1].total, r[2]) for r in replies(as_loaded(path))
    ]
    assert prompts(again) == prompts(as_loaded(path))
    assert (again.title, again.model) == ("The parser", "claude-sonnet-4-5")
    assert set(told.warnings) == {
        "signed thinking left out (1)",
        "error flags of tool results left out (1)",
        "tokens written to a cache count as input (4)",
    }


def test_a_boundary_takes_the_place_of_all_before_it_but_what_it_kept():
    path = entries(fold_at=6, keep_from=4)
    raw, told = export(path, "codex")
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
    assert "items that a boundary kept are written twice, also in its history (2)" in told.warnings
    assert len([row for row in rows(raw) if row["type"] == "response_item"]) == 12


def test_a_boundary_that_kept_nothing_comes_back():
    path = entries(fold_at=4)
    again = load(export(path, "codex")[0])

    ((summary, _, at, count, kept),) = boundaries(again)
    assert (summary, at, count, kept) == ("## Goal\nMend it.", boundaries(as_loaded(path))[0][2], 7, None)


def test_the_folded_form_begins_with_the_checkpoint():
    path = entries(fold_at=6, keep_from=4)
    raw, _ = export(path, "codex", view=True)
    history = open_in_codex(raw)
    again = load(raw)

    assert "Mend it." in json.dumps(history[0])
    assert "Please mend the parser" not in raw.decode()
    assert again.entries[0].checkpoint == ViewState(path, counter=OFFLINE).boundary.checkpoint
    assert len([row for row in rows(raw) if row["payload"].get("type") == "token_count"]) == 1


def test_words_of_programs_are_the_developers_and_a_prompt_stays_the_agents_own():
    raw, told = export(entries(chat(), dialect="openai-chat", title=None), "codex")
    history = open_in_codex(raw)

    assert [item.get("role") for item in history if item["type"] == "message"] == [
        "user",
        "developer",
        "assistant",
    ]
    assert "Be brief." not in raw.decode()
    assert "system prompt left out (the agent brings its own) (1)" in told.warnings
    assert "messages of programs became the developer's (1)" in told.warnings


def test_images_are_carried():
    again = load(export(entries(), "codex")[0])

    assert sum(isinstance(part, Media) for _, part in said(again)) == 1
    assert [part.text for _, part in said(again) if isinstance(part, Text)][-2:] == [
        "And then commit.",
        talk()[-1]["content"],
    ]
