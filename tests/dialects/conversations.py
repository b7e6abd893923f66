"""Hypothesis strategies for whole conversations that are valid in their dialect."""

# pyright: basic

import json

from hypothesis import strategies as st
from tests.dialects.items import call as item_call
from tests.dialects.items import message, output, reasoning, spoke
from tests.dialects.samples import PNG, image, result, text, thinking, user
from tests.dialects.ui_samples import STEP, file, say
from tests.dialects.ui_samples import reasoning as ui_reasoning
from tests.support.converse_talk import as_converse

# words, white space, any script, and half an emoji as real logs hold it
WORDS = st.text(min_size=0, max_size=12)
SOLID = st.one_of(WORDS, st.just("whole 😀 emoji")).filter(lambda value: value.strip())
LOOSE = st.one_of(SOLID, st.just(""), st.just(" \n"))
NAMES = st.sampled_from(["read", "bash", "mcp__db__query"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
IDS = st.sampled_from(["c1", "c:1", "c.1", "c|1", "d" * 41 + "1", "d" * 41 + "2", "e" * 70, "é", " "])
ARGUMENTS = st.dictionaries(WORDS, JSON, max_size=3)


@st.composite
def openai_chats(draw, any_ids=True):
    """A valid Chat Completions list; with `any_ids`, ids of every form, reused in later batches."""
    messages = draw(st.lists(_openai_system(), max_size=2))
    count = 0
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["user", "say", "call", "system"]))
        if kind == "user":
            messages.append(draw(_openai_user()))
        elif kind == "system":
            messages.append(draw(_openai_system()))
        elif kind == "say":
            messages.append(draw(_openai_said()))
        else:
            size = draw(st.integers(1, 3))
            named = [f"call_{count + number}" for number in range(size)]
            if any_ids:
                named = draw(st.lists(IDS, min_size=size, max_size=size, unique=True))
            count += size
            messages += draw(_openai_batch(named))
    return messages or [user("hi")]


def _openai_system():
    return st.builds(lambda role, content: {"role": role, "content": content},
                     st.sampled_from(["system", "developer"]), SOLID)  # fmt: skip


@st.composite
def _openai_user(draw):
    part = st.one_of(
        SOLID.map(text),
        st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
        st.just({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
    )
    content = draw(st.one_of(LOOSE, st.lists(part, min_size=1, max_size=3)))
    return {"role": "user", "content": content, **draw(st.sampled_from([{}, {"name": "ann"}]))}


@st.composite
def _openai_said(draw):
    more = draw(st.sampled_from([{}, {"reasoning_content": "hm"}, {"refusal": "no"}, {"x": [1]}]))
    return {"role": "assistant", "content": draw(LOOSE), **more}


@st.composite
def _openai_batch(draw, ids):
    calls = []
    for call_id in ids:
        arguments = draw(st.one_of(ARGUMENTS.map(json.dumps), st.sampled_from(["", "{oops", "[1]"])))
        calls.append(
            {"id": call_id, "type": "function", "function": {"name": draw(NAMES), "arguments": arguments}}
        )
    content = draw(st.one_of(st.none(), LOOSE))
    messages = [{"role": "assistant", "content": content, "tool_calls": calls}]
    for call_id in draw(st.permutations(ids)):
        content = draw(st.one_of(LOOSE, st.lists(SOLID.map(text), min_size=1, max_size=2)))
        messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
    return messages


@st.composite
def anthropic_chats(draw):
    """A valid Anthropic list."""
    messages = [draw(_anthropic_user())]
    count = 0
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["user", "say", "call"]))
        if kind == "user":
            messages.append(draw(_anthropic_user()))
        elif kind == "say":
            messages.append({"role": "assistant", "content": draw(_spoken())})
        else:
            size = draw(st.integers(1, 3))
            messages += draw(_anthropic_batch([f"t{count + number}" for number in range(size)]))
            count += size
    return messages


@st.composite
def _anthropic_user(draw):
    block = st.one_of(SOLID.map(text), st.just(image()), st.just(image(type="file", file_id="f")))
    return {"role": "user", "content": draw(st.one_of(SOLID, st.lists(block, min_size=1, max_size=3)))}


def _spoken():
    spoken = SOLID.map(str.rstrip)
    opaque = st.just({"type": "redacted_thinking", "data": "x"})
    blocks = st.tuples(
        st.lists(st.just(thinking()) | opaque, max_size=2), st.lists(spoken.map(text), min_size=1, max_size=2)
    )
    return st.one_of(spoken, blocks.map(lambda pair: [*pair[0], *pair[1]]))


@st.composite
def _anthropic_batch(draw, ids):
    uses = [{"type": "tool_use", "id": i, "name": draw(NAMES), "input": draw(ARGUMENTS)} for i in ids]
    before = draw(st.lists(SOLID.map(text) | st.just(thinking()), max_size=2))
    if draw(st.booleans()) and len(uses) > 1:  # a batch over two messages, which the API combines
        messages = [
            {"role": "assistant", "content": [*before, uses[0]]},
            {"role": "assistant", "content": uses[1:]},
        ]
    else:
        messages = [{"role": "assistant", "content": [*before, *uses]}]
    results = [draw(_anthropic_result(call_id)) for call_id in draw(st.permutations(ids))]
    after = draw(st.lists(SOLID.map(text), max_size=1))
    return [*messages, {"role": "user", "content": [*results, *after]}]


@st.composite
def _anthropic_result(draw, call_id):
    if draw(st.booleans()):
        return result(call_id, draw(SOLID), is_error=True)
    content = draw(st.one_of(st.just(""), SOLID, st.lists(SOLID.map(text) | st.just(image()), max_size=2)))
    return result(call_id, content)


def converse_chats():
    """A valid list of Converse messages: those of Anthropic's, each turn one message."""
    return anthropic_chats().map(_in_turn)


def _in_turn(messages):
    turns = []
    for said in map(as_converse, messages):
        if turns and turns[-1]["role"] == said["role"]:
            turns[-1]["content"] += said["content"]
        else:
            turns.append(said)
    return turns


@st.composite
def item_lists(draw):
    """A valid list of items: messages, reasoning, calls of several types, outputs in any order."""
    items = [draw(_spoken_by_user(0))]
    for turn_ in range(1, draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["user", "say", "call"]))
        if kind == "user":
            items.append(draw(_spoken_by_user(turn_)))
        else:
            if draw(st.booleans()):
                items.append(reasoning(*draw(st.lists(SOLID, max_size=2)), id=f"rs_{turn_}"))
            items.append(spoke(draw(SOLID).rstrip(), id=f"msg_{turn_}", status="completed"))
            if kind == "call":
                items += draw(_batch([f"call_{turn_}_{n}" for n in range(draw(st.integers(1, 3)))]))
    return items


def _spoken_by_user(turn_):
    part = st.one_of(
        SOLID.map(lambda text: {"type": "input_text", "text": text}),
        st.just({"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"}),
    )
    parts = st.lists(part, min_size=1, max_size=3).map(
        lambda parts: message("user", *parts, id=f"msg_u{turn_}")
    )
    return st.one_of(SOLID.map(user), parts)


@st.composite
def _batch(draw, ids):
    asked, answered = [], []
    for call_id in ids:
        said = draw(SOLID)
        if draw(st.booleans()):
            asked.append(item_call(call_id, draw(NAMES), json.dumps(draw(ARGUMENTS)), id=f"fc_{call_id}"))
            answered.append(output(call_id, said))
        else:
            custom = {
                "type": "custom_tool_call",
                "call_id": call_id,
                "name": draw(NAMES),
                "input": f"*** {said}",
            }
            asked.append(custom)
            answered.append({"type": "custom_tool_call_output", "call_id": call_id, "output": said})
    return [*asked, *draw(st.permutations(answered))]


@st.composite
def gemini_chats(draw, any_ids=True):
    """A valid list of contents, in either spelling; with `any_ids` some calls have none."""
    contents = [draw(_content())]
    for turn in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["user", "say", "call"]))
        if kind == "user":
            contents.append(draw(_content()))
        elif kind == "say":
            signed = draw(st.sampled_from([{}, {"thoughtSignature": "c2ln"}]))
            thought = draw(st.sampled_from([[], [{"text": "hm", "thought": True}]]))
            contents.append({"role": "model", "parts": [*thought, {"text": draw(SOLID), **signed}]})
        else:
            contents += [{"role": "user", "parts": [{"text": "go"}]}, *draw(_functions(turn, any_ids))]
    return contents


@st.composite
def _content(draw):
    part = st.one_of(
        SOLID.map(lambda text: {"text": text}),
        st.just({"inlineData": {"mimeType": "image/png", "data": PNG}}),
        st.just({"inline_data": {"mime_type": "audio/wav", "data": PNG}, "text": None}),
        st.just({"fileData": {"mimeType": "application/pdf", "fileUri": "https://x.org/a.pdf"}}),
    )
    return {"role": "user", "parts": draw(st.lists(part, min_size=1, max_size=3))}


@st.composite
def _functions(draw, turn, any_ids):
    calls, responses = [], []
    for number in range(draw(st.integers(1, 3))):
        own = draw(st.sampled_from([{"id": f"call_{turn}_{number}"}, *([{}] if any_ids else [])]))
        name = draw(NAMES)
        calls.append({"functionCall": {**own, "name": name, "args": draw(ARGUMENTS)}})
        key = draw(st.sampled_from(["output", "result", "error", "value"]))
        told = {**own, "name": name, "response": {key: draw(SOLID)}}
        responses.append({"functionResponse": told})
    calls[0]["thoughtSignature"] = "c2ln"
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": responses}]


@st.composite
def ui_chats(draw, *, any_parts=True):
    """A valid list of UI messages; with `any_parts` also those that only this dialect has."""
    messages, count = [], 0
    for number in range(draw(st.integers(1, 5))):
        parts = draw(st.lists(SOLID.map(say) | st.just(file()), min_size=1, max_size=2))
        role = draw(st.sampled_from(["user", "assistant", "assistant"])) if number else "user"
        if role == "assistant":
            parts = []
            for _ in range(draw(st.integers(1, 3))):
                size = draw(st.integers(0, 3))
                parts += draw(_step([f"c{count + n}" for n in range(size)], any_parts))
                count += size
        messages.append({"id": f"m{number}", "role": role, "parts": parts})
    return messages


@st.composite
def _step(draw, ids, any_parts):
    odd = st.sampled_from(
        [{"type": "data-x", "data": 1}, {"type": "source-url", "sourceId": "s", "url": "u"}, ui_reasoning("")]
    )
    thought = st.sampled_from([ui_reasoning("hm", signature="s"), ui_reasoning("hm")])
    head = [STEP] if any_parts or ids else []
    words = draw(st.lists(SOLID.map(str.strip).map(say), min_size=0 if ids else 1, max_size=2))
    tools = []
    for call_id in ids:
        part = {"type": f"tool-{draw(NAMES)}", "toolCallId": call_id, "input": draw(ARGUMENTS)}
        if draw(st.booleans()):
            tools.append({**part, "state": "output-error", "errorText": draw(SOLID)})
        else:
            tools.append({**part, "state": "output-available", "output": draw(st.just("") | SOLID)})
    thoughts = draw(st.lists(thought, max_size=1)) if any_parts else []
    return [*head, *thoughts, *words, *tools, *(draw(st.lists(odd, max_size=2)) if any_parts else [])]
