"""Check the arguments of `open`, `compact` and other calls; an error names the argument and what to give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from foldline.core.measure.window import Window
from foldline.errors import InputError
from foldline.providers import choose


def _has_name_and(value: Any, method: str) -> bool:
    """Return whether a value is an object with a `name` and this method."""
    has_name = isinstance(getattr(value, "name", None), str)
    return has_name and not isinstance(value, type) and callable(getattr(value, method, None))


def _is_tools(value: Any) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return not any(
        isinstance(item, str | bytes | int | float | None) for item in cast("Sequence[Any]", value)
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_window(value: Any) -> bool:
    if not isinstance(value, Window):
        return _is_count(value)
    limits = (value.context, value.output, value.context if value.input is None else value.input)
    return all(_is_count(limit) and limit > 0 for limit in limits)


_TOKENS: Final = "give a whole number of tokens, such as {name}=32_000"
_ARGUMENTS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "model": (
        lambda value: isinstance(value, str) and bool(value),
        "give a name such as model='anthropic:claude-sonnet-4-5'",
    ),
    "window": (_is_window, _TOKENS),
    "target": (_is_count, _TOKENS),
    "system": (
        lambda value: isinstance(value, str | list | tuple | dict),
        "give the system prompt as a text, or as a list of blocks",
    ),
    "tools": (_is_tools, "give a list of the definitions that you send to the model"),
    "counter": (
        lambda value: _has_name_and(value, "count"),
        "give an object with a `name` and `count(text)`, or leave it out",
    ),
    "summarizer": (
        lambda value: _has_name_and(value, "summarize"),
        "give an object with a `name` and `async def summarize(request)`",
    ),
    "session": (
        lambda value: isinstance(value, str) and bool(value),
        "give the session's id as a text, such as 'my-session'",
    ),
}
"""The check of each argument, and the advice if it fails; any other argument must be a text."""
_REQUIRED: Final = frozenset({"counter", "other", "query", "session"})  # may not be None


def check(**arguments: object) -> None:
    """Raise InputError for the first argument that is not what its name requires."""
    for name, value in arguments.items():
        fits, advice = _ARGUMENTS.get(
            name, (lambda value: isinstance(value, str), "give a text ({name}='...'), or leave it out")
        )
        if value is None and name not in _REQUIRED:
            continue
        if not fits(value):
            raise InputError(f"{name} = {value!r}: {advice.format(name=name)}")
        if _is_count(value) and value <= 0:  # type: ignore[operator]
            raise InputError(f"{name} = {value}: give a positive number of tokens")


def check_writer(model: str, *, known: bool) -> None:
    """Raise InputError for a model without a usable provider, unless its window is `known`."""
    if known:
        return
    try:
        choose.missing(model)
    except InputError as error:
        raise InputError(f"model = {model!r} cannot write summaries: {error}") from error
