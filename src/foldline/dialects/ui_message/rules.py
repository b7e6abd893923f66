"""The rules of a list of UI messages, one name each; see docs/dialects.md.

A list without problems is accepted by `validateUIMessages`, and `convertToModelMessages` makes a request of
it that a provider accepts, except for calls that still wait at its end.
"""

from __future__ import annotations

from collections.abc import Sequence

from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.ui_message.read import ROLES
from foldline.dialects.ui_message.tools import ANSWERED, DYNAMIC, OPEN, PREFIX, STREAMING
from foldline.dialects.values import Problem, Say, reporter

# the text fields that a part must hold, and those that it may hold
_NEEDS: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "reasoning": ("text",),
    "custom": ("kind",),
    "source-url": ("sourceId", "url"),
    "source-document": ("sourceId", "mediaType", "title"),
    "file": ("mediaType", "url"),
    "reasoning-file": ("mediaType", "url"),
    "step-start": (),
}
_MAY: dict[str, tuple[str, ...]] = {
    "source-url": ("title",),
    "source-document": ("filename",),
    "file": ("filename",),
}
_METADATA = ("providerMetadata", "callProviderMetadata", "resultProviderMetadata")
_FLAGS = ("providerExecuted", "preliminary")
_BY_ROLE = {
    "system": ("text",),
    "user": ("text", "file"),
}


def check(problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
    """Add every rule that messages, each with its index, break; `last` is that of the end of the list."""
    for index, body in bodies:
        _message(reporter(problems, index), body, last=index == last)


def _message(say: Say, body: Fields, *, last: bool) -> None:
    if not isinstance(body.get("id"), str):
        say("id", "a message needs an id, a string")
    role = body.get("role")
    if not isinstance(role, str) or role not in ROLES:
        say("role", f"role is {role!r}; it must be one of {', '.join(ROLES)}")
        return
    natives = body.get("parts")
    if not isinstance(natives, list):
        say("parts", "a message needs a list of parts")
        return
    if not natives:
        say("parts-empty", "a message must have at least one part")
    parts: list[Fields] = []
    for native in items_of(natives):
        if not isinstance(native, dict):
            say("part-type", "a part must be an object")
            continue
        parts.append(fields_of(native))
        check_part(say, role, parts[-1])
    if role == "assistant":
        _calls(say, parts, last=last)


def _calls(say: Say, parts: Sequence[Fields], *, last: bool) -> None:
    """Check that ids are unique, and that only the last step of the last message waits for results."""
    seen: set[str] = set()
    waiting: list[str] = []
    for part in parts:
        kind = part.get("type")
        if kind == "step-start":
            _missing(say, waiting)
        if not isinstance(kind, str) or not is_tool_type(kind):
            continue
        call_id = part.get("toolCallId")
        if not isinstance(call_id, str):
            continue
        if call_id in seen:
            say("call-duplicate", f"two calls of one message have the id {call_id!r}")
        seen.add(call_id)
        if part.get("state") in OPEN and part.get("providerExecuted") is not True:
            waiting.append(call_id)
    if not last:
        _missing(say, waiting)


def _missing(say: Say, waiting: list[str]) -> None:
    for call_id in waiting:
        say("result-missing", f"call {call_id!r} has no result, but more was said after it")
    waiting.clear()


# ---- one part


def check_part(say: Say, role: str, part: Fields) -> None:
    """Check one part of a message of `role` by itself; `say(rule, text)` takes what is wrong."""
    kind = part.get("type")
    if not isinstance(kind, str) or not (kind in _NEEDS or kind.startswith("data-") or is_tool_type(kind)):
        say("part-type", f"no part has the type {kind!r}")
        return
    if kind.startswith("data-"):
        _data(say, kind, part)
        return
    if role in _BY_ROLE and kind not in _BY_ROLE[role]:
        say("part-role", f"the SDK never sends a {kind} part of a {role} message to a model")
    _metadata(say, kind, part)
    if kind in _NEEDS:
        _texts(say, kind, part)
    else:
        _tool(say, kind, part)


def is_tool_type(kind: str) -> bool:
    """Return whether a type is that of a tool part."""
    return kind == DYNAMIC or kind.startswith(PREFIX)


def _texts(say: Say, kind: str, part: Fields) -> None:
    for key in _NEEDS[kind]:
        if not isinstance(part.get(key), str):
            say("part-shape", f"the {key} of a {kind} part must be a string")
    for key in _MAY.get(kind, ()):
        if key in part and not isinstance(part[key], str):
            say("part-shape", f"the {key} of a {kind} part must be a string")
    if kind in ("text", "reasoning") and "state" in part and part["state"] not in ("streaming", "done"):
        say("part-state", f"the state of a {kind} part must be streaming or done")


def _data(say: Say, kind: str, part: Fields) -> None:
    if "data" not in part:
        say("part-shape", f"a {kind} part needs its data")
    if "id" in part and not isinstance(part["id"], str):
        say("part-shape", f"the id of a {kind} part must be a string")


def _metadata(say: Say, kind: str, part: Fields) -> None:
    for key in _METADATA:
        value = part.get(key)
        fits = isinstance(value, dict) and all(isinstance(own, dict) for own in fields_of(value).values())
        if key in part and not fits:
            say("metadata-shape", f"the {key} of a {kind} part must hold an object for each provider")


def _tool(say: Say, kind: str, part: Fields) -> None:
    call_id, name = part.get("toolCallId"), part.get("toolName")
    if not isinstance(call_id, str) or not call_id:
        say("call-id", f"a {kind} part needs a toolCallId, a non-empty string")
    if (kind == DYNAMIC and not (isinstance(name, str) and name)) or kind == PREFIX:
        say("call-name", "a tool part needs its tool's name")
    for key in _FLAGS:
        if key in part and not isinstance(part[key], bool):
            say("part-shape", f"the {key} of a tool part must be true or false")
    if "toolMetadata" in part and not isinstance(part["toolMetadata"], dict):
        say("part-shape", "the toolMetadata of a tool part must be an object")
    state = part.get("state")
    if state not in (STREAMING, *OPEN, *ANSWERED):
        say("call-state", f"the state of a tool part cannot be {state!r}")
        return
    _input(say, str(state), part)
    _output(say, str(state), part)
    _approval(say, str(state), part)


def _input(say: Say, state: str, part: Fields) -> None:
    if state == STREAMING or "input" in part or (state == "output-error" and "rawInput" in part):
        return
    say("call-input", f"a tool part of state {state} needs its input")


def _output(say: Say, state: str, part: Fields) -> None:
    if state == "output-available" and "output" not in part:
        say("call-output", "a tool part of state output-available needs its output")
    if state == "output-error" and not isinstance(part.get("errorText"), str):
        say("call-error", "a tool part of state output-error needs an errorText, a string")
    if state != "output-available" and "output" in part:
        say("call-mixed", f"a tool part of state {state} has no output")
    if state != "output-error" and "errorText" in part:
        say("call-mixed", f"a tool part of state {state} has no errorText")


def _approval(say: Say, state: str, part: Fields) -> None:
    """Check that an approval was asked for, given or refused, as the state says."""
    if "approval" not in part:
        if state in ("approval-requested", "approval-responded", "output-denied"):
            say("call-approval", f"a tool part of state {state} needs its approval")
        return
    approval = fields_of(part["approval"])
    agreed, reason = approval.get("approved"), approval.get("reason")
    allowed = {
        "approval-requested": "approved" not in approval and "reason" not in approval,
        "approval-responded": isinstance(agreed, bool),
        "output-available": agreed is True,
        "output-error": agreed is True,
        "output-denied": agreed is False,
    }
    told = isinstance(approval.get("id"), str) and ("reason" not in approval or isinstance(reason, str))
    if not told or not allowed.get(state, False):
        say("call-approval", f"the approval of a tool part does not fit its state {state}")
