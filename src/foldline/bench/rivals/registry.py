"""Registration of rivals: each is a function from a budget to a fold, with a name and a package."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
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


def with_vocabulary() -> None:
    """Let tiktoken use LiteLLM's copy of the vocabulary, instead of downloading one."""
    litellm = find_spec("litellm")
    if litellm is not None and litellm.origin is not None:
        place = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(place))


def folder() -> Callable[[], str]:
    """Create a temporary folder, deleted with the returned function, which returns its path."""
    place = TemporaryDirectory(prefix="foldline-bench-", ignore_cleanup_errors=True)
    return lambda: place.name


def count(message: Any) -> int:
    """Count the tokens of a message, or of a text."""
    return len(str(message)) // 4


def wait(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end."""
    return asyncio.run(coroutine)


def note(*_: Any, **__: Any) -> str:
    """Write a summary instead of a model."""
    return NOTE


def named(messages: Messages) -> Messages:
    """Return messages whose results have the tool's name, as some frameworks need."""
    names = {call["id"]: call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()}
    return [
        {**one, "name": names.get(one["tool_call_id"], "unknown")} if one["role"] == "tool" else one
        for one in messages
    ]
