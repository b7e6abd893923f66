"""The words in which OpenAI's two APIs refuse what a rule of their dialects finds.

The texts are those of error reports in public issue trackers (2024 to 2026); where none was found the
field is named in the form of the API's other messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from foldline.dialects.values import Problem
from foldline.testing.refusals import Refusal

_QUOTED: Final = re.compile(r"'([^']*)'")
_ROLES: Final = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
_EMPTY: Final = "empty array. Expected an array with minimum length 1, but got an empty array instead."


def bad(text: str, param: str | None = None, code: str | None = None) -> Refusal:
    """Return the refusal of a bad request."""
    return Refusal(400, text, kind="invalid_request_error", param=param, code=code)


def missing(param: str) -> Refusal:
    """Return the refusal of a request without a parameter that it needs."""
    return bad(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def chat(problems: Sequence[Problem], messages: Sequence[Any]) -> Refusal:
    """Return what Chat Completions says of the first problem."""
    problem = problems[0]
    say = _CHAT.get(problem.rule)
    if say is not None:
        return say(problem, problems, messages)
    return bad(
        f"Invalid 'messages[{problem.index}]': {problem.text}.", f"messages[{problem.index}]", "invalid_value"
    )


Saying = Callable[[Problem, Sequence[Problem], Sequence[Any]], Refusal]


def _list(*_: Any) -> Refusal:
    return bad(f"Invalid 'messages': {_EMPTY}", "messages", "empty_array")


def _role(problem: Problem, _problems: Sequence[Problem], messages: Sequence[Any]) -> Refusal:
    role = _field(messages[problem.index], "role")
    param = f"messages[{problem.index}].role"
    if role is None:
        return missing(param)
    return bad(f"Invalid value: '{role}'. Supported values are: {_ROLES}.", param, "invalid_value")


def _orphan(problem: Problem, *_: Any) -> Refusal:
    return bad(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
        "'tool_calls'.",
        f"messages.[{problem.index}].role",
    )


def _unanswered(problem: Problem, problems: Sequence[Problem], _messages: Sequence[Any]) -> Refusal:
    same = [p for p in problems if p.rule == "result-missing" and p.index == problem.index]
    ids = ", ".join(found[1] for p in same if (found := _QUOTED.search(p.text)))
    return bad(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {ids}",
        f"messages.[{problem.index + 1}].role",
    )


def _twice(problem: Problem, _problems: Sequence[Problem], messages: Sequence[Any]) -> Refusal:
    call_id = _field(messages[problem.index], "tool_call_id")
    return bad(f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{problem.index}].", "messages")


def _null(problem: Problem, *_: Any) -> Refusal:
    return bad(
        "Invalid value for 'content': expected a string, got null.", f"messages.[{problem.index}].content"
    )


def _empty(field: str) -> Saying:
    def say(problem: Problem, *_: Any) -> Refusal:
        param = f"messages[{problem.index}].{field}"
        return bad(f"Invalid '{param}': {_EMPTY}", param, "empty_array")

    return say


def _part(problem: Problem, *_: Any) -> Refusal:
    named = _QUOTED.search(problem.text)
    kind = named[1] if named else ""
    return bad(
        f"Invalid value: '{kind}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', "
        "'audio', "
        "and 'file'.",
        f"messages[{problem.index}].content[0].type",
        "invalid_value",
    )


def _absent(field: str) -> Saying:
    def say(problem: Problem, *_: Any) -> Refusal:
        return missing(f"messages[{problem.index}].{field}")

    return say


_CHAT: Final[dict[str, Saying]] = {
    "list": _list,
    "role": _role,
    "result-orphan": _orphan,
    "result-missing": _unanswered,
    "result-duplicate": _twice,
    "result-id": _absent("tool_call_id"),
    "call-id": _absent("tool_calls[0].id"),
    "content-null": _null,
    "content-empty": _empty("content"),
    "calls-empty": _empty("tool_calls"),
    "part-type": _part,
}


def responses(problems: Sequence[Problem], items: Sequence[Any]) -> Refusal:
    """Return what the Responses API says of the first problem."""
    problem = problems[0]
    named = _QUOTED.search(problem.text)
    name = named[1] if named else ""
    if problem.rule == "list":
        return bad(f"Invalid 'input': {_EMPTY}", "input", "empty_array")
    if problem.rule == "result-orphan":
        return bad(f"No tool call found for function call output with call_id {name}.", "input")
    if problem.rule == "result-missing":
        return bad(f"No tool output found for function call {name}.", "input")
    if problem.rule == "reasoning-last":
        item_id = _field(items[problem.index], "id")
        return bad(
            f"Item '{item_id}' of type 'reasoning' was provided without its required following item.", "input"
        )
    if problem.rule == "item-duplicate":
        return bad(
            f"Duplicate item found with id {name}. Remove duplicate items from your input and try again.",
            "input",
        )
    param = f"input[{problem.index}]" if problem.index >= 0 else "instructions"
    return bad(f"Invalid '{param}': {problem.text}.", param, "invalid_value")


def _field(message: Any, key: str) -> Any:
    return cast("dict[str, Any]", message).get(key) if isinstance(message, dict) else None
