"""A tool: what the model is told of it, what it does, and what it needs permission for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from foldline.agent.permissions import PermissionRequest
from foldline.core.log.messages import Media
from foldline.session.tools import Tool

Arguments = dict[str, Any]


class Output(msgspec.Struct, frozen=True):
    """What a tool answers: a text, pictures beside it, and whether it failed."""

    text: str
    media: tuple[Media, ...] = ()
    failed: bool = False


class AgentTool(msgspec.Struct, frozen=True):
    """A tool of the agent's.

    `run` gets checked arguments; it raises InputError with words for the model. `reads`: it changes nothing,
    so that it may run beside others. `asks` says what it needs permission for (None: nothing).
    """

    about: Tool
    run: Callable[[Arguments], Awaitable[Output | str]]
    reads: bool = False
    asks: Callable[[Arguments], PermissionRequest | None] = lambda _: None


def text(description: str, *, empty: bool = False) -> dict[str, Any]:
    """Return the schema of a string, which may be `empty` where that says something."""
    return {"type": "string", "description": description, **({"minLength": 0} if empty else {})}


def number(description: str, least: int = 1) -> dict[str, Any]:
    """Return the schema of a whole number."""
    return {"type": "integer", "description": description, "minimum": least}


def flag(description: str) -> dict[str, Any]:
    """Return the schema of a switch."""
    return {"type": "boolean", "description": description}
