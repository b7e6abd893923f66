"""Tools that a model may call: their definitions in each dialect, and the check of a call's arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from foldline.dialects.values import (
    ANTHROPIC,
    BEDROCK_CONVERSE,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    UI_MESSAGE,
)
from foldline.errors import InputError

KINDS_OF_VALUES: Final[dict[str, tuple[type, str]]] = {
    "string": (str, "a string"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}
"""The Python types for the types of JSON Schema, and how errors name them."""


class Tool(msgspec.Struct, frozen=True):
    """A tool that a model may call; `parameters` maps each name to its JSON Schema.

    `foreign` is the whole schema of an external tool, which checks its arguments itself.
    """

    name: str
    description: str
    parameters: dict[str, dict[str, Any]] = {}
    required: tuple[str, ...] = ()
    foreign: dict[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        if self.foreign is not None:
            return self.foreign
        return {
            "type": "object",
            "properties": self.parameters,
            "required": list(self.required),
            "additionalProperties": False,
        }


FORMS: Final[dict[str, Callable[[dict[str, str], dict[str, Any]], dict[str, Any]]]] = {
    ANTHROPIC: lambda named, schema: {**named, "input_schema": schema},
    BEDROCK_CONVERSE: lambda named, schema: {"toolSpec": {**named, "inputSchema": {"json": schema}}},
    GEMINI: lambda named, schema: {**named, "parametersJsonSchema": schema},
    OPENAI_CHAT: lambda named, schema: {"type": "function", "function": {**named, "parameters": schema}},
    OPENAI_RESPONSES: lambda named, schema: {
        "type": "function",
        **named,
        "parameters": schema,
        "strict": False,
    },
    UI_MESSAGE: lambda named, schema: {"type": "function", **named, "inputSchema": schema},
}
"""The form of a definition in each dialect, from the name and description, and the schema of the arguments.

In `gemini` it is one of a tool's functionDeclarations, in `ui-message` a function tool of the AI SDK.
"""


def definitions(dialect: str, tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return tool definitions in the form of a dialect's API; raises InputError for an unknown dialect."""
    form = FORMS.get(dialect)
    if form is None:
        raise InputError(f"tools cannot be defined in dialect {dialect!r}, only in {', '.join(FORMS)}")
    return [form({"name": tool.name, "description": tool.description}, tool.schema) for tool in tools]


def arguments_of(tool: Tool, raw: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Return a call's arguments, checked; raises InputError with a text for the model if they are wrong."""
    values = _parsed(raw)
    if tool.foreign is not None:
        return values
    if missing := [name for name in tool.required if _is_missing(values.get(name), tool.parameters[name])]:
        raise InputError(f"{tool.name} needs {', '.join(missing)}")
    if unknown := [name for name in values if name not in tool.parameters]:
        raise InputError(f"{tool.name} takes {', '.join(tool.parameters)}, not {', '.join(unknown)}")
    for name, value in values.items():
        kind, kind_name = KINDS_OF_VALUES.get(str(tool.parameters[name].get("type")), (object, ""))
        valid = isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool))
        if value is not None and not valid:
            raise InputError(f"{tool.name}: {name} must be {kind_name}")
    return {name: value for name, value in values.items() if value is not None}


def _is_missing(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value is missing; an empty text is, unless its schema has `minLength` 0."""
    return value is None or (value == "" and schema.get("minLength") != 0)


def _parsed(raw: Mapping[str, Any] | str | None) -> dict[str, Any]:
    if isinstance(raw, str):
        try:
            raw = json.loads(raw) if raw.strip() else {}
        except ValueError as error:
            raise InputError(f"the arguments are not JSON ({error})") from error
    if raw is not None and not isinstance(raw, Mapping):
        raise InputError("the arguments must be a JSON object")
    return dict(cast("Mapping[str, Any]", raw or {}))
