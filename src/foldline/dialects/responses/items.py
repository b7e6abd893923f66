"""The items of the OpenAI Responses API: which are calls, which answer them, and the role of each."""

from __future__ import annotations

from typing import Any, NamedTuple

from foldline.core.log.messages import Role
from foldline.errors import DialectError

Item = dict[str, Any]


class CallItem(NamedTuple):
    """How a call is written: the key of its arguments, the type of its output, its tool if that is fixed."""

    arguments: str
    output: str
    tool: str | None = None
    id: str = "call_id"


# calls that the client answers; a tool run on the server has its result in the same item
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
    """Return the type of an item; without one, a role makes it a message, an id alone a reference."""
    kind = item.get("type")
    if kind is None:
        if "role" in item:
            return "message"
        return "item_reference" if isinstance(item.get("id"), str) and item.keys() <= {"id", "type"} else None
    return kind if isinstance(kind, str) else None


def is_call(item: Item) -> bool:
    """Return whether an item is a call that waits for the client's answer."""
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
    """Return the key under which an output names its call; a local shell's may use either."""
    kind = kind_of(item)
    if kind == "mcp_approval_response":
        return "approval_request_id"
    return "id" if kind == "local_shell_call_output" and "call_id" not in item else "call_id"


def role_of(item: Item, index: int | None = None) -> Role:
    """Return the role of an item; raises DialectError (with `index`) for anything else.

    An item of an unknown type counts as the assistant's, so that it stays with its neighbours.
    """
    kind = kind_of(item)
    if kind is None:
        raise DialectError("an item needs a type, or a role and content", index=index)
    if kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise DialectError(f"role is {role!r}; it must be one of {', '.join(ROLES)}", index=index)
        return ROLES[role]
    if is_output(item):
        return "tool"
    if kind in SETTINGS:
        return "developer"
    return "user" if kind == "function_call_output" else "assistant"
