"""How a rival is written: a function of a budget that returns its fold, with what it is called and needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from foldline.bench.system import Fold, Messages, System

NOTE = (
    "The work so far: files were read and edited, tests were run, some failed and were mended."  # of a script
)

RIVALS: list[System] = []


def rival(
    package: str, *, replaces: bool = False, writer: bool = False, dialect: str = "openai-chat"
) -> Callable[[Callable[[int], Fold]], Callable[[int], Fold]]:
    """Register a function as a system: its name, with dashes, is the system's, its docstring the call."""

    def registered(make: Callable[[int], Fold]) -> Callable[[int], Fold]:
        name, entry = make.__name__.replace("_", "-"), " ".join((make.__doc__ or "").split())
        system = System(
            name, "rival", entry, make, package, replaces=replaces, writer=writer, dialect=dialect
        )
        RIVALS.append(system)
        return make

    return registered


def module(name: str) -> Any:
    """Import a module of a package that need not be installed."""
    return import_module(name)


def wait(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end."""
    return asyncio.run(coroutine)


def note(*_: Any, **__: Any) -> str:
    """Write a summary in place of a model."""
    return NOTE


def named(messages: Messages) -> Messages:
    """Return messages whose results name the tool, as some frameworks want them."""
    names = {call["id"]: call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()}
    return [
        {**one, "name": names.get(one["tool_call_id"], "unknown")} if one["role"] == "tool" else one
        for one in messages
    ]


def calls(message: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the calls of a message: id, name, arguments."""
    found = message.get("tool_calls") or ()
    return [
        (one["id"], one["function"]["name"], json.loads(one["function"]["arguments"] or "{}"))
        for one in found
    ]
