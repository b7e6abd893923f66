"""The registry of rivals: functions from a budget to a fold, each with a package; and helpers for them."""

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

# the summary of systems whose model is replaced by a script
SUMMARY = "The work so far: files were read and edited, tests were run, some failed and were mended."

RIVALS: list[System] = []


def rival(
    package: str, *, replaces: bool = False, writer: bool = False, dialect: str = "openai-chat"
) -> Callable[[Callable[[int], Fold]], Callable[[int], Fold]]:
    """Register a function as a system, under its name with dashes; its docstring is the call."""

    def register(make: Callable[[int], Fold]) -> Callable[[int], Fold]:
        name, entry = make.__name__.replace("_", "-"), " ".join((make.__doc__ or "").split())
        system = System(
            name, "rival", entry, make, package, replaces=replaces, writer=writer, dialect=dialect
        )
        RIVALS.append(system)
        return make

    return register


def module(name: str) -> Any:
    """Import a module of a package that may not be installed; typed as Any."""
    return import_module(name)


def use_local_vocabulary() -> None:
    """Make tiktoken use LiteLLM's copy of the vocabulary, instead of downloading one."""
    litellm = find_spec("litellm")
    if litellm is not None and litellm.origin is not None:
        folder = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))


def temporary_folder() -> Callable[[], str]:
    """Create a temporary folder; return a function that returns its path, and deletes it when collected."""
    folder = TemporaryDirectory(prefix="foldline-bench-", ignore_cleanup_errors=True)
    return lambda: folder.name


def count_tokens(message: Any) -> int:
    """Count the tokens of a message, or of a text."""
    return len(str(message)) // 4


def run_async(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine and return its result; typed as Any."""
    return asyncio.run(coroutine)


def scripted_summary(*_: Any, **__: Any) -> str:
    """Return `SUMMARY`, in place of a model's."""
    return SUMMARY


def with_tool_names(messages: Messages) -> Messages:
    """Return messages whose results have the tool's name, which some frameworks require."""
    calls = (call for message in messages for call in message.get("tool_calls") or ())
    names = {call["id"]: call["function"]["name"] for call in calls}
    return [
        {**message, "name": names.get(message["tool_call_id"], "unknown")}
        if message["role"] == "tool"
        else message
        for message in messages
    ]
