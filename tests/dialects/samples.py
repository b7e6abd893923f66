"""Small native lists that the tests of both dialects share."""

import json

PNG = "iVBORw0KGgo="


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def call(call_id="c1", name="read", arguments='{"path": "a.py"}', **more):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def calling(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def tool_answer(call_id="c1", content="ok", **more):
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def by_model(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def by_user(*blocks):
    return {"role": "user", "content": list(blocks)}


def text(value, **more):
    return {"type": "text", "text": value, **more}


def thinking(value="hm", signature="sig"):
    return {"type": "thinking", "thinking": value, "signature": signature}


def use(call_id="t1", name="read", arguments=None):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}}


def result(call_id="t1", content="ok", **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def image(**source):
    return {"type": "image", "source": source or {"type": "base64", "media_type": "image/png", "data": PNG}}


OPENAI = [
    {"role": "system", "content": "You are a coder."},
    {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
    {
        "role": "user",
        "name": "ann",
        "content": [
            {"type": "text", "text": "Fix a.py"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
        ],
    },
    {
        "role": "assistant",
        "content": "Reading.",
        "reasoning_content": "I should look first.",
        "tool_calls": [call("c1"), call("c2", "bash", "{broken", index=1)],
        "x_app_id": 7,
    },
    tool_answer("c2", [{"type": "text", "text": "E: no such file"}]),
    tool_answer("c1", "print('hi')\n", x_took_ms=3),
    {"role": "assistant", "content": None, "refusal": "I can't do that."},
    user(""),
    assistant(""),
]

ANTHROPIC = [
    user("Fix a.py"),
    by_model(
        thinking("Let me look."),
        text("Reading.", citations=None),
        use("t1", "read", {"path": "a.py", "b": [1, None]}),
        use("t2", "bash", {"command": "ls"}),
    ),
    by_user(
        result("t2", [text("a.py"), image()], cache_control={"type": "ephemeral"}),
        result("t1", "no such file", is_error=True),
        text("go on"),
    ),
    by_model(
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv1", "content": []},
        text("Done."),
    ),
    by_user(
        {
            "type": "document",
            "title": "notes",
            "source": {"type": "text", "media_type": "text/plain", "data": "Use tabs — always."},
        },
        image(type="url", url="https://example.com/a.png"),
        image(type="file", file_id="file_1"),
        text("Now?"),
    ),
]


def as_json(value):
    return json.dumps(value).encode()
