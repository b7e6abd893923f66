"""Conversations in which one message is malformed, by dialect and by what is wrong with it."""

# ruff: noqa: N802

from __future__ import annotations

from typing import Any


def U(t):
    return {"role": "user", "content": t}


def nest(n):
    v = {}
    for _ in range(n):
        v = {"a": v}
    return v


def nested_list(n):
    v = []
    for _ in range(n):
        v = [v]
    return v


DEEP = '{"a":' * 500 + "1" + "}" * 500
CASES: dict[tuple[str, str], list[Any]] = {}


def chat_call(**over):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    fn = over.pop("fn", {})
    call.update(over)
    call["function"] = {**call["function"], **fn}
    call = {k: v for k, v in call.items() if v != "DEL"}
    call["function"] = {k: v for k, v in call["function"].items() if v != "DEL"}
    return call


def chat(name, call, rid="c1", content="ok", **r):
    res = {"role": "tool", "tool_call_id": rid, "content": content, **r}
    res = {k: v for k, v in res.items() if v != "DEL"}
    CASES["openai-chat", name] = [
        U("do it"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        res,
        {"role": "assistant", "content": "done"},
        U("next"),
    ]


chat("args null", chat_call(fn={"arguments": None}))
chat("args object", chat_call(fn={"arguments": {"a": 1}}))
chat("args list", chat_call(fn={"arguments": [1]}))
chat("args number", chat_call(fn={"arguments": 5}))
chat("args missing", chat_call(fn={"arguments": "DEL"}))
chat("args bad json", chat_call(fn={"arguments": "{bad"}))
chat("args deep obj", chat_call(fn={"arguments": nest(500)}))
chat("args deep text", chat_call(fn={"arguments": DEEP}))
chat("id empty", chat_call(id=""), rid="")
chat("id null", chat_call(id=None), rid=None)
chat("id missing", chat_call(id="DEL"), rid="DEL")
chat("id number", chat_call(id=7), rid=7)
chat("name missing", chat_call(fn={"name": "DEL"}))
chat("name null", chat_call(fn={"name": None}))
chat("name empty", chat_call(fn={"name": ""}))
chat("type missing", chat_call(type="DEL"))
chat("type null", chat_call(type=None))
chat("function missing", {"id": "c1", "type": "function"})
chat("function null", {"id": "c1", "type": "function", "function": None})
chat("custom null", {"id": "c1", "type": "custom", "custom": {"name": "x", "input": None}})
chat("call null", None)
chat("content null", chat_call(), content=None)
chat("content missing", chat_call(), content="DEL")
chat("content number", chat_call(), content=5)
chat("content object", chat_call(), content={"a": 1})
chat("content bool", chat_call(), content=True)
chat("content deep obj", chat_call(), content=nest(500))
chat("content list", chat_call(), content=["a", "b"])
chat("content nested list", chat_call(), content=[[{"type": "text", "text": "x"}]])
chat("content unknown part", chat_call(), content=[{"type": "weird", "x": 1}])
chat("content image no data", chat_call(), content=[{"type": "image_url"}])
chat("content text null", chat_call(), content=[{"type": "text", "text": None}])
chat("content part no type", chat_call(), content=[{"text": "x"}])
chat("content empty list", chat_call(), content=[])


def chatmsg(name, *ms):
    CASES["openai-chat", name] = [U("do it"), *ms, {"role": "assistant", "content": "done"}, U("next")]


chatmsg(
    "two empty ids",
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [chat_call(id=""), chat_call(id="", fn={"name": "g"})],
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
def ant(name, use, res, *more):
    CASES["anthropic", name] = [
        U("do it"),
        {"role": "assistant", "content": [{"type": "text", "text": "x"}, use]},
        {"role": "user", "content": [res]},
        *more,
        {"role": "assistant", "content": "done"},
        U("next"),
    ]


def use(**o):
    return {
        k: v for k, v in {"type": "tool_use", "id": "t1", "name": "f", "input": {}, **o}.items() if v != "DEL"
    }


def res(**o):
    return {
        k: v
        for k, v in {"type": "tool_result", "tool_use_id": "t1", "content": "ok", **o}.items()
        if v != "DEL"
    }


for n, v in {
    "null": None,
    "text": "zz",
    "jsontext": '{"a":1}',
    "list": [1],
    "num": 3,
    "missing": "DEL",
    "deep": nest(500),
    "deeptext": DEEP,
}.items():
    ant("input " + n, use(input=v), res())
for n, v in {
    "empty": "",
    "null": None,
    "missing": "DEL",
    "number": 5,
    "odd": "a b/ü",
    "long": "a" * 200,
}.items():
    ant("id " + n, use(id=v), res(tool_use_id=v))
for n, v in {"empty": "", "null": None, "missing": "DEL", "odd": "my tool!", "long": "n" * 300}.items():
    ant("name " + n, use(name=v), res())
for n, v in {
    "null": None,
    "missing": "DEL",
    "num": 5,
    "dict": {"a": 1},
    "empty": "",
    "emptylist": [],
    "strs": ["a"],
    "nested": [[{"type": "text", "text": "x"}]],
    "weird": [{"type": "weird"}],
    "img nodata": [{"type": "image"}],
    "img empty": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}],
    "text null": [{"type": "text", "text": None}],
    "text empty": [{"type": "text", "text": ""}],
    "notype": [{"text": "x"}],
    "deep": nest(500),
    "thinking": [{"type": "thinking", "thinking": "x"}],
    "bool": True,
}.items():
    ant("content " + n, use(), res(content=v))
ant("is_error text", use(), res(is_error="true"))
ant("is_error null", use(), res(is_error=None))
ant(
    "error img",
    use(),
    res(is_error=True, content=[{"type": "image", "source": {"type": "url", "url": "https://x"}}]),
)
ant("error empty", use(), res(is_error=True, content=""))
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


# responses
def rsp(name, call, out, *more):
    CASES["openai-responses", name] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do"}]},
        call,
        out,
        *more,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        {"type": "message", "role": "user", "content": "next"},
    ]


def fc(**o):
    return {
        k: v
        for k, v in {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", **o}.items()
        if v != "DEL"
    }


def fo(**o):
    return {
        k: v
        for k, v in {"type": "function_call_output", "call_id": "c1", "output": "ok", **o}.items()
        if v != "DEL"
    }


for n, v in {
    "null": None,
    "obj": {"a": 1},
    "list": [1],
    "num": 5,
    "missing": "DEL",
    "bad": "{bad",
    "deep": nest(500),
    "deeptext": DEEP,
}.items():
    rsp("args " + n, fc(arguments=v), fo())
for n, v in {"empty": "", "null": None, "missing": "DEL", "number": 5}.items():
    rsp("id " + n, fc(call_id=v), fo(call_id=v))
for n, v in {"empty": "", "null": None, "missing": "DEL", "odd": "a b"}.items():
    rsp("name " + n, fc(name=v), fo())
for n, v in {
    "null": None,
    "missing": "DEL",
    "num": 5,
    "dict": {"a": 1},
    "empty": "",
    "emptylist": [],
    "strs": ["a"],
    "nested": [[{"type": "input_text", "text": "x"}]],
    "weird": [{"type": "weird"}],
    "img": [{"type": "input_image"}],
    "textnull": [{"type": "input_text", "text": None}],
    "outtext": [{"type": "output_text", "text": "x"}],
    "notype": [{"text": "x"}],
    "deep": nest(500),
}.items():
    rsp("output " + n, fc(), fo(output=v))
rsp(
    "custom null",
    {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": None},
    {"type": "custom_tool_call_output", "call_id": "c1", "output": None},
)
rsp(
    "shell null",
    {"type": "shell_call", "call_id": "c1", "action": None},
    {"type": "shell_call_output", "call_id": "c1", "output": None},
)
rsp(
    "local null",
    {"type": "local_shell_call", "call_id": "c1", "action": None},
    {"type": "local_shell_call_output", "call_id": "c1", "output": None},
)
rsp(
    "patch null",
    {"type": "apply_patch_call", "call_id": "c1", "operation": None},
    {"type": "apply_patch_call_output", "call_id": "c1", "output": None},
)
rsp(
    "computer null",
    {"type": "computer_call", "call_id": "c1", "action": None},
    {"type": "computer_call_output", "call_id": "c1", "output": None},
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
    return {
        k: v
        for k, v in {
            "type": "tool-f",
            "toolCallId": "c1",
            "state": "output-available",
            "input": {},
            "output": "ok",
            **o,
        }.items()
        if v != "DEL"
    }


for n, v in {"null": None, "text": "zz", "list": [1], "missing": "DEL", "deep": nest(500)}.items():
    ui("input " + n, tp(input=v))
for n, v in {"empty": "", "null": None, "missing": "DEL", "num": 5}.items():
    ui("id " + n, tp(toolCallId=v))
for n, v in {
    "null": None,
    "missing": "DEL",
    "num": 5,
    "deep": nest(500),
    "emptylist": [],
    "nested": [[1]],
    "img": {"type": "content", "value": [{"type": "media"}]},
}.items():
    ui("output " + n, tp(output=v))
ui("name empty", tp(type="tool-"))
ui("dynamic no name", tp(type="dynamic-tool"))
ui("dynamic null name", tp(type="dynamic-tool", toolName=None))
ui("state missing", tp(state="DEL"))
ui("state weird", tp(state="weird"))
ui("errtext missing", tp(state="output-error", output="DEL"))
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
