"""Conversations in which one message is malformed, by dialect and by what is wrong with it."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false

# ruff: noqa: A002

from __future__ import annotations

from typing import Any

from tests.dialects.samples import assistant, text, thinking, user


def nest(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


ABSENT: Any = object()  # removes a field
ODD: dict[str, Any] = {
    "null": None,
    "missing": ABSENT,
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
    "deep text": '{"a":' * 500 + "1" + "}" * 500,
}
CASES: dict[tuple[str, str], list[Any]] = {}


def present(**fields):
    return {key: value for key, value in fields.items() if value is not ABSENT}


def every(dialect, conversation, *fields):
    """Put each odd value in each of the fields of a conversation."""
    for field in fields:
        for name, value in ODD.items():
            CASES[dialect, f"{field} {name}"] = conversation(**{field: value})


# ---- OpenAI chat


def chat_call(id="c1", name="f", args="{}"):
    return present(id=id, type="function", function=present(name=name, arguments=args))


def chat_calls(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def chat_result(content, id=""):
    return {"role": "tool", "tool_call_id": id, "content": content}


def chat(call=None, content="ok", **fields):
    result = present(role="tool", tool_call_id=fields.get("id", "c1"), content=content)
    return [user("do it"), chat_calls(call or chat_call(**fields)), result, assistant("done"), user("next")]


every("openai-chat", chat, "args", "id", "name", "content")
for wrong, value in {
    "type missing": {**chat_call(), "type": None},
    "function missing": {"id": "c1", "type": "function"},
    "function null": {"id": "c1", "type": "function", "function": None},
    "custom null": {"id": "c1", "type": "custom", "custom": {"name": "x", "input": None}},
    "call text": "x",
}.items():
    CASES["openai-chat", wrong] = chat(value)
for part in ({"type": "image_url"}, text(None)):
    CASES["openai-chat", f"content {part['type']}"] = chat(content=[part])


def chat_case(name, *messages):
    CASES["openai-chat", name] = [user("do it"), *messages, assistant("done"), user("next")]


def function_call(name, call, result):
    called = {"role": "assistant", "content": None, "function_call": call}
    chat_case(name, called, {"role": "function", "name": result, "content": "r"})


chat_case(
    "two empty ids",
    chat_calls(chat_call(id=""), chat_call(id="", name="g")),
    chat_result("a"),
    chat_result("b"),
)
chat_case("empty ids in two steps", *[chat_calls(chat_call(id="")), chat_result("a")] * 2)
chat_case("tool_calls null", {**assistant("x"), "tool_calls": None})
chat_case("tool_calls empty", {**assistant("x"), "tool_calls": []})
chat_case("tool_calls dict", {**assistant("x"), "tool_calls": chat_call()}, chat_result("a", "c1"))
chat_case("tool_calls str", {**assistant("x"), "tool_calls": "zzz"})
chat_case("assistant content null", assistant(None))
chat_case("user null", user(None))
chat_case("user empty text part", user([text("")]))
chat_case("user empty list", user([]))
chat_case("user image no data", user([{"type": "image_url", "image_url": {}}, text("hi")]))
chat_case("user image empty", user([{"type": "image_url", "image_url": {"url": ""}}]))
chat_case("user audio odd", user([{"type": "input_audio", "input_audio": {"data": "", "format": "ogg"}}]))
chat_case("user file empty", user([{"type": "file", "file": {}}]))
chat_case("user str parts", user(["a", None, 5]))
chat_case("user with tool_calls", {**user("x"), "tool_calls": [chat_call()]})
chat_case("user empty name", {**user("x"), "name": ""})
chat_case("user null name", {**user("x"), "name": None})
function_call("fc null args", {"name": "f", "arguments": None}, "f")
function_call("fc no name", {"arguments": "{}"}, "")
chat_case("fc list", {**assistant(""), "function_call": []})
chat_case("system null", {"role": "system", "content": None})
chat_case("refusal number", {**assistant(None), "refusal": 5})


# ---- Anthropic


def tool_use(**fields):
    return present(**{"type": "tool_use", "id": "t1", "name": "f", "input": {}, **fields})


def tool_result(**fields):
    return present(**{"type": "tool_result", "tool_use_id": "t1", "content": "ok", **fields})


def claude(id="t1", name="f", args=ABSENT, content="ok", **more):
    return [
        user("do it"),
        assistant([text("x"), tool_use(id=id, name=name, input=args)]),
        user([tool_result(tool_use_id=id, content=content, **more)]),
        assistant("done"),
        user("next"),
    ]


every("anthropic", claude, "args", "id", "name", "content", "is_error")
CASES["anthropic", "long"] = claude(id="a" * 200, name="n" * 300)
for part in (
    {"type": "image"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
    text(None),
    {"type": "thinking", "thinking": "x"},
):
    CASES["anthropic", f"content {part}"] = claude(content=[part])
LINKED = {"type": "image", "source": {"type": "url", "url": "https://x"}}
CASES["anthropic", "error image"] = claude(is_error=True, content=[LINKED])
CASES["anthropic", "error empty"] = claude(is_error=True, content="")
TWO_CALLS = assistant([tool_use(id="a"), tool_use(id="b")])
A, B = tool_result(tool_use_id="a"), tool_result(tool_use_id="b")
NO_ID = tool_result(tool_use_id="")
for wrong, messages in {
    "split results": [TWO_CALLS, user([A]), user([B])],
    "split results text between": [TWO_CALLS, user([A, text("note")]), user([B])],
    "text before result": [assistant([tool_use(id="a")]), user([text("note"), A])],
    "two empty ids": [
        assistant([tool_use(id=""), tool_use(id="", name="g")]),
        user([NO_ID, tool_result(tool_use_id="", content="2")]),
    ],
    "empty ids twice": [assistant([tool_use(id="")]), user([NO_ID])] * 2,
}.items():
    CASES["anthropic", wrong] = [user("do"), *messages, assistant("done"), user("n")]


def claude_case(name, *messages):
    picture = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    question = user([picture, text("q")])
    CASES["anthropic", name] = [question, *messages, assistant([text("done")]), user("next")]


UNSIGNED = {"type": "thinking", "thinking": "hm"}
SIGNED = thinking("hm", "s")
BITMAP = {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "aGk="}}
claude_case("assistant null", assistant(None))
claude_case("assistant empty str", assistant(""))
claude_case("assistant space str", assistant("  "))
claude_case("assistant empty text", assistant([text("")]))
claude_case("thinking no sig", assistant([UNSIGNED, text("x")]))
claude_case("thinking null", assistant([thinking(None, None), text("x")]))
claude_case("redacted empty", assistant([{"type": "redacted_thinking"}, text("x")]))
claude_case("thinking only", assistant([SIGNED]))
claude_case("user thinking", user([SIGNED, text("x")]))
claude_case("user strs", user(["a", None]))
claude_case("user empty", user(""))
claude_case("user image none", user([{"type": "image"}]))
claude_case("user image badtype", user([BITMAP]))
claude_case("doc none", user([{"type": "document"}]))
claude_case("user tool_use", user([tool_use()]))
claude_case("assistant result", assistant([tool_result(), text("x")]))


# ---- Bedrock Converse


def converse(id="t1", name="f", args=ABSENT, content=({"text": "ok"},), status=ABSENT):
    call = present(toolUseId=id, name=name, input=args)
    content = list(content) if isinstance(content, tuple) else content
    result = present(toolUseId=id, content=content, status=status)
    return converse_turns(
        assistant([{"text": "x"}, {"toolUse": call}]),
        user([{"toolResult": result}]),
        assistant([{"text": "done"}]),
    )


def converse_turns(*messages):
    return [user([{"text": "do it"}]), *messages, user([{"text": "next"}])]


every("bedrock-converse", converse, "args", "id", "name", "content", "status")
CASES["bedrock-converse", "two empty ids"] = converse_turns(
    assistant([{"toolUse": {"toolUseId": "", "name": name}} for name in "fg"]),
    user([{"toolResult": {"toolUseId": "", "content": [{"text": letter}]}} for letter in "ab"]),
    assistant([{"text": "done"}]),
)
for wrong, blocks in {
    "null": None,
    "string": "hi",
    "empty": [],
    "blank": [{"text": " "}],
    "text null": [{"text": None}],
    "strings": ["a", None],
    "typed": [text("x")],
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
            odd_message = {"role": role, "content": blocks}
            CASES["bedrock-converse", f"{role} {wrong}"] = converse_turns(
                odd_message, assistant([{"text": "done"}])
            )
for wrong, reasoning in {
    "none": {},
    "text null": {"reasoningText": {"text": None}},
    "only": {"reasoningText": {"text": "a"}},
}.items():
    CASES["bedrock-converse", f"reasoning {wrong}"] = converse_turns(
        assistant([{"reasoningContent": reasoning}])
    )


# ---- OpenAI Responses


def item(role, content):
    return {"type": "message", "role": role, "content": content}


def function_item(**fields):
    return present(**{"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", **fields})


def output_item(**fields):
    return present(**{"type": "function_call_output", "call_id": "c1", "output": "ok", **fields})


def items(id="c1", name="f", args="{}", content="ok", pair=None):
    pair = pair or (
        function_item(call_id=id, name=name, arguments=args),
        output_item(call_id=id, output=content),
    )
    return [
        item("user", [{"type": "input_text", "text": "do"}]),
        *pair,
        item("assistant", [{"type": "output_text", "text": "done"}]),
        item("user", "next"),
    ]


every("openai-responses", items, "args", "id", "name", "content")
for part in (
    {"type": "input_image"},
    {"type": "input_text", "text": None},
    {"type": "output_text", "text": "x"},
):
    CASES["openai-responses", f"content {part['type']}"] = items(content=[part])
for kind, key in {
    "custom_tool_call": "input",
    "shell_call": "action",
    "local_shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}.items():
    call = {"type": kind, "call_id": "c1", key: None, **({"name": "f"} if key == "input" else {})}
    output = {"type": f"{kind}_output", "call_id": "c1", "output": None}
    CASES["openai-responses", f"{kind} null"] = items(pair=(call, output))
for wrong, odd_items in {
    "reasoning null": [{"type": "reasoning", "summary": None, "id": "r1"}],
    "reasoning str": [{"type": "reasoning", "id": "r", "summary": ["x"]}],
    "content null": [item("assistant", None)],
    "content empty": [item("assistant", "")],
    "content emptylist": [item("user", [])],
    "img none": [item("user", [{"type": "input_image"}, {"type": "input_text", "text": "x"}])],
    "strs": [item("user", ["a"])],
    "text empty": [item("user", [{"type": "input_text", "text": ""}])],
    "text null": [item("user", [{"type": "input_text", "text": None}])],
    "two empty ids": [
        function_item(call_id=""),
        function_item(call_id="", name="g"),
        output_item(call_id=""),
        output_item(call_id="", output="b"),
    ],
}.items():
    CASES["openai-responses", wrong] = items(pair=odd_items)


# ---- UI messages


def ui_case(name, *messages, last="next"):
    first = {"id": "m1", "role": "user", "parts": [text("do")]}
    CASES["ui-message", name] = [first, *messages, {"id": "m3", "role": "user", "parts": [text(last)]}]


def ui_part(name, part):
    ui_case(name, {"id": "m2", "role": "assistant", "parts": [{"type": "step-start"}, part, text("done")]})


def tool_part(**fields):
    part = {"type": "tool-f", "toolCallId": "c1", "state": "output-available", "input": {}, "output": "ok"}
    return present(**{**part, **fields})


for key in ("input", "output", "toolCallId"):
    for wrong, value in ODD.items():
        ui_part(f"{key} {wrong}", tool_part(**{key: value}))
ui_part("output image", tool_part(output={"type": "content", "value": [{"type": "media"}]}))
ui_part("name empty", tool_part(type="tool-"))
ui_part("dynamic no name", tool_part(type="dynamic-tool"))
ui_part("dynamic null name", tool_part(type="dynamic-tool", toolName=None))
ui_part("state missing", tool_part(state=ABSENT))
ui_part("state weird", tool_part(state="weird"))
ui_part("errtext missing", tool_part(state="output-error", output=ABSENT))
ui_part("text null", text(None))
ui_part("text empty", text(""))
ui_part("file no url", {"type": "file", "mediaType": "image/png"})
ui_part("file null", {"type": "file", "mediaType": None, "url": None})
ui_part("reasoning null", {"type": "reasoning", "text": None})
ui_part("part null", None)
ui_part("part str", "x")
ui_part("part notype", {"text": "x"})
ui_case("parts null", {"id": "m2", "role": "assistant", "parts": None}, last="n")
ui_case("parts empty", {"id": "m2", "role": "assistant", "parts": []}, last="n")
CASES["ui-message", "id missing"] = [
    {"role": "user", "parts": [text("do")]},
    {"id": None, "role": "assistant", "parts": [text("d")]},
    {"id": "", "role": "user", "parts": [text("n")]},
]


# ---- Gemini


def gemini_case(name, *contents):
    first, *last = (
        {"role": role, "parts": [{"text": words}]}
        for role, words in (("user", "do it"), ("model", "done"), ("user", "next"))
    )
    CASES["gemini", name] = [first, *contents, *last]


def function(*, args=ABSENT, id="c1", name="f", response=ABSENT, signature=ABSENT, parts=ABSENT):
    call = present(functionCall=present(id=id, name=name, args=args), thoughtSignature=signature)
    result = {"functionResponse": present(id=id, name=name, response=response, parts=parts)}
    return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]


for key in ("args", "id", "name", "response", "signature", "parts"):
    for wrong, value in ODD.items():
        gemini_case(f"{key} {wrong}", *function(**{"response": {"output": "ok"}, key: value}))
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
    gemini_case(wrong, {"role": "model", "parts": [part, {"text": "ok"}]})
for wrong, value in ODD.items():
    gemini_case(f"content {wrong}", present(role="model", parts=value))
gemini_case(
    "two kinds",
    {"role": "model", "parts": [{"text": "x", "functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
)
gemini_case(
    "role odd", {"role": "tool", "parts": [{"text": "x"}]}, {"role": "assistant", "parts": [{"text": "y"}]}
)
gemini_case("call of the user", {"role": "user", "parts": [{"functionCall": {"name": "f"}}]})
