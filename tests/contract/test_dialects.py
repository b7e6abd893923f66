"""What every dialect must do, whichever it is."""

# pyright: basic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.rule_sources import sourced_rules

from foldline.core.log import codec
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult
from foldline.dialects import Dialect, get, names
from foldline.dialects.responses.items import KINDS
from foldline.errors import DialectError

EVERY = pytest.mark.parametrize("dialect", [get(name) for name in names()], ids=names())

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ROLES = st.sampled_from(["user", "model", "assistant", "tool", "system", "developer", "function"])
KEYS = st.sampled_from(
    [
        "type",
        "text",
        "id",
        "name",
        "input",
        "tool_use_id",
        "content",
        "function",
        "arguments",
        "url",
        "output",
        "image_url",
        "stdout",
        "stderr",
        "outcome",
        "toolUse",
        "toolUseId",
        "toolResult",
        "status",
        "reasoningContent",
        "document",
        "source",
        "cachePoint",
        "functionCall",
        "function_response",
        "inlineData",
        "fileData",
        "response",
        "args",
        "thought",
        "thoughtSignature",
    ]
)
TYPES = [
    "text",
    "thinking",
    "tool_use",
    "tool_result",
    "image",
    "image_url",
    "function",
    "custom",
    "refusal",
    "file",
    "reasoning",
    "tool-read",
    "dynamic-tool",
    "tool-invocation",
    "step-start",
    "data-x",
    "input_text",
    "output_text",
    "input_image",
    "summary_text",
    "exit",
]
BLOCKS = st.dictionaries(KEYS, st.sampled_from(TYPES) | JSON, max_size=5)
FIELDS = st.sampled_from(
    [
        "content",
        "tool_calls",
        "tool_call_id",
        "name",
        "refusal",
        "reasoning",
        "function_call",
        "x",
        "parts",
        "id",
    ]
)
ITEM_FIELDS = {
    "role", "content", "id", "call_id", "name", "arguments", "input", "output", "action", "operation", "summary",
    "encrypted_content", "execution", "tools", "status", "approve", "reason", "approval_request_id", "caller",
}  # fmt: skip
BODIES = st.builds(
    lambda role, fields: {**fields, "role": role},
    ROLES | JSON,
    st.dictionaries(FIELDS, st.lists(BLOCKS, max_size=3) | BLOCKS | JSON, max_size=4),
) | st.builds(
    lambda kind, fields: {**fields, "type": kind},
    st.sampled_from(sorted(KINDS)) | JSON,
    st.dictionaries(
        st.sampled_from(sorted(ITEM_FIELDS)),
        st.lists(BLOCKS, max_size=3) | BLOCKS | JSON | st.just("x"),
        max_size=5,
    ),
)

PAIRED = (ToolCall, ToolResult)  # a call can only become a call, a result a result
CONVERSATION = [
    Message("user", (Text("Fix a.py"),)),
    Message(
        "assistant", (Text("Reading."), ToolCall("c1", "read", {"path": "a.py"}), ToolCall("c2", "ls", {}))
    ),
    Message("tool", (ToolResult("c1", (Text("x = 1"),)),)),
    Message("tool", (ToolResult("c2"),)),
    Message("assistant", (Text("Done."),)),
    Message("user", (Text("Thanks."),)),
]


def test_the_protocol_is_met():
    for name in names():
        dialect: Dialect = get(name)
        assert dialect.name == name


@EVERY
@given(body=BODIES | JSON)
@settings(max_examples=120, deadline=None)
def test_any_json_is_read_without_loss_or_refused(dialect, body):
    problems = dialect.validate([body])
    refused = None
    try:
        message = dialect.decode(body, index=0)
    except DialectError as error:
        refused = error
    if refused is not None:
        assert refused.index == 0
        assert problems
        return
    assert codec.decode(message.native.raw) == codec.decode(codec.encode(body))
    out = dialect.render([(message, ())]).messages
    assert out in ([], [codec.decode(message.native.raw)])
    for name in names():
        get(name).render([(message, ())])
    for number, old in enumerate(message.parts):
        for new in (None, Text("x"), *message.parts):
            if new is None or all(isinstance(new, kind) == isinstance(old, kind) for kind in PAIRED):
                dialect.render([(message, [Edit("e", number, "elided", new)])])


@EVERY
@given(messages=st.lists(BODIES | JSON, max_size=4), system=JSON)
@settings(deadline=None)
def test_validate_never_raises(dialect, messages, system):
    problems = dialect.validate(messages, system)
    assert all(problem.text and problem.rule in sourced_rules(dialect.name) for problem in problems)
    assert all(-1 <= problem.index < len(messages) for problem in problems)


@EVERY
@pytest.mark.parametrize("messages", [None, 5, "hi", {}, b"[]", []])
def test_what_is_no_list_breaks_the_list_rule(dialect, messages):
    assert [(problem.index, problem.rule) for problem in dialect.validate(messages)] == [(-1, "list")]


@EVERY
def test_made_messages_render_to_a_valid_list_that_reads_the_same(dialect):
    out = dialect.render([(message, ()) for message in CONVERSATION])
    assert dialect.validate(out.messages, out.system) == []
    assert out.warnings == ()
    again = [dialect.decode(body) for body in out.messages]
    calls = [call for message in CONVERSATION for call in message.calls]
    assert [call for message in again for call in message.calls] == calls
    results = [result for message in CONVERSATION for result in message.results]
    assert [result for message in again for result in message.results] == results
    assert [message.text for message in again if message.text] == ["Fix a.py", "Reading.", "Done.", "Thanks."]


@EVERY
def test_rendering_twice_gives_equal_lists_that_share_nothing(dialect):
    kept = [dialect.decode(body) for body in dialect.render([(m, ()) for m in CONVERSATION]).messages]
    first = dialect.render([(message, ()) for message in kept])
    second = dialect.render([(message, ()) for message in kept])
    assert first == second
    first.messages[0].clear()
    assert second.messages[0]
    assert dialect.render([(message, ()) for message in kept]) == second


@EVERY
def test_system_prompts_are_messages(dialect):
    message = dialect.decode_system("Be kind.")
    assert (message.role, message.text) == ("system", "Be kind.")
    out = dialect.render([(message, ()), *((m, ()) for m in CONVERSATION)])
    assert dialect.validate(out.messages, out.system) == []
    assert out.system == "Be kind." or out.messages[0]["content"] == "Be kind."
