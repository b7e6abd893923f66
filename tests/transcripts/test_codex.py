from __future__ import annotations

import json

from tests.transcripts.reading import facts, folds, lines, messages_in, records, texts, warnings

from foldline import dialects
from foldline.core.log.entries import Compacted
from foldline.core.log.messages import Media, Opaque, Usage
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem, MessageItem
from foldline.loading import from_records
from foldline.transcripts import sniff

AT = "2026-01-02T03:04:06.000Z"


def line(kind, **payload):
    return {"timestamp": AT, "type": kind, "payload": payload}


META = line(
    "session_meta",
    id="s",
    cwd="/repo",
    cli_version="0.119.0",
    base_instructions={"text": "You are a coding agent."},
)


def item(kind, **fields):
    return line("response_item", type=kind, **fields)


def user(text, role="user"):
    return item("message", role=role, content=[{"type": "input_text", "text": text}])


def answer(text, **fields):
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}], **fields)


def thought(sealed="sealed", **fields):
    return item("reasoning", summary=[], content=None, encrypted_content=sealed, **fields)


def call(key, name="shell", arguments='{"command":"ls"}'):
    return item("function_call", call_id=key, name=name, arguments=arguments)


def output(key, text):
    return item("function_call_output", call_id=key, output=text)


def counted(total, given=100, cached=60, out=12):
    last = {
        "input_tokens": given,
        "cached_input_tokens": cached,
        "output_tokens": out,
        "reasoning_output_tokens": 2,
        "total_tokens": given + out,
    }
    info = {
        "total_token_usage": {"total_tokens": total},
        "last_token_usage": last,
        "model_context_window": 258400,
    }
    return line("event_msg", type="token_count", info=info)


def context(**fields):
    return line("turn_context", cwd="/repo", model="m-1", effort="high", **fields)


def compacted(message="", **fields):
    return line("compacted", message=message, **fields)


def native(parsed):
    flat = []
    for record in messages_in(parsed):
        payload = json.loads(record.message.native.raw)
        flat += payload if isinstance(payload, list) else [payload]
    return flat


def valid(parsed):
    return dialects.get("openai-responses").validate(native(parsed)) == []


def test_the_items_of_a_reply_are_one_message():
    parsed = records(
        META,
        line("event_msg", type="task_started", model_context_window=258400),
        user("Be careful.", "developer"),
        user("# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>Use tabs.</INSTRUCTIONS>"),
        context(),
        user("List the files."),
        line("event_msg", type="user_message", message="List the files."),
        thought(),
        answer("Looking.", phase="commentary"),
        call("c1"),
        call("c2"),
        counted(112),
        output("c1", "a.py"),
        output("c2", "b.py"),
        answer("Two files."),
        counted(250, given=130, cached=100, out=8),
        counted(250, given=130, cached=100, out=8),
    )
    assert facts(parsed, "format") == [{"format": "codex", "dialect": "openai-responses"}]
    assert facts(parsed, "session") == [{"id": "s", "cwd": "/repo", "cli_version": "0.119.0"}]
    assert facts(parsed, "system") == [{"system": "You are a coding agent."}]
    assert facts(parsed, "window") == [{"window": 258400}]
    assert facts(parsed, "model") == [{"model": "m-1"}]
    assert facts(parsed, "thinking") == [{"thinking": "high"}]
    assert facts(parsed, "left_out") == [{"task_started": 1, "user_message": 1, "token_count again": 1}]
    assert texts(parsed) == [
        "developer: Be careful.",
        "user: # AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>Use tabs.</INSTRUCTIONS>",
        "user: List the files.",
        "assistant: Looking. | call c1 | call c2",
        "tool: result c1: a.py",
        "tool: result c2: b.py",
        "assistant: Two files.",
    ]
    assert [record.message.injected for record in messages_in(parsed)[:3]] == [False, True, False]
    reply = messages_in(parsed)[3]
    assert (reply.message.usage, reply.message.model, reply.message.stop) == (
        Usage(40, 60, 0, 12),
        "m-1",
        "tools",
    )
    assert (reply.key, reply.line, reply.at) == ("8", 8, 1767323046.0)
    assert [part.data["encrypted_content"] for part in reply.message.parts if isinstance(part, Opaque)] == [
        "sealed"
    ]
    assert messages_in(parsed)[6].message.usage == Usage(30, 100, 0, 8)
    assert valid(parsed)


def test_two_replies_in_a_row_are_told_apart_by_their_counts():
    parsed = records(META, user("a"), answer("b"), counted(1), answer("c"), counted(2))
    assert texts(parsed) == ["user: a", "assistant: b", "assistant: c"]


def test_custom_tools_images_and_failed_patches():
    patch = '{"output":"no such line","metadata":{"exit_code":1,"duration_seconds":0.0}}'
    pictures = [
        {"type": "input_text", "text": "See."},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
    ]
    parsed = records(
        META,
        item("message", role="user", content=pictures),
        item(
            "custom_tool_call",
            call_id="c1",
            name="apply_patch",
            input="*** Begin Patch",
            status="completed",
        ),
        item("custom_tool_call_output", call_id="c1", output=patch),
        call("c2"),
        output("c2", '{"metadata":{"exit_code":1}}'),
    )
    assert [part.data for part in messages_in(parsed)[0].message.parts if isinstance(part, Media)] == ["aGk="]
    assert messages_in(parsed)[1].message.calls[0].arguments == "*** Begin Patch"
    assert [
        record.message.results[0].is_error for record in messages_in(parsed) if record.message.results
    ] == [
        True,
        False,
    ]
    assert valid(parsed)


def test_the_old_form_without_a_wrapper_is_read():
    header = {"id": "s", "timestamp": AT, "instructions": "Use tabs.", "git": {"branch": "main"}}
    failed = {
        "type": "function_call_output",
        "call_id": "c1",
        "output": {"content": "boom", "success": False},
    }
    rows = [user("List."), answer("Looking."), call("c1")]
    raw = lines(header, {"record_type": "state"}, *(row["payload"] for row in rows), failed)
    parsed = records(raw)
    assert sniff(raw) == "codex"
    assert facts(parsed, "session") == [{"id": "s", "timestamp": AT, "git": {"branch": "main"}}]
    assert facts(parsed, "instructions") == [{"instructions": "Use tabs."}]
    assert facts(parsed, "left_out") == [{"state": 1}]
    assert texts(parsed) == ["user: List.", "assistant: Looking. | call c1", "tool: result c1: boom"]
    assert messages_in(parsed)[-1].message.results[0].is_error
    assert valid(parsed)


SEALED = {"type": "compaction", "encrypted_content": "sealed summary"}


def message(text, role="user", kind="input_text"):
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def test_an_encrypted_compaction_keeps_what_codex_kept():
    history = [
        message("first"), message("again"), message("Done.", "assistant", "output_text"),
        message("Be careful.", "developer"), message("again"), SEALED,
    ]  # fmt: skip
    parsed = records(
        META,
        user("Be careful.", "developer"),
        user("first"),
        answer("Done."),
        counted(112),
        user("again"),
        answer("More."),
        user("again"),
        compacted(replacement_history=history, window_id="w"),
        answer("On."),
    )
    fold = folds(parsed)[0]
    assert (fold.quoted, fold.first_kept, fold.tokens_before, fold.line) == (("3", "6", "8"), None, 112, 9)
    assert fold.data == {"replacement_history": history, "window_id": "w"}
    assert "encrypted" in fold.summary
    assert fold.summary.endswith("[Assistant, kept by Codex]: Done.")
    sealed = messages_in(parsed)[6]
    assert (sealed.key, sealed.line, sealed.message.role) == ("9.0", 9, "assistant")
    assert json.loads(sealed.message.native.raw) == SEALED
    assert valid(parsed)


def test_the_view_of_an_encrypted_compaction_holds_its_parts():
    history = [message("first"), SEALED]
    parsed = records(
        META,
        user("first"),
        answer("Done."),
        user("second"),
        compacted(replacement_history=history),
        answer("On."),
    )
    loaded = from_records(parsed, OFFLINE)
    boundary = next(entry for entry in loaded.entries if isinstance(entry, Compacted))
    assert boundary.receipt.origin == {"replacement_history": history}
    view = ViewState(loaded.entries, counter=OFFLINE).view()
    shown = [piece.entry.message.text if isinstance(piece, MessageItem) else piece.kind for piece in view]
    assert shown == ["checkpoint", "first", "", "On."]
    assert any(isinstance(piece, AddedItem) and "encrypted" in piece.message.text for piece in view)


def test_a_compaction_in_words_is_a_boundary_and_its_summary_is_not_said_twice():
    history = [message("first"), message("Another model started.\nSo far.")]
    parsed = records(META, user("first"), answer("b"), compacted("So far.", replacement_history=history))
    assert [(one.summary, one.quoted) for one in folds(parsed)] == [("So far.", ("2",))]


def test_a_compaction_without_a_list_keeps_the_newest_messages_of_the_user():
    long = "x" * 79_996
    parsed = records(META, user("oldest"), user(long), user("newest"), compacted("So far."))
    assert folds(parsed)[0].quoted == ("3", "4")


def test_a_compaction_without_anything_is_named():
    parsed = records(META, user("a"), compacted(replacement_history=[]))
    assert folds(parsed) == []
    assert facts(parsed, "boundary") == [{"message": "", "replacement_history": [], "tokens_before": None}]


def test_turns_that_were_rolled_back_are_left_out_and_counted():
    parsed = records(
        META,
        user("a"),
        answer("b"),
        user("wrong"),
        answer("too"),
        user("<environment_context>\n</environment_context>"),
        line("event_msg", type="thread_rolled_back", num_turns=1),
        user("c"),
    )
    assert texts(parsed) == ["user: a", "assistant: b", "user: c"]
    assert facts(parsed, "branches") == [{"branches": 1, "messages": 3}]
    assert facts(parsed, "rolled_back")[0]["num_turns"] == 1


def test_rolling_back_more_turns_than_there_are_takes_them_all():
    parsed = records(META, user("a"), line("event_msg", type="thread_rolled_back", num_turns=9), user("b"))
    assert texts(parsed) == ["user: b"]


def test_what_the_api_does_not_take_back_is_told_beside():
    search = {"action": {"type": "search", "query": "q"}, "status": "completed"}
    parsed = records(
        META,
        user("a"),
        item("reasoning", summary=[], content=None),
        item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}]),
        item("web_search_call", **search),
        item("ghost_snapshot", ghost_commit={"id": "g"}),
        answer("b"),
    )
    assert texts(parsed) == ["user: a", "assistant: b"]
    assert facts(parsed, "reasoning")[0]["summary"][0]["text"] == "Hm."
    assert facts(parsed, "web_search_call") == [{"type": "web_search_call", **search}]
    assert facts(parsed, "ghost_snapshot")[0]["ghost_commit"] == {"id": "g"}
    assert facts(parsed, "left_out") == [{"reasoning without words": 1}]
    assert valid(parsed)


def test_models_titles_errors_and_forks_are_told():
    parsed = records(
        META,
        line("session_meta", id="parent", cwd="/other"),
        context(),
        user("a"),
        line("turn_context", cwd="/repo/b", model="m-2", effort="low"),
        line("event_msg", type="thread_name_updated", thread_name="My try"),
        line("event_msg", type="error", message="quota"),
        line("event_msg", type="token_count", info={"last_token_usage": {"total_tokens": 17}}),
        line("novelty", x=1),
    )
    assert facts(parsed, "forked_from") == [{"id": "parent", "cwd": "/other"}]
    assert facts(parsed, "model") == [{"model": "m-1"}, {"model": "m-2"}]
    assert facts(parsed, "cwd") == [{"cwd": "/repo/b"}]
    assert facts(parsed, "title") == [{"title": "My try"}]
    assert facts(parsed, "error")[0]["message"] == "quota"
    assert facts(parsed, "usage") == [{"total_tokens": 17}]
    assert facts(parsed, "novelty") == [{"x": 1}]


def test_a_wrong_item_does_not_take_its_reply_with_it():
    parsed = records(
        META, user("a"), answer("b"), item("function_call", name="ls"), call("c1"), output("c1", "x")
    )
    assert texts(parsed) == ["user: a", "assistant: b | call c1", "tool: result c1: x"]
    assert [one.line for one in warnings(parsed)] == [4]


def recorded(given=100, cached=60, written=10, out=12):
    usage = {"input_tokens": given, "cached_input_tokens": cached, "cache_write_input_tokens": written,
             "output_tokens": out, "reasoning_output_tokens": 0, "total_tokens": given + out}  # fmt: skip
    return line(
        "token_usage_record",
        thread_id="t",
        turn_id="u",
        response_id="r",
        usage=usage,
        thread_token_usage=usage,
    )


def test_usage_stands_in_records_of_its_own_since_0_169():
    parsed = records(META, context(), user("Hello."), answer("Hi."), recorded(), counted(112),
            call("c1"), recorded(given=200), output("c1", "a"), answer("Done."), recorded(given=300), compacted("So far."))  # fmt: skip
    replies = [record.message for record in messages_in(parsed) if record.message.role == "assistant"]

    assert [reply.usage for reply in replies] == [
        Usage(30, 60, 10, 12),
        Usage(130, 60, 10, 12),
        Usage(230, 60, 10, 12),
    ]
    assert folds(parsed)[0].tokens_before == 312
    assert facts(parsed, "left_out") == [{"token_count again": 1}]


def test_what_codex_notes_beside_an_item_is_not_sent():
    noted = user("Hello.")
    noted["payload"]["internal_chat_message_metadata_passthrough"] = {"turn_id": "u"}
    parsed = records(META, noted, answer("Hi.", internal_chat_message_metadata_passthrough={"turn_id": "u"}))

    assert valid(parsed)
    assert not any("internal_chat_message_metadata_passthrough" in payload for payload in native(parsed))
