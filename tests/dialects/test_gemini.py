"""Gemini's contents: calls known by their names, signatures that stay where they came, either spelling."""

# pyright: basic

import json

import pytest
from tests.support.rule_sources import sourced_rules

import foldline
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult, Usage
from foldline.dialects import decode_all, detect, get
from foldline.dialects.base import decode_reply
from foldline.dialects.gemini.write import UNSIGNED
from foldline.errors import DialectError

GEMINI = get("gemini")
PNG = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}


def user(*parts):
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts):
    return {**user(*parts), "role": "model"}


def call(name="tide", args=None, *, signature=None, **more):
    signed = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {**more, "name": name, "args": args or {}}, **signed}


def told(name="tide", value="high", *, key="output", **more):
    return {"functionResponse": {**more, "name": name, "response": {key: value}}}


TALK = [
    user("When?"),
    model({"text": "Ask the log.", "thought": True}, "I look.", call(signature="c2ln"), call("wind")),
    user(told("wind", "W 3"), told()),
    model({"text": "At noon.", "thoughtSignature": "ZW5k"}),
]
SNAKE = json.loads(
    json.dumps(TALK)
    .replace("functionCall", "function_call")
    .replace("functionResponse", "function_response")
    .replace("thoughtSignature", "thought_signature")
)
for _part in (_part for _one in SNAKE for _part in _one["parts"]):
    _part.update(inline_data=None, thought=_part.get("thought"))  # as `model_dump` of the SDK has it


def rendered(messages, name="gemini", **more):
    return get(name).render([(message, ()) for message in messages], whole=True, **more)


# ---- reading


@pytest.mark.parametrize("talk", [TALK, SNAKE], ids=["camel", "snake"])
def test_contents_are_read_in_either_spelling_and_come_back_as_they_came(talk):
    assert detect(talk) == "gemini"
    assert GEMINI.validate(talk) == []
    messages = decode_all(talk)
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[1].parts == (
        Thinking("Ask the log."),
        Text("I look."),
        ToolCall("tide", "tide", {}),
        ToolCall("wind", "wind", {}),
    )
    assert [(result.call_id, result.text) for result in messages[2].results] == [
        ("wind", "W 3"),
        ("tide", "high"),
    ]
    assert rendered(messages).messages == talk
    done = foldline.compact(talk, target=4_000)
    assert (done.messages, done.dialect, done.warnings) == (talk, "gemini", ())


def test_parts_of_every_kind():
    ran = [{"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"output": "1"}}]
    content = user(
        PNG,
        {
            "fileData": {"mimeType": "video/mp4", "fileUri": "https://x.org/a.mp4"},
            "videoMetadata": {"fps": 1},
        },
        {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a"}},
        *ran,
        {"hologram": {}},
    )
    message = GEMINI.decode(content)
    assert message.parts == (
        Media("image", "image/png", data="QUJD"),
        Media("video", "video/mp4", url="https://x.org/a.mp4"),
        Media("document", url="file-id:https://generativelanguage.googleapis.com/v1beta/files/a"),
        Opaque("gemini", "executableCode", ran[0]),
        Opaque("gemini", "codeExecutionResult", ran[1]),
        Opaque("gemini", "hologram", {"hologram": {}}),
    )
    assert rendered([message]).messages == [content]
    assert GEMINI.validate([content]) == []


@pytest.mark.parametrize(
    ("response", "text", "failed"),
    [
        ({"output": "a"}, "a", False),
        ({"result": {"b": 1}}, '{"b":1}', False),
        ({"error": "no"}, "no", True),
        ({"b": 1, "error": "no"}, '{"b":1,"error":"no"}', False),
        ({}, "", False),
    ],
)
def test_what_a_function_returned(response, text, failed):
    part = {"functionResponse": {"name": "tide", "response": response}}
    (result,) = GEMINI.decode(user(part)).results
    assert (result.text, result.is_error) == (text, failed)


def test_media_of_a_response_are_read_and_written_in_it():
    given = {"functionResponse": {"name": "tide", "response": {"output": "see"}, "parts": [PNG]}}
    (result,) = GEMINI.decode(user(given)).results
    assert result.content == (Text("see"), Media("image", "image/png", data="QUJD"))
    made = [Message("assistant", (ToolCall("c1", "tide", {}),)), Message("tool", (result,))]
    assert rendered(made).messages[-1]["parts"][0]["functionResponse"]["parts"] == [PNG]


def test_a_reply_is_read_with_its_usage_and_why_it_stopped():
    reply = {
        "candidates": [{"content": model(call(signature="c2ln")), "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 60,
            "toolUsePromptTokenCount": 5,
            "candidatesTokenCount": 7,
            "thoughtsTokenCount": 20,
        },
        "modelVersion": "gemini-3-pro",
    }
    message = decode_reply(reply, "gemini")
    assert (message.role, message.stop, message.model) == ("assistant", "tools", "gemini-3-pro")
    assert message.usage == Usage(45, 60, 0, 27)
    assert rendered([message]).messages[-1] == model(call(signature="c2ln"))
    cut = {"candidates": [{"content": {"role": "model"}, "finish_reason": "MAX_TOKENS"}]}
    assert GEMINI.decode_reply(cut).stop == "length"
    with pytest.raises(DialectError, match="candidate"):
        GEMINI.decode_reply({"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}})


@pytest.mark.parametrize(
    "system", ["Be brief.", {"role": "user", "parts": [{"text": "Be brief."}]}, [{"text": "Be brief."}]]
)
async def test_a_system_prompt_is_a_text_a_content_or_its_parts(system):
    assert GEMINI.validate(TALK, system) == []
    assert GEMINI.decode_system(system).text == "Be brief."
    told = foldline.convert(TALK, "anthropic", system=system).system
    assert told in ("Be brief.", [{"type": "text", "text": "Be brief."}])
    async with foldline.open("memory://", "s", dialect="gemini", system=system) as session:
        await session.append({"role": "system", "parts": [{"text": "Be kind."}]}, *TALK)
        assert GEMINI.validate(await session.context(), session.system) == []
        joined = session.system
    assert joined == [{"text": "Be brief."}, {"text": "Be kind."}]


# ---- calls without ids


def ids(messages):
    calls = [call.id for message in messages for call in message.calls]
    return calls, [result.call_id for message in messages for result in message.results]


def test_calls_without_ids_are_known_by_their_function_and_place():
    talk = [user("go"), model(call(), call(), call("wind")), user(told(), told("wind"), told(value="low"))]
    assert ids(decode_all(talk)) == (["tide", "tide_2", "wind"], ["tide", "wind", "tide_2"])
    assert GEMINI.validate(talk) == []
    assert not any(message.native.mended for message in decode_all(talk))


def test_a_stream_of_contents_is_one_reply_and_is_sent_as_one():
    talk = [user("go"), model("Two."), model(call(signature="a")), model(call()), user(told()), user(told())]
    messages = decode_all(talk)
    assert ids(messages) == (["tide", "tide_2"], ["tide", "tide_2"])
    whole = [user("go"), model("Two.", call(signature="a"), call()), user(told(), told())]
    assert foldline.compact(talk, target=4_000).messages == rendered(messages).messages == whole
    assert {problem.rule for problem in GEMINI.validate(talk)} == {"result-missing", "result-orphan"}


def test_a_response_without_an_id_answers_the_call_of_its_function_that_has_one():
    talk = [user("go"), model(call(id="a"), call("wind", id="b")), user(told("wind"), told())]
    messages = decode_all(talk)
    assert ids(messages) == (["a", "b"], ["b", "a"])
    assert rendered(messages).messages == talk
    assert GEMINI.validate(talk) == []


def test_a_made_id_that_is_the_name_of_another_function_takes_none_of_its_responses():
    asked = model(call(), call(), call("tide_2"))
    talk = [user("go"), asked, user(told("tide_2", "of tide_2"), told(value="one"), told(value="two"))]
    assert ids(decode_all(talk)) == (["tide", "tide_2", "tide_2_2"], ["tide_2_2", "tide", "tide_2"])
    assert foldline.compact(talk, target=50_000).messages == talk


@pytest.mark.parametrize("turned", [False, True])
def test_an_id_that_is_the_name_of_another_function_takes_none_of_its_responses(turned):
    responses = [told("wind", "W"), told(id="wind")]
    talk = [
        user("go"),
        model(call(id="wind"), call("wind")),
        user(*(responses[::-1] if turned else responses)),
    ]
    asked, answered = ids(decode_all(talk))
    assert (asked, sorted(answered)) == (["wind", "wind_2"], ["wind", "wind_2"])
    assert answered[turned] == "wind_2"


async def test_contents_that_are_appended_one_by_one_are_paired():
    talk = [user("go"), model(call()), model(call(id="x"), call()), user(told()), user(told(id="x"), told())]
    async with foldline.open("memory://", "s") as session:
        for content in talk:
            await session.append(content)
        view = await session.context()
    assert view == [user("go"), model(call(), call(id="x"), call()), user(told(), told(id="x"), told())]
    assert GEMINI.validate(view) == []


async def test_a_call_without_an_id_that_nobody_answered_is_answered_without_one():
    async with foldline.open("memory://", "s") as session:
        await session.append(user("go"), model(call(), call(id="x")), user("stop"))
        view = await session.context()
    first, second = (part["functionResponse"] for part in view[2]["parts"])
    assert ("id" in first, second["id"]) == (False, "x")
    assert "interrupted" in first["response"]["error"]
    assert GEMINI.validate(view) == []


# ---- signatures


@pytest.mark.parametrize("own", [{}, {"id": "1"}])
def test_a_made_response_has_the_name_of_its_call(own):
    out = foldline.convert([user("When?"), model(call("fs.read", **own)), user("Stop.")], "gemini")
    assert out.messages[2]["parts"][0]["functionResponse"]["name"] == "fs.read"
    assert GEMINI.validate(out.messages) == []


@pytest.mark.parametrize("name", ["7zip_extract", "-x"])
def test_the_name_of_a_function_begins_with_a_letter(name):
    use = {"type": "tool_use", "id": "t", "name": name, "input": {}}
    said = [{"role": "user", "content": "Unpack."}, {"role": "assistant", "content": [use]}]
    mended = decode_all([user("Unpack."), model(call(name))], "gemini")
    for out in (foldline.convert(said, "gemini"), rendered(mended)):
        assert out.messages[1]["parts"][0]["functionCall"]["name"] == f"_{name}"
    assert GEMINI.validate(foldline.convert(said, "gemini").messages) == []


def test_what_another_model_called_says_that_it_has_no_signature():
    chat = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "ab"]},
        *({"role": "tool", "tool_call_id": name, "content": name} for name in "ab"),
    ]  # fmt: skip
    made = rendered(decode_all(chat)).messages
    assert made == [
        user("go"),
        model(call("a", id="a", signature=UNSIGNED), call("b", id="b")),
        user(told("a", "a", id="a"), told("b", "b", id="b")),
    ]
    assert GEMINI.validate(made) == []


def edited(content, at, new):
    return GEMINI.render([(GEMINI.decode(content), [Edit("e", at, "elided", new)])]).messages


def test_an_edit_leaves_the_signature_in_its_part_and_the_spelling_as_it_is():
    content = model(call(args={"a": "b"}, signature="c2ln"), {"text": "x", "thoughtSignature": "dA=="})
    assert edited(content, 0, ToolCall("tide", "tide", {"a": "…"})) == [
        model(call(args={"a": "…"}, signature="c2ln"), content["parts"][1])
    ]
    assert edited(content, 1, Text("y"))[0]["parts"][1] == {"text": "y", "thoughtSignature": "dA=="}
    snake = {
        "role": "user",
        "parts": [{"function_response": {"id": "a", "name": "f", "response": {"result": 1}}}],
    }
    new = ToolResult("a", (Text("gone"),))
    assert edited(snake, 0, new)[0]["parts"] == [
        {"function_response": {"id": "a", "name": "f", "response": {"result": "gone"}}}
    ]


def test_where_the_signed_call_goes_the_next_says_that_it_has_none():
    content = model(call(signature="c2ln"), call("wind"))
    assert edited(content, 0, None) == [model(call("wind", signature=UNSIGNED))]
    assert edited(content, 1, None) == [model(call(signature="c2ln"))]


def test_signatures_stay_with_gemini():
    out = rendered(decode_all(TALK), "anthropic")
    assert "c2ln" not in json.dumps(out.messages)
    assert "field 'thoughtSignature' left out (2)" in out.warnings


def test_a_fold_keeps_what_it_keeps_as_it_came():
    talk = [one for n in range(40) for one in (user(f"Turn {n}", "word " * 200), *TALK[1:])]
    done = foldline.compact(talk, target=3_000)
    assert done.view_tokens <= 3_000
    assert done.messages[-3:] == talk[-3:]
    assert GEMINI.validate(done.messages) == []
    again = foldline.compact([*done.messages, *talk[:4]], target=3_000)
    assert (again.dialect, GEMINI.validate(again.messages)) == ("gemini", [])


# ---- rules

BAD = [
    ("content", ["x"]),
    ("role", [{"role": "function", "parts": [{"text": "x"}]}]),
    ("first-user", [model("x")]),
    ("parts", [{"role": "user", "parts": "x"}]),
    ("parts-empty", [user()]),
    ("part-type", [{"role": "user", "parts": ["x"]}]),
    ("part-kind", [user({"thought": True})]),
    ("part-kind", [user({"text": "x", **PNG})]),
    ("part-shape", [user({"inlineData": "x"})]),
    ("text", [user({"text": 5})]),
    ("text-empty", [user("")]),
    ("text-surrogate", [user("\ud83d")]),
    ("signature", [user({"text": "x", "thoughtSignature": 5})]),
    ("media", [user({"inlineData": {"mimeType": "image/png"}})]),
    ("media", [user({"fileData": {"mimeType": "image/png"}})]),
    ("call-role", [user(call())]),
    ("call-id", [user("x"), model(call(id=5)), user(told())]),
    ("call-name", [user("x"), model(call("a b")), user(told("a b"))]),
    ("call-args", [user("x"), model({"functionCall": {"name": "f", "args": []}}), user(told("f"))]),
    ("call-duplicate", [user("x"), model(call(id="a"), call(id="a")), user(told(id="a"), told(id="a"))]),
    ("result-role", [user("x"), model(told())]),
    ("result-response", [user("x"), model(call()), user({"functionResponse": {"name": "tide", "response": "x"}})]),
    ("result-parts", [user("x"), model(call()), user(told(parts="x"))]),
    ("result-missing", [user("x"), model(call())]),
    ("result-missing", [user("x"), model(call(), call()), user(told())]),
    ("result-orphan", [user(told())]),
    ("result-orphan", [user("x"), model(call()), user(told(), told("wind"))]),
    ("result-duplicate", [user("x"), model(call(id="a")), user(told(id="a"), told(id="a"))]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "talk"), BAD)
def test_a_bad_list_breaks_its_rule(rule, talk):
    assert rule in {problem.rule for problem in GEMINI.validate(talk)}


def test_the_list_of_rules_and_their_sources_is_whole():
    assert set(sourced_rules("gemini")) == {*(rule for rule, _ in BAD), "list", "system"}
    assert [problem.rule for problem in GEMINI.validate(TALK, [PNG])] == ["system"]


def test_what_the_sdks_and_the_api_leave_out_is_well():
    talk = [{"parts": [{"text": "no role"}]}, model({"functionCall": {"name": "f"}}), user(told("f"))]
    assert GEMINI.validate(talk) == []
    assert GEMINI.validate([user("x"), model({"text": "", "thoughtSignature": "c2ln"})]) == []
    assert GEMINI.validate([user("x"), model("y"), model(call()), model(call()), user(told(), told())]) == []
    assert detect([{"parts": [{"text": "no role"}]}]) == "gemini"
