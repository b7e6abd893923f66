"""The rules of a list of UI messages, one name each; see docs/dialects.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from foldline.dialects.payload import is_list, read
from foldline.dialects.ui_message.part_rules import check_part, is_tool_type
from foldline.dialects.ui_message.read import ROLES
from foldline.dialects.ui_message.tools import OPEN
from foldline.dialects.values import Problem, Say, check_text, reporter
from foldline.errors import DialectError


def validate(messages: Sequence[Any], system: Any = None) -> list[Problem]:
    """Return every rule that a list (and its system prompt) breaks, in message order.

    Empty if `validateUIMessages` accepts the list and `convertToModelMessages` makes a request of it that a
    provider accepts, except for calls still waiting at its end. Reads dicts and JSON bytes; never raises.
    """
    problems: list[Problem] = []
    if system is not None and not isinstance(system, str):
        problems.append(Problem(-1, "system", "the system prompt must be a string"))
    check_text(reporter(problems, -1), system)
    if not is_list(messages) or not messages:
        problems.append(Problem(-1, "list", "messages must be a list with at least one message"))
        return problems
    for index, payload in enumerate(messages):
        say = reporter(problems, index)
        try:
            body, _ = read(payload, index)
        except DialectError as error:
            say("message", str(error))
            continue
        check_text(say, body)
        _message(say, body, last=index == len(messages) - 1)
    return problems


def _message(say: Say, body: dict[str, Any], *, last: bool) -> None:
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
    parts: list[dict[str, Any]] = []
    for native in cast("list[Any]", natives):
        if not isinstance(native, dict):
            say("part-type", "a part must be an object")
            continue
        parts.append(cast("dict[str, Any]", native))
        check_part(say, role, parts[-1])
    if role == "assistant":
        _calls(say, parts, last=last)


def _calls(say: Say, parts: Sequence[dict[str, Any]], *, last: bool) -> None:
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
