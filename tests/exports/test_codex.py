from __future__ import annotations

import json

from tests.exports.moving import as_loaded, boundaries, export, load, said
from tests.exports.sessions import chat, entries, talk
from tests.support.openers import open_in_codex, rows

from foldline.core.log.messages import Media, Text


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


def test_words_of_programs_are_the_developers_and_a_prompt_stays_the_agents_own():
    raw, result = export(entries(chat(), dialect="openai-chat", title=None), "codex")
    history = open_in_codex(raw)

    assert [item.get("role") for item in history if item["type"] == "message"] == [
        "user",
        "developer",
        "assistant",
    ]
    assert "Be brief." not in raw.decode()
    assert "system prompt left out (the agent adds its own) (1)" in result.warnings
    assert "messages of programs became the developer's (1)" in result.warnings


def test_images_are_carried():
    again = load(export(entries(), "codex")[0])

    assert sum(isinstance(part, Media) for _, part in said(again)) == 1
    assert [part.text for _, part in said(again) if isinstance(part, Text)][-2:] == [
        "And then commit.",
        talk()[-1]["content"],
    ]
