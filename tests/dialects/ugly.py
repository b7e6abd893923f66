"""Conversations in which one message is malformed, by dialect and by what is wrong with it."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false

# ruff: noqa: N802, A002

from __future__ import annotations

from typing import Any


def U(t):
    return {"role": "user", "content": t}


def nest(n):
    v = {}
    for _ in range(n):
        v = {"a": v}
    return v


DEEP = '{"a":' * 500 + "1" + "}" * 500
GONE: Any = object()  # a field that is not there
ODD: dict[str, Any] = {
    "null": None,
    "missing": GONE,
    "number": 5,
    "dict": {"a": 1},
    "list": [1],
    "texts": ["a"],
    "empty": "",
    "empty list": [],
    "nested": [["x"]],
    "untyped": [{"text": "x"}],
    "unknown": [{"type": "weird", "x": 1}],
    "bad json": "{bad",
    "odd letters": "a b/ü",
    "true": True,
    "deep": nest(500),
    "deep text": DEEP,
}
CASES: dict[tuple[str, str], list[Any]] = {}


def held(**fields):
    return {key: value for key, value in fields.items() if value is not GONE}


def every(dialect, said, *fields):
    """Put each odd value in each of the fields of what `said` makes."""
    for field in fields:
        for name, value in ODD.items():
            CASES[dialect, f"{field} {name}"] = said(**{field: value})


def chat_call(id="c1", name="f", args="{}"):
    return held(id=id, type="function", function=held(name=name, arguments=args))


def chat(call=None, content="ok", **fields):
    result = held(role="tool", tool_call_id=fields.get("id", "c1"), content=content)
    calls = [call or chat_call(**fields)]
    return [
        U("do it"),
        {"role": "assistant", "content": None, "tool_calls": calls},
        result,
        {"role": "assistant", "content": "done"},
        U("next"),
    ]


every("openai-chat", chat, "args", "id", "name", "content")
for wrong, value in {
    "type missing": {**chat_call(), "type": None},
    "function missing": {"id": "c1", "type": "function"},
    "function null": {"id": "c1", "type": "function", "function": None},
    "custom null": {"id": "c1", "type": "custom", "custom": {"name": "x", "input": None}},
    "call text": "x",
}.items():
    CASES["openai-chat", wrong] = chat(value)
for part in ({"type": "image_url"}, {"type": "text", "text": None}):
    CASES["openai-chat", f"content {part['type']}"] = chat(content=[part])


def chatmsg(name, *ms):
    CASES["openai-chat", name] = [U("do it"), *ms, {"role": "assistant", "content": "done"}, U("next")]


chatmsg(
    "two empty ids",
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [chat_call(id=""), chat_call(id="", name="g")],
    },
    {"role": "tool", "tool_call_id": "", "content": "a"},
    {"role": "tool", "tool_call_id": "", "content": "b"},
)
chatmsg(
    "empty ids in two steps",
    *[
        m
        for _ in range(2)
        for m in (
            {"role": "assistant", "content": None, "tool_calls": [chat_call(id="")]},
            {"role": "tool", "tool_call_id": "", "content": "a"},
        )
    ],
)
chatmsg("tool_calls null", {"role": "assistant", "content": "x", "tool_calls": None})
chatmsg("tool_calls empty", {"role": "assistant", "content": "x", "tool_calls": []})
chatmsg(
    "tool_calls dict",
    {"role": "assistant", "content": "x", "tool_calls": chat_call()},
    {"role": "tool", "tool_call_id": "c1", "content": "a"},
)
chatmsg("tool_calls str", {"role": "assistant", "content": "x", "tool_calls": "zzz"})
chatmsg("assistant content null", {"role": "assistant", "content": None})
chatmsg("user null", {"role": "user", "content": None})
chatmsg("user empty text part", {"role": "user", "content": [{"type": "text", "text": ""}]})
chatmsg("user empty list", {"role": "user", "content": []})
chatmsg(
    "user image no data",
    {"role": "user", "content": [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "hi"}]},
)
chatmsg("user image empty", {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]})
chatmsg(
    "user audio odd",
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "ogg"}}]},
)
chatmsg("user file empty", {"role": "user", "content": [{"type": "file", "file": {}}]})
chatmsg("user str parts", {"role": "user", "content": ["a", None, 5]})
chatmsg("user with tool_calls", {"role": "user", "content": "x", "tool_calls": [chat_call()]})
chatmsg("user empty name", {"role": "user", "content": "x", "name": ""})
chatmsg("user null name", {"role": "user", "content": "x", "name": None})
chatmsg(
    "fc null args",
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": None}},
    {"role": "function", "name": "f", "content": "r"},
)
chatmsg(
    "fc no name",
    {"role": "assistant", "content": None, "function_call": {"arguments": "{}"}},
    {"role": "function", "name": "", "content": "r"},
)
chatmsg("fc list", {"role": "assistant", "content": "", "function_call": []})
chatmsg("system null", {"role": "system", "content": None})
chatmsg("refusal number", {"role": "assistant", "content": None, "refusal": 5})


# anthropic
def use(**o):
    return held(**{"type": "tool_use", "id": "t1", "name": "f", "input": {}, **o})


def res(**o):
    return held(**{"type": "tool_result", "tool_use_id": "t1", "content": "ok", **o})


def ant(id="t1", name="f", args=GONE, content="ok", **more):
    return [
        U("do it"),
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "x"},
                use(id=id, name=name, input=args),
            ],
        },
        {"role": "user", "content": [res(tool_use_id=id, content=content, **more)]},
        {"role": "assistant", "content": "done"},
        U("next"),
    ]


every("anthropic", ant, "args", "id", "name", "content", "is_error")
CASES["anthropic", "long"] = ant(id="a" * 200, name="n" * 300)
for part in (
    {"type": "image"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
    {"type": "text", "text": None},
    {"type": "thinking", "thinking": "x"},
):
    CASES["anthropic", f"content {part}"] = ant(content=[part])
LINKED = {"type": "image", "source": {"type": "url", "url": "https://x"}}
CASES["anthropic", "error image"] = ant(is_error=True, content=[LINKED])
CASES["anthropic", "error empty"] = ant(is_error=True, content="")
CASES["anthropic", "split results"] = [
    U("do"),
    {"role": "assistant", "content": [use(id="a"), use(id="b")]},
    {"role": "user", "content": [res(tool_use_id="a")]},
    {"role": "user", "content": [res(tool_use_id="b")]},
    {"role": "assistant", "content": "done"},
    U("n"),
]
CASES["anthropic", "split results text between"] = [
    U("do"),
    {"role": "assistant", "content": [use(id="a"), use(id="b")]},
    {"role": "user", "content": [res(tool_use_id="a"), {"type": "text", "text": "note"}]},
    {"role": "user", "content": [res(tool_use_id="b")]},
    {"role": "assistant", "content": "done"},
    U("n"),
]
CASES["anthropic", "text before result"] = [
    U("do"),
    {"role": "assistant", "content": [use(id="a")]},
    {"role": "user", "content": [{"type": "text", "text": "note"}, res(tool_use_id="a")]},
    {"role": "assistant", "content": "done"},
    U("n"),
]
CASES["anthropic", "two empty ids"] = [
    U("do"),
    {"role": "assistant", "content": [use(id=""), use(id="", name="g")]},
    {"role": "user", "content": [res(tool_use_id=""), res(tool_use_id="", content="2")]},
    {"role": "assistant", "content": "done"},
    U("n"),
]
CASES["anthropic", "empty ids twice"] = [
    U("do"),
    *[
        m
        for _ in range(2)
        for m in (
            {"role": "assistant", "content": [use(id="")]},
            {"role": "user", "content": [res(tool_use_id="")]},
        )
    ],
    {"role": "assistant", "content": "done"},
    U("n"),
]


def antm(name, *ms):
    CASES["anthropic", name] = [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
                {"type": "text", "text": "q"},
            ],
        },
        *ms,
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        U("next"),
    ]


antm("assistant null", {"role": "assistant", "content": None})
antm("assistant empty str", {"role": "assistant", "content": ""})
antm("assistant space str", {"role": "assistant", "content": "  "})
antm("assistant empty text", {"role": "assistant", "content": [{"type": "text", "text": ""}]})
antm(
    "thinking no sig",
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "x"}]},
)
antm(
    "thinking null",
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": None, "signature": None}, {"type": "text", "text": "x"}],
    },
)
antm(
    "redacted empty",
    {"role": "assistant", "content": [{"type": "redacted_thinking"}, {"type": "text", "text": "x"}]},
)
antm(
    "thinking only",
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
)
antm(
    "user thinking",
    {
        "role": "user",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "x"}],
    },
)
antm("user strs", {"role": "user", "content": ["a", None]})
antm("user empty", {"role": "user", "content": ""})
antm("user image none", {"role": "user", "content": [{"type": "image"}]})
antm(
    "user image badtype",
    {
        "role": "user",
        "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "aGk="}}
        ],
    },
)
antm("doc none", {"role": "user", "content": [{"type": "document"}]})
antm("user tool_use", {"role": "user", "content": [use()]})
antm("assistant result", {"role": "assistant", "content": [res(), {"type": "text", "text": "x"}]})


# bedrock converse
def conv(id="t1", name="f", args=GONE, content=({"text": "ok"},), status=GONE):
    use = held(toolUseId=id, name=name, input=args)
    told = held(toolUseId=id, content=list(content) if isinstance(content, tuple) else content, status=status)
    return [
        U([{"text": "do it"}]),
        {"role": "assistant", "content": [{"text": "x"}, {"toolUse": use}]},
        U([{"toolResult": told}]),
        {"role": "assistant", "content": [{"text": "done"}]},
        U([{"text": "next"}]),
    ]


every("bedrock-converse", conv, "args", "id", "name", "content", "status")
CASES["bedrock-converse", "two empty ids"] = [
    U([{"text": "do it"}]),
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "", "name": name}} for name in "fg"]},
    U([{"toolResult": {"toolUseId": "", "content": [{"text": text}]}} for text in "ab"]),
    {"role": "assistant", "content": [{"text": "done"}]},
    U([{"text": "next"}]),
]
for wrong, blocks in {
    "null": None,
    "string": "hi",
    "empty": [],
    "blank": [{"text": " "}],
    "text null": [{"text": None}],
    "strings": ["a", None],
    "typed": [{"type": "text", "text": "x"}],
    "image none": [{"image": {}}],
    "image tiff": [{"image": {"format": "tiff", "source": {"bytes": "aGk="}}}],
    "image empty": [{"image": {"format": "png", "source": {"bytes": ""}}}],
    "document unnamed": [{"document": {"format": "pdf", "source": {"bytes": "aGk="}}}],
    "document badly named": [{"document": {"format": "pdf", "name": "a/b.pdf", "source": {"bytes": "aGk="}}}],
    "use": [{"toolUse": {"toolUseId": "u", "name": "f", "input": {}}}],
    "cache point": [{"cachePoint": {"type": "default"}}],
}.items():
    for role in ("user", "assistant"):
        if (role, wrong) != ("assistant", "use"):
            CASES["bedrock-converse", f"{role} {wrong}"] = [
                U([{"text": "do it"}]),
                {"role": role, "content": blocks},
                {"role": "assistant", "content": [{"text": "done"}]},
                U([{"text": "next"}]),
            ]
for wrong, held_ in {
    "none": {},
    "text null": {"reasoningText": {"text": None}},
    "only": {"reasoningText": {"text": "a"}},
}.items():
    CASES["bedrock-converse", f"reasoning {wrong}"] = [
        U([{"text": "do it"}]),
        {"role": "assistant", "content": [{"reasoningContent": held_}]},
        U([{"text": "next"}]),
    ]


# responses
def fc(**o):
    return held(**{"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", **o})


def fo(**o):
    return held(**{"type": "function_call_output", "call_id": "c1", "output": "ok", **o})


def rsp(id="c1", name="f", args="{}", content="ok", pair=None):
    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do"}]},
        *(pair or (fc(call_id=id, name=name, arguments=args), fo(call_id=id, output=content))),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        {"type": "message", "role": "user", "content": "next"},
    ]


every("openai-responses", rsp, "args", "id", "name", "content")
for part in (
    {"type": "input_image"},
    {"type": "input_text", "text": None},
    {"type": "output_text", "text": "x"},
):
    CASES["openai-responses", f"content {part['type']}"] = rsp(content=[part])
for kind, key in {
    "custom_tool_call": "input",
    "shell_call": "action",
    "local_shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}.items():
    asked = {"type": kind, "call_id": "c1", key: None, **({"name": "f"} if key == "input" else {})}
    CASES["openai-responses", f"{kind} null"] = rsp(
        pair=(asked, {"type": f"{kind}_output", "call_id": "c1", "output": None})
    )


def rm(name, *ms):
    CASES["openai-responses", name] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do"}]},
        *ms,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        {"type": "message", "role": "user", "content": "next"},
    ]


rm("reasoning null", {"type": "reasoning", "summary": None, "id": "r1"})
rm("reasoning str", {"type": "reasoning", "id": "r", "summary": ["x"]})
rm("content null", {"type": "message", "role": "assistant", "content": None})
rm("content empty", {"type": "message", "role": "assistant", "content": ""})
rm("content emptylist", {"type": "message", "role": "user", "content": []})
rm(
    "img none",
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_image"}, {"type": "input_text", "text": "x"}],
    },
)
rm("strs", {"type": "message", "role": "user", "content": ["a"]})
rm("text empty", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ""}]})
rm("text null", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": None}]})
rm("two empty ids", fc(call_id=""), fc(call_id="", name="g"), fo(call_id=""), fo(call_id="", output="b"))


# ui
def ui(name, part, *more):
    CASES["ui-message", name] = [
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "do"}]},
        {
            "id": "m2",
            "role": "assistant",
            "parts": [{"type": "step-start"}, part, {"type": "text", "text": "done"}],
        },
        *more,
        {"id": "m3", "role": "user", "parts": [{"type": "text", "text": "next"}]},
    ]


def tp(**o):
    part = {"type": "tool-f", "toolCallId": "c1", "state": "output-available", "input": {}, "output": "ok"}
    return held(**{**part, **o})


for key in ("input", "output", "toolCallId"):
    for wrong, value in ODD.items():
        ui(f"{key} {wrong}", tp(**{key: value}))
ui("output image", tp(output={"type": "content", "value": [{"type": "media"}]}))
ui("name empty", tp(type="tool-"))
ui("dynamic no name", tp(type="dynamic-tool"))
ui("dynamic null name", tp(type="dynamic-tool", toolName=None))
ui("state missing", tp(state=GONE))
ui("state weird", tp(state="weird"))
ui("errtext missing", tp(state="output-error", output=GONE))
ui("text null", {"type": "text", "text": None})
ui("text empty", {"type": "text", "text": ""})
ui("file no url", {"type": "file", "mediaType": "image/png"})
ui("file null", {"type": "file", "mediaType": None, "url": None})
ui("reasoning null", {"type": "reasoning", "text": None})
ui("part null", None)
ui("part str", "x")
ui("part notype", {"text": "x"})
CASES["ui-message", "parts null"] = [
    {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "do"}]},
    {"id": "m2", "role": "assistant", "parts": None},
    {"id": "m3", "role": "user", "parts": [{"type": "text", "text": "n"}]},
]
CASES["ui-message", "parts empty"] = [
    {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "do"}]},
    {"id": "m2", "role": "assistant", "parts": []},
    {"id": "m3", "role": "user", "parts": [{"type": "text", "text": "n"}]},
]
CASES["ui-message", "id missing"] = [
    {"role": "user", "parts": [{"type": "text", "text": "do"}]},
    {"id": None, "role": "assistant", "parts": [{"type": "text", "text": "d"}]},
    {"id": "", "role": "user", "parts": [{"type": "text", "text": "n"}]},
]


# gemini
def contents(name, *said):
    CASES["gemini", name] = [
        {"role": "user", "parts": [{"text": "do it"}]},
        *said,
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"text": "next"}]},
    ]


def function(*, args=GONE, id="c1", name="f", response=GONE, signature=GONE, parts=GONE):
    call = held(functionCall=held(id=id, name=name, args=args), thoughtSignature=signature)
    told = {"functionResponse": held(id=id, name=name, response=response, parts=parts)}
    return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [told]}]


for key in ("args", "id", "name", "response", "signature", "parts"):
    for wrong, value in ODD.items():
        contents(f"{key} {wrong}", *function(**{"response": {"output": "ok"}, key: value}))
for wrong, part in {
    "text null": {"text": None},
    "text number": {"text": 5},
    "text empty": {"text": ""},
    "signature alone": {"thoughtSignature": "c2ln"},
    "no kind": {},
    "unknown kind": {"hologram": {"a": 1}},
    "call null": {"functionCall": None},
    "call text": {"functionCall": "x"},
    "result of the model": {"functionResponse": {"name": "f", "response": {}}},
    "file empty": {"fileData": {}},
    "data null": {"inlineData": {"mimeType": "image/png", "data": None}},
    "part null": None,
    "part text": "x",
}.items():
    contents(wrong, {"role": "model", "parts": [part, {"text": "ok"}]})
for wrong, value in ODD.items():
    contents(f"content {wrong}", held(role="model", parts=value))
contents(
    "two kinds",
    {"role": "model", "parts": [{"text": "x", "functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
)
contents(
    "role odd", {"role": "tool", "parts": [{"text": "x"}]}, {"role": "assistant", "parts": [{"text": "y"}]}
)
contents("call of the user", {"role": "user", "parts": [{"functionCall": {"name": "f"}}]})
