"""What callers give to `open` and `compact`: refused by name at the door, with what to give instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from foldline.core.measure.window import Window
from foldline.errors import InputError
from foldline.providers import choose

_A_MODEL = "give a name such as model='anthropic:claude-sonnet-4-5'"


def check_tokens(name: str, value: object) -> None:
    """Raise InputError unless a value is a number of tokens that something fits into."""
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(name, value, f"give a whole number of tokens, such as {name}=32_000")
    if value <= 0:
        raise InputError(f"a {name} of {value} tokens holds nothing: give a positive number")


def check_window(window: object) -> None:
    """Raise InputError unless it is None, a `Window` or a number of tokens."""
    if window is not None and not isinstance(window, Window):
        check_tokens("window", window)


def check_target(target: object) -> None:
    """Raise InputError unless it is None or a number of tokens."""
    if target is not None:
        check_tokens("target", target)


def check_text(name: str, value: object) -> None:
    """Raise InputError unless it is None or a text."""
    if value is not None and not isinstance(value, str):
        _refuse(name, value, f"give a text ({name}='...'), or leave it out")


def check_model(model: object) -> None:
    """Raise InputError unless it is None or a model's name."""
    if model is not None and (not isinstance(model, str) or not model):
        _refuse("model", model, _A_MODEL)


def check_writer(model: str, *, known: bool) -> None:
    """Raise InputError for a model that neither can be asked for a summary nor has a `known` window."""
    if known:
        return
    try:
        choose.missing(model)
    except InputError as error:
        raise InputError(f"model = {model!r} can write no summary: {error}") from error


def check_session(session: object) -> None:
    """Raise InputError unless it is a session's id."""
    if not isinstance(session, str) or not session:
        _refuse("session", session, "give the session's id as a text, such as 'my-session'")


def check_tools(tools: Any) -> None:
    """Raise InputError unless it is None or a list of tool definitions."""
    if tools is None:
        return
    if not isinstance(tools, list | tuple) or any(isinstance(tool, str | bytes) for tool in _items(tools)):
        _refuse("tools", tools, "give a list of the definitions that you send to the model")


def _items(value: Any) -> Sequence[object]:
    return value


def check_system(system: object) -> None:
    """Raise InputError unless it is None, a text or a list of blocks."""
    if system is not None and not isinstance(system, str | list | tuple | dict):
        _refuse("system", system, "give the system prompt as a text, or as a list of blocks")


def check_summarizer(summarizer: object) -> None:
    """Raise InputError unless it is None or has what `foldline.Summarizer` asks for."""
    if summarizer is None:
        return
    named = isinstance(getattr(summarizer, "name", None), str)
    if isinstance(summarizer, type) or not named or not callable(getattr(summarizer, "summarize", None)):
        _refuse("summarizer", summarizer, "give an object with a `name` and `async def summarize(request)`")


def check_counter(counter: object) -> None:
    """Raise InputError unless it has what `foldline.Counter` asks for."""
    named = isinstance(getattr(counter, "name", None), str)
    if isinstance(counter, type) or not named or not callable(getattr(counter, "count", None)):
        _refuse("counter", counter, "give an object with a `name` and `count(text)`, or leave it out")


def check_shared(
    *,
    model: object,
    window: object,
    dialect: object,
    system: object,
    tools: object,
    counter: object,
    summarizer: object,
) -> None:
    """Check the arguments that `open` and `compact` share."""
    check_model(model)
    check_window(window)
    check_text("dialect", dialect)
    check_system(system)
    check_tools(tools)
    check_counter(counter)
    check_summarizer(summarizer)


def _refuse(name: str, value: Any, advice: str) -> NoReturn:
    raise InputError(f"{name} = {value!r}: {advice}")
