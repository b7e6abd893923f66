"""Replies of the three APIs in the forms of their documentation, whole and as the events of a stream."""

from __future__ import annotations

from typing import Any

ARGUMENTS = '{"path": "src/a.py"}'
TOOLS = {
    "openai-chat": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
    "openai-responses": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
    "anthropic": [{"name": "read", "input_schema": {"type": "object"}}],
}

_CHAT_USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 100},
}
CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5.2-2026",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I read it.",
                "reasoning_content": "Which file?",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "read", "arguments": ARGUMENTS},
                    },
                    {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                ],
            },
        }
    ],
    "usage": _CHAT_USAGE,
}


def _chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5.2-2026"}
    return {**base, "choices": choices, **more}


def _piece(index: int, call_id: str | None, name: str | None, text: str) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": text, **({"name": name} if name else {})}
    head = {"id": call_id, "type": "function"} if call_id else {}
    return {"tool_calls": [{"index": index, **head, "function": function}]}


CHAT_EVENTS: list[Any] = [
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"reasoning_content": "Which "}),
    _chunk({"reasoning_content": "file?"}),
    _chunk({"content": "I read"}),
    _chunk({"content": " it."}),
    _chunk(_piece(0, "call_1", "read", "")),
    _chunk(_piece(0, None, None, ARGUMENTS[:9])),
    _chunk(_piece(0, None, None, ARGUMENTS[9:])),
    _chunk(_piece(1, "call_2", "read", "{}")),
    _chunk({}, "tool_calls"),
    _chunk(usage=_CHAT_USAGE),
    "[DONE]",
]

RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "gpt-5.2-2026",
    "output": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Which file?"}],
            "encrypted_content": "c2VhbGVk",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I read it.", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": ARGUMENTS},
        {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "read", "arguments": "{}"},
    ],
    "usage": {
        "input_tokens": 120,
        "input_tokens_details": {"cached_tokens": 100},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 150,
    },
}


def _added(place: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


RESPONSE_EVENTS: list[Any] = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Which file?"},
    {"type": "response.output_text.delta", "output_index": 1, "delta": "I read"},
    {"type": "response.output_text.delta", "output_index": 1, "delta": " it."},
    _added(2, type="function_call", call_id="call_1", name="read", arguments=""),
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": ARGUMENTS},
    _added(3, type="function_call", call_id="call_2", name="read", arguments=""),
    {"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "{}"},
    {"type": "response.completed", "response": RESPONSE},
]

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5-20250929",
    "content": [
        {"type": "thinking", "thinking": "Which file?", "signature": "c2lnbmVk"},
        {"type": "text", "text": "I read it."},
        {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "src/a.py"}},
        {"type": "tool_use", "id": "call_2", "name": "read", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 20,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 0,
        "output_tokens": 30,
    },
}


def _delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


MESSAGE_EVENTS: list[Any] = [
    {
        "type": "message_start",
        "message": {
            **MESSAGE,
            "content": [],
            "stop_reason": None,
            "usage": {**MESSAGE["usage"], "output_tokens": 1},
        },
    },
    _start(0, type="thinking", thinking="", signature=""),
    _delta(0, type="thinking_delta", thinking="Which "),
    _delta(0, type="thinking_delta", thinking="file?"),
    _delta(0, type="signature_delta", signature="c2lnbmVk"),
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    _start(1, type="text", text=""),
    _delta(1, type="text_delta", text="I read"),
    _delta(1, type="text_delta", text=" it."),
    _start(2, type="tool_use", id="call_1", name="read", input={}),
    _delta(2, type="input_json_delta", partial_json=""),
    _delta(2, type="input_json_delta", partial_json=ARGUMENTS[:9]),
    _delta(2, type="input_json_delta", partial_json=ARGUMENTS[9:]),
    _start(3, type="tool_use", id="call_2", name="read", input={}),
    _delta(3, type="input_json_delta", partial_json="{}"),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 30},
    },
    {"type": "message_stop"},
]

WHOLE = {"openai-chat": CHAT, "openai-responses": RESPONSE, "anthropic": MESSAGE}
EVENTS = {"openai-chat": CHAT_EVENTS, "openai-responses": RESPONSE_EVENTS, "anthropic": MESSAGE_EVENTS}
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
