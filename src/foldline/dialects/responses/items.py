"""Items of the OpenAI Responses API: their types, roles and parts."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from foldline.core.log.messages import Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.edits import PlacedPart
from foldline.dialects.media import from_responses
from foldline.dialects.payload import arguments_of, fields_of, items_of, role_in, string, without
from foldline.dialects.values import OPENAI_RESPONSES
from foldline.errors import DialectError

Item = dict[str, Any]


class CallItem(NamedTuple):
    """A type of call: the key of its arguments, the type of its output, its tool if that is fixed."""

    arguments: str
    output: str
    tool: str | None = None
    id: str = "call_id"


# calls that the client answers; server tools have call and result in one item
CALLS: dict[str, CallItem] = {
    "function_call": CallItem("arguments", "function_call_output"),
    "custom_tool_call": CallItem("input", "custom_tool_call_output"),
    "local_shell_call": CallItem("action", "local_shell_call_output", "local_shell"),
    "shell_call": CallItem("action", "shell_call_output", "shell"),
    "apply_patch_call": CallItem("operation", "apply_patch_call_output", "apply_patch"),
    "computer_call": CallItem("action", "computer_call_output", "computer"),
    "tool_search_call": CallItem("arguments", "tool_search_output", "tool_search"),
    "mcp_approval_request": CallItem("arguments", "mcp_approval_response", id="id"),
}
OUTPUTS: dict[str, str] = {call.output: kind for kind, call in CALLS.items()}
OWN = frozenset(
    {
        "reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
        "mcp_list_tools", "mcp_call", "program", "program_output", "compaction", "item_reference",
    }
)  # fmt: skip
SETTINGS = frozenset({"additional_tools", "configuration_update", "compaction_trigger"})
MEDIA = {"input_image": "image", "input_file": "document"}
TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
SEALED = "encrypted_content"
KINDS = frozenset({"message", *CALLS, *OUTPUTS, *OWN, *SETTINGS})
ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}


def kind_of(item: Item) -> str | None:
    """Return the type of an item; without a type, one with a role is a message, a bare id a reference."""
    kind = item.get("type")
    if kind is None:
        if "role" in item:
            return "message"
        return "item_reference" if isinstance(item.get("id"), str) and item.keys() <= {"id", "type"} else None
    return kind if isinstance(kind, str) else None


def is_call(item: Item) -> bool:
    """Return whether an item is a call that the client answers."""
    return kind_of(item) in CALLS and item.get("execution") != "server"


def is_output(item: Item) -> bool:
    """Return whether an item answers a call."""
    kind = kind_of(item)
    if kind not in OUTPUTS or item.get("execution") == "server":
        return False
    return kind != "function_call_output" or item.get("call_id") is not None or not item.get("name")


def answered_id(item: Item) -> Any:
    """Return the id of the call that an output answers."""
    return item.get(answered_key(item))


def answered_key(item: Item) -> str:
    """Return the key of an output for the id of its call; a local shell may use either of two."""
    kind = kind_of(item)
    if kind == "mcp_approval_response":
        return "approval_request_id"
    return "id" if kind == "local_shell_call_output" and "call_id" not in item else "call_id"


def own_id(item: Item) -> str | None:
    """Return the id of an item itself, which must be unique in a list; None if it has none."""
    item_id = item.get("id")
    refers = kind_of(item) in {"item_reference", "local_shell_call_output"}
    return item_id if isinstance(item_id, str) and not refers else None


def role_of(item: Item, index: int | None = None) -> Role:
    """Return the role of an item; raises DialectError (with `index`) for anything else.

    An item of an unknown type counts as the assistant's, to keep it with its neighbours.
    """
    kind = kind_of(item)
    if kind is None:
        raise DialectError("an item needs a type, or a role and content", index=index)
    if kind == "message":
        return role_in(ROLES, item, index)
    if is_output(item):
        return "tool"
    if kind in SETTINGS:
        return "developer"
    return "user" if kind == "function_call_output" else "assistant"


def is_models(item: Item) -> bool:
    """Return whether an item was written by the model; consecutive ones form one reply."""
    if kind_of(item) in ("message", None):
        return item.get("role") == "assistant"
    return role_of(item) == "assistant"


# ---- parts


def slots(item: Item, index: int | None = None) -> list[PlacedPart]:
    """Return the parts of an item in order, each with its place; unknown items are opaque.

    Raises DialectError (with `index`) for a field of the wrong type.
    """
    kind = kind_of(item)
    if kind == "message":
        return _content(item.get("content"), index)
    if kind == "reasoning":
        return _reasoning(item, index)
    if is_call(item):
        return [(_call(item, index), (CALLS[str(kind)].arguments, None))]
    if is_output(item):
        return [(_result(item, index), ("output", None))]
    return [(Opaque(OPENAI_RESPONSES, str(kind), item), ("", None))]


def _content(content: Any, index: int | None, key: str = "content") -> list[PlacedPart]:
    if isinstance(content, str):
        return [(Text(content), (key, None))]
    if not isinstance(content, list):
        raise DialectError(f"{key} must be a string or a list of parts", index=index)
    return [(_part(part, index), (key, place)) for place, part in enumerate(cast("list[Any]", content))]


def _part(part: Any, index: int | None) -> Text | Media | Opaque:
    fields = fields_of(part)
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise DialectError("a content part must be an object with a type", index=index)
    if kind in TEXTS:
        text = fields.get(TEXTS[kind])
        if not isinstance(text, str):
            raise DialectError(f"the {TEXTS[kind]} of a part of type {kind} must be a string", index=index)
        return Text(text)
    if kind in MEDIA:
        media = from_responses(fields)
        if media is None:
            raise DialectError(f"an {kind} part needs its data, a URL or a file id", index=index)
        return media
    return Opaque(OPENAI_RESPONSES, kind, fields)


def _reasoning(item: Item, index: int | None) -> list[PlacedPart]:
    """Read reasoning: its full text or summary is thinking, encrypted or stored content is opaque."""
    key = "content" if item.get("content") else "summary"
    parts = item.get(key)
    if not isinstance(parts, list):
        raise DialectError("reasoning needs a summary, a list of summary_text parts", index=index)
    texts: list[str] = []
    for part in cast("list[Any]", parts):
        text = fields_of(part).get("text")
        if not isinstance(text, str):
            raise DialectError("a part of reasoning must be an object with a text", index=index)
        texts.append(text)
    thinking = "\n\n".join(text for text in texts if text)
    placed: list[PlacedPart] = [(Thinking(thinking), (key, None))] if thinking else []
    if item.get(SEALED) or not thinking:
        rest = without(item, key) if thinking else item
        placed.append((Opaque(OPENAI_RESPONSES, "reasoning", dict(rest)), (SEALED, None)))
    return placed


def _call(item: Item, index: int | None) -> ToolCall:
    kind = str(kind_of(item))
    form = CALLS[kind]
    call_id = string(item, form.id, f"a {kind}", index)
    name = form.tool or string(item, "name", f"a {kind}", index)
    if kind == "custom_tool_call":
        return ToolCall(call_id, name, string(item, form.arguments, f"a {kind}", index))
    if kind == "computer_call":
        return ToolCall(call_id, name, {key: item[key] for key in ("action", "actions") if key in item})
    value = item.get(form.arguments)
    if form.tool is None and value is not None and not isinstance(value, str):
        raise DialectError(f"the arguments of a {kind} must be JSON text", index=index)
    if form.tool is not None and not isinstance(value, dict):
        value = {} if value is None else {form.arguments: value}
    return ToolCall(call_id, name, arguments_of(value))


def _result(item: Item, index: int | None) -> ToolResult:
    kind = str(kind_of(item))
    call_id = answered_id(item)
    if not isinstance(call_id, str):
        raise DialectError(f"a {kind} needs the id of its call", index=index)
    output = item.get("output")
    if kind == "mcp_approval_response":
        reason = item.get("reason")
        answer = "approved" if item.get("approve") is True else "denied"
        return ToolResult(
            call_id, (Text(f"{answer}: {reason}" if isinstance(reason, str) and reason else answer),)
        )
    if kind == "tool_search_output":
        return ToolResult(call_id, (Opaque(OPENAI_RESPONSES, "tools", item.get("tools")),))
    if kind == "computer_call_output":
        return ToolResult(call_id, (_screenshot(output, index),))
    if kind == "shell_call_output":
        if not isinstance(output, list):
            raise DialectError(f"the output of a {kind} must be a list", index=index)
        return ToolResult(call_id, tuple(_command_output(chunk, index) for chunk in items_of(output)))
    failed = kind == "apply_patch_call_output" and item.get("status") == "failed"
    if output is None and kind == "apply_patch_call_output":
        return ToolResult(call_id, is_error=failed)
    parts = _content(output, index, "output")
    return ToolResult(
        call_id, tuple(cast("Text | Media", part) for part, _ in parts if part != Text("")), failed
    )


def _screenshot(output: Any, index: int | None) -> Media:
    media = (
        from_responses({**cast("Item", output), "type": "input_image"}) if isinstance(output, dict) else None
    )
    if media is None:
        raise DialectError("a computer_call_output needs a screenshot with image_url or file_id", index=index)
    return media


def _command_output(chunk: Any, index: int | None) -> Text:
    """Return the output of a command, with a note if it failed."""
    fields = fields_of(chunk)
    texts = [fields.get("stdout"), fields.get("stderr")]
    if any(not isinstance(text, str) for text in texts):
        raise DialectError("each output of a shell call needs stdout and stderr, both strings", index=index)
    outcome = fields_of(fields.get("outcome"))
    code = outcome.get("exit_code")
    note = f"[exit code {code}]" if code else "[timed out]" if outcome.get("type") == "timeout" else ""
    return Text("\n".join(text for text in (*cast("list[str]", texts), note) if text))
