"""Small lists of Responses items that the tests share."""

from tests.dialects.samples import PNG, user

DIALECT = "openai-responses"


def message(role, *parts, **more):
    return {"type": "message", "role": role, "content": list(parts), **more}


def spoke(value, **more):
    """What the model said: a text, or a content part."""
    part = {"type": "output_text", "text": value, "annotations": []} if isinstance(value, str) else value
    return message("assistant", part, **more)


def reasoning(*summary, sealed="gAAAAABo", **more):
    shown = [{"type": "summary_text", "text": text} for text in summary]
    item = {"type": "reasoning", "id": "rs_1", "summary": shown, **more}
    return {**item, "encrypted_content": sealed} if sealed else item


def call(call_id="c1", name="read", arguments='{"path": "a.py"}', **more):
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def output(call_id="c1", value="ok", **more):
    return {"type": "function_call_output", "call_id": call_id, "output": value, **more}


def response(*items, **more):
    return {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5.2",
        "status": "completed",
        "output": list(items),
        **more,
    }


RESPONSES = [
    {"role": "developer", "content": "Be brief."},
    user("Fix a.py, the picture shows how."),
    message("user", {"type": "input_text", "text": "Here."},
            {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"}),
    reasoning("I should read the file.", status="completed"),
    spoke("Reading.", id="msg_1", status="completed", phase="commentary"),
    call("c1", id="fc_1", status="completed"),
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "apply_patch", "input": "*** Begin"},
    output("c1", "x = 1"),
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
    reasoning(id="rs_2"),
    spoke("Done.", id="msg_2", status="completed", phase="final_answer"),
    user("Thanks."),
]  # fmt: skip


def long_list():
    items = [{"role": "developer", "content": "Be brief."}]
    for n in range(20):
        items += [
            user(f"Look at src/f{n}.py"),
            reasoning("I read it.", id=f"rs_{n}"),
            call(f"a{n}", id=f"fc_{n}"),
            call(f"b{n}", name="bash", arguments='{"command": "pytest -q"}'),
            output(f"a{n}", "a line of code\n" * 80),
            output(f"b{n}", "3 passed"),
            reasoning(id=f"rs_b{n}"),
            spoke(f"Step {n} is done.", id=f"msg_{n}"),
        ]
    return items
