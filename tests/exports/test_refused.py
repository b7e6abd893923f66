"""What real tools refused or dropped without a word, each with the smallest session that shows it."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.exports.moving import content, export, load
from tests.exports.sessions import START, boundary, call, chat_messages, entries, result
from tests.support.openers import open_in_claude_code, open_in_codex, open_in_opencode, open_in_pi, rows

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log.entries import Noted, Said
from foldline.core.log.log import chained
from foldline.core.log.log import said as chained_said
from foldline.core.log.messages import Message, Text, Thinking
from foldline.dialects import get

PATCH = "*** Begin Patch\n*** Add File: a.py\n+print('hi')\n*** End Patch"
CUSTOM = [
    {"role": "user", "content": "Add a file."},
    {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": PATCH},
    {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done."},
    {"type": "custom_tool_call", "call_id": "c2", "name": "exec", "input": "print(1)"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "1"},
    {"role": "assistant", "content": "Added."},
]
OPEN = [
    {"role": "user", "content": "Look at both."},
    {"role": "assistant", "content": [call(1, path="a.py"), call(2, path="b.py")]},
    {"role": "user", "content": [result(1, "one")]},
    {"role": "assistant", "content": [{"type": "text", "text": "And?"}, call(3, path="c.py")]},
    {"role": "user", "content": "Never mind the rest."},
    {"role": "assistant", "content": [call(4, path="d.py")]},
]


def quoting(messages=None):
    """A session whose boundary kept nothing but the user's first and fifth message."""
    path = entries(messages, title=None)
    ids = [entry.id for entry in path if isinstance(entry, Said)]
    folded = msgspec.structs.replace(boundary(None, START + 500), quoted=(ids[0], ids[4]))
    path.append(chained(folded, path[-1].id))
    return path


@pytest.mark.parametrize("model", ["gemini-3-flash", "claude-opus-4-5", "gpt-5.4", "somebody/else", None])
def test_codex_is_told_of_no_provider(model):
    raw, _ = export(entries(model=model), "codex")

    assert "model_provider" not in raw.decode()
    open_in_codex(raw)


def test_codex_goes_on_with_the_leading_messages_of_a_view():
    asked = [{"role": "developer", "content": "Use tabs."}, {"role": "developer", "content": "Be kind."}]
    path = entries([*asked, *CUSTOM], dialect="openai-responses", title=None)
    ids = [entry.id for entry in path if isinstance(entry, Said)]
    folded = msgspec.structs.replace(boundary(ids[5]), leading=(ids[0], ids[1]))
    history = open_in_codex(export([*path, chained(folded, path[-1].id)], "codex", view=True)[0])

    assert [item.get("role") for item in history][:3] == ["developer", "developer", "user"]
    assert "Use tabs." in json.dumps(history[0])


def test_codex_shortens_long_results_and_is_said_to():
    long = [*OPEN[:2], {"role": "user", "content": [result(1, "é" * 6_001), result(2, "x" * 12_000)]}]

    assert (
        "results over 12,000 bytes, which Codex may shorten (1)" in export(entries(long), "codex")[1].warnings
    )


def test_two_exports_of_one_session_share_no_id_in_opencode():
    path = entries(fold_at=6, keep_from=4)
    found = []
    for kept, view in ((path, False), (path, True), (path[:-1], False)):
        document = json.loads(export(kept, "opencode", view=view)[0])
        outcome = [one["id"] for m in document["messages"] for one in (m["info"], *m["parts"])]
        found.append({document["info"]["id"], *outcome})

    assert not found[0] & found[1]
    assert not found[0] & found[2]
    assert export(path, "opencode")[0] == export(path, "opencode")[0]


def test_raw_inputs_stand_in_the_parameter_that_opencode_reads():
    raw, outcome = export(entries(CUSTOM, dialect="openai-responses"), "opencode")
    parts = [part for message in open_in_opencode(raw) for part in message["parts"] if part["type"] == "tool"]

    assert [part["state"]["input"] for part in parts] == [{"patchText": PATCH}, {"input": "print(1)"}]
    assert "call arguments that are not a JSON object wrapped in one (2)" in outcome.warnings


def test_raw_inputs_are_json_in_chat_completions():
    raw, outcome = export(entries(CUSTOM, dialect="openai-responses"), "openai-chat")
    calls = [c for row in rows(raw) for c in row.get("tool_calls", ())]

    assert [json.loads(c["function"]["arguments"]) for c in calls] == [
        {"input": PATCH},
        {"input": "print(1)"},
    ]
    assert "call arguments that are not a JSON object wrapped in one (2)" in outcome.warnings


@pytest.mark.parametrize(("form", "open_it"), [("opencode", open_in_opencode), ("pi", open_in_pi)])
def test_an_image_that_is_no_base64_is_named_in_its_place(form, open_it):
    bad = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR/REDACTED/xy"},
    }
    said_so = [{"role": "user", "content": [{"type": "text", "text": "See:"}, bad]}]
    raw, outcome = export(entries(said_so), form)

    assert "iVBOR" not in raw.decode()
    assert "[image" in json.dumps(open_it(raw))
    assert "image left out (1)" in outcome.warnings


def test_a_reply_that_failed_half_way_is_not_one_that_opencode_drops():
    path = entries(OPEN[:2], stop="error")
    raw, outcome = export(path, "opencode")
    reply = open_in_opencode(raw)[1]

    assert "error" not in reply["info"]
    assert "marks of failed replies left out (OpenCode drops such replies) (1)" in outcome.warnings


@pytest.mark.parametrize("stop", ["aborted", "error"])
def test_replies_that_pi_does_not_send_are_named(stop):
    raw, outcome = export(entries(OPEN[:2], stop=stop), "pi")

    assert json.loads(raw.splitlines()[-1])["message"]["stopReason"] == stop
    assert "aborted or failed replies, which pi keeps but does not send (1)" in outcome.warnings


def test_raw_inputs_are_objects_in_a_list_for_the_ai_sdk():
    raw, outcome = export(entries(CUSTOM, dialect="openai-responses"), "ui-message")
    inputs = [part["input"] for row in rows(raw) for part in row["parts"] if part["type"].startswith("tool-")]

    assert inputs == [{"input": PATCH}, {"input": "print(1)"}]
    assert "call arguments that are not a JSON object wrapped in one (2)" in outcome.warnings


def test_times_rise_with_ids_in_opencode():
    path = entries(title=None)
    path[4] = msgspec.structs.replace(path[4], at=START - 500)
    raw, outcome = export(path, "opencode")

    open_in_opencode(raw)
    assert "times earlier than the previous message's moved up to it (1)" in outcome.warnings


@pytest.mark.parametrize("form", ["openai-chat", "openai-responses", "anthropic"])
def test_a_whole_list_has_a_result_for_every_call(form):
    raw, outcome = export(entries(OPEN), form)

    assert get(form).validate(rows(raw)) == []
    assert raw.decode().count(UNANSWERED) == 3
    assert "unanswered calls answered by a note (3)" in outcome.warnings


@pytest.mark.parametrize("view", [False, True])
def test_no_call_is_open_in_a_list_for_the_ai_sdk(view):
    raw, outcome = export(entries(OPEN), "ui-message", view=view)
    states = [p["state"] for row in rows(raw) for p in row["parts"] if p["type"].startswith("tool-")]
    notes = [p["errorText"] for row in rows(raw) for p in row["parts"] if p.get("state") == "output-error"]

    assert states == ["output-available", "output-error", "output-error", "output-error"]
    assert set(notes) == {UNANSWERED}
    assert view or "unanswered calls answered by a note (3)" in outcome.warnings
    assert get("ui-message").validate(rows(raw)) == []


def test_no_system_message_stands_in_a_list_for_the_ai_sdk():
    raw, outcome = export(entries(chat_messages(), dialect="openai-chat"), "ui-message")
    first, *rest = rows(raw)

    assert first == {"system": "Be brief.\n\nThe clock struck ten."}
    assert {row["role"] for row in rest} == {"user", "assistant"}
    assert "system messages joined into the system prompt (2)" in outcome.warnings
    assert load(raw).system == first["system"]


@pytest.mark.parametrize(
    ("form", "open_it"),
    [("claude-code", open_in_claude_code), ("opencode", open_in_opencode), ("pi", open_in_pi)],
)
def test_what_a_boundary_quotes_is_in_its_summary_elsewhere(form, open_it):
    raw, outcome = export(quoting(), form)
    context = json.dumps(open_it(raw))

    assert "Please mend the parser. Never touch the lock file." in context
    assert "Like this picture:" in context
    assert "I'll look." not in context
    assert "older messages quoted by a boundary are appended to its summary (2)" in outcome.warnings


def test_what_a_boundary_quotes_is_beside_it_in_codex():
    history = open_in_codex(export(quoting(), "codex")[0])

    assert [item["role"] for item in history] == ["user", "user", "user"]
    assert "Please mend the parser" in json.dumps(history[0])
    assert "Mend it." in json.dumps(history[2])


def test_pi_is_told_the_model_of_a_view_without_a_reply():
    path = entries()
    path = [*path[:-1], chained(boundary(None), path[-1].id)]
    raw, _ = export([*path, chained(Noted("", None, "title", {"title": "x"}), path[-1].id)], "pi", view=True)

    (outcome,) = [row for row in rows(raw) if row["type"] == "model_change"]
    assert (outcome["provider"], outcome["modelId"]) == ("anthropic", "claude-sonnet-4-5")
    open_in_pi(raw)


def test_claude_code_finds_a_result_for_every_call():
    raw, outcome = export(entries(OPEN), "claude-code")
    sent = open_in_claude_code(raw)
    calls = [block["id"] for message in sent for block in message["content"] if block["type"] == "tool_use"]
    notes = [
        part.call_id
        for _, part in content(load(raw))
        if getattr(part, "text", "") == UNANSWERED and hasattr(part, "call_id")
    ]

    assert calls == ["toolu_1", "toolu_2", "toolu_3", "toolu_4"]
    assert notes == ["toolu_2", "toolu_3", "toolu_4"]
    assert "unanswered calls answered by a note (3)" in outcome.warnings


def test_a_call_whose_result_comes_behind_a_boundary_is_answered_once():
    raw, outcome = export(entries(fold_at=6, keep_from=4), "claude-code")

    assert UNANSWERED not in raw.decode()
    assert not any("unanswered" in warning for warning in outcome.warnings)


# ---- thinking that the other tool leaves out by itself

TOLD = {
    "claude-code": "replies with thinking, which Claude Code keeps but may not send",
    "pi": "replies with thinking, which pi sends only to the model that wrote it",
    "openai-chat": "replies with reasoning in separate fields, which LangChain drops",
}


def after_questions(*replies: Message):
    """A question before each reply."""
    path, parent, key = [], None, ""
    for reply in replies:
        for message in (Message("user", (Text("Go on."),)), reply):
            entry = chained_said(message, parent=parent, said_key=key)
            path.append(entry)
            parent, key = entry.id, entry.said_key
    return path


def thought(signature: str | None) -> Message:
    return Message("assistant", (Thinking("Hm.", signature), Text("Done.")), model="claude-sonnet-4-5")


REASONED = get("openai-chat").decode({"role": "assistant", "content": "Done.", "reasoning_content": "Hm."})
PLAIN = Message("assistant", (Text("Done."),), model="claude-sonnet-4-5")


@pytest.mark.parametrize("form", TOLD)
def test_thinking_that_the_tool_leaves_out_is_counted_once_a_kind(form):
    thinking = REASONED if form == "openai-chat" else thought("c2ln")
    raw, outcome = export(after_questions(thinking, PLAIN, thinking), form)
    assert raw.count(b"Hm.") == 2
    assert [one for one in outcome.warnings if one.startswith("replies with")] == [f"{TOLD[form]} (2)"]


@pytest.mark.parametrize("form", TOLD)
def test_where_there_is_no_thinking_nothing_is_said(form):
    _, outcome = export(after_questions(PLAIN, PLAIN), form)
    assert not [one for one in outcome.warnings if "thinking" in one or "reasoning" in one]


def test_thinking_that_is_not_written_is_not_said_to_be_kept():
    raw, outcome = export(after_questions(thought(None)), "claude-code")
    assert b"Hm." not in raw
    assert [one for one in outcome.warnings if "thinking" in one] == ["unsigned thinking left out (1)"]
    assert msgspec.json.decode(raw.splitlines()[-1])["type"] == "assistant"
