from __future__ import annotations

import pytest
from tests.exports.moving import boundaries, export, load, said
from tests.exports.sessions import START, chat, entries, talk
from tests.support.openers import open_in_opencode


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
    late = [*talk()[:2], {"role": "user", "content": "Never mind."}, talk()[2], talk()[3]]
    raw, result = export(entries(late), "opencode")
    context = open_in_opencode(raw)
    states = [
        part["state"]["status"] for message in context for part in message["parts"] if part["type"] == "tool"
    ]

    assert states == ["pending", "pending"]
    assert "late results became notes (2)" in result.warnings
    assert "[Late result of tool call toolu_1, quoted as data]\\ndef parse(): ..." in raw.decode()


def test_words_of_programs_are_synthetic_and_a_prompt_stays_the_agents_own():
    raw, result = export(entries(chat(), dialect="openai-chat", title=None), "opencode")
    context = open_in_opencode(raw)

    assert "Be brief." not in raw.decode()
    assert [p["text"] for m in context for p in m["parts"] if p.get("synthetic")] == ["The clock struck ten."]
    assert {
        "system prompt left out (the agent adds its own) (1)",
        "system messages became notes (1)",
    } <= set(result.warnings)
    assert [c.arguments for _, c in said(load(raw)) if hasattr(c, "arguments")][1] == {"input": "broken"}


def test_ids_rise_when_times_fall():
    path = entries([*talk(), *talk()[:1]], title=None)
    path[-1] = type(path[-1])(
        **{f: getattr(path[-1], f) for f in path[-1].__struct_fields__ if f != "at"}, at=START - 500
    )

    open_in_opencode(export(path, "opencode")[0])
