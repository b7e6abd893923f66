"""Small native UI messages that the tests of the dialect share."""

from __future__ import annotations

from typing import Any

PNG = "iVBORw0KGgo="
STEP = {"type": "step-start"}


def ui(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    natives = [say(part) if isinstance(part, str) else part for part in parts]
    return {"id": "m1", "role": role, "parts": natives, **more}


def say(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def reasoning(text: str = "hm", **own: Any) -> dict[str, Any]:
    return {"type": "reasoning", "text": text, **({"providerMetadata": {"anthropic": own}} if own else {})}


def tool(
    call_id: str = "c1", name: str = "read", state: str = "input-available", **more: Any
) -> dict[str, Any]:
    return {"type": f"tool-{name}", "toolCallId": call_id, "state": state, "input": {"path": "a.py"}, **more}


def answered(call_id: str = "c1", output: Any = "ok", **more: Any) -> dict[str, Any]:
    return tool(call_id, state="output-available", output=output, **more)


def failed(call_id: str = "c1", text: str = "no such file", **more: Any) -> dict[str, Any]:
    return tool(call_id, state="output-error", errorText=text, **more)


def file(url: str = f"data:image/png;base64,{PNG}", mime: str = "image/png", **more: Any) -> dict[str, Any]:
    return {"type": "file", "mediaType": mime, "url": url, **more}


UI = [
    ui("system", "You are a coder.", id="s1"),
    ui("user", "Fix a.py", file(filename="shot.png"), id="u1", metadata={"at": 1}),
    ui(
        "assistant",
        STEP,
        reasoning("Let me look.", signature="sig"),
        say("Reading.", state="done"),
        answered("c1", "x = 1", callProviderMetadata={"openai": {"itemId": "fc_1"}}),
        {
            "type": "dynamic-tool",
            "toolName": "bash",
            "toolCallId": "c2",
            "state": "output-error",
            "rawInput": "{broken",
            "errorText": "E: no such file",
        },
        {"type": "source-url", "sourceId": "s", "url": "https://example.com", "title": "Example"},
        {"type": "data-chart", "id": "d1", "data": {"x": [1, None]}},
        STEP,
        say("Done.", state="done"),
        id="a1",
    ),
    ui("user", "And b.py?", id="u2"),
    ui("assistant", STEP, tool("c3"), id="a2"),
]

V4 = [
    {"id": "1", "role": "user", "content": "Fix a.py", "createdAt": "2025-01-01T00:00:00Z"},
    {
        "id": "2",
        "role": "assistant",
        "content": "Done.",
        "reasoning": "hm",
        "toolInvocations": [
            {"state": "result", "step": 0, "toolCallId": "c1", "toolName": "read", "args": {"path": "a.py"}, "result": "x = 1"},
            {"state": "call", "step": 1, "toolCallId": "c2", "toolName": "ls", "args": {}},
        ],
    },
    {
        "id": "3",
        "role": "assistant",
        "content": "Done.",
        "toolInvocations": [],
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "reasoning": "hm", "details": [{"type": "text", "text": "hm", "signature": "sig"}]},
            {
                "type": "tool-invocation",
                "toolInvocation": {"state": "result", "toolCallId": "c3", "toolName": "ls", "args": {}, "result": {"n": 1}},
            },
            {"type": "file", "mimeType": "image/png", "data": PNG},
            {"type": "text", "text": "Done."},
        ],
    },
]  # fmt: skip
