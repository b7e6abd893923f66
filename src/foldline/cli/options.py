"""A command is a function: its parameters are the options, its docstring is the help.

    @command("foldline sessions --store sqlite:///team.db --json")
    def sessions(store_url: str | None = STORE) -> Shown: ...

The default of a parameter describes its option: `target: int | None = option("The budget in tokens")`. The
option has the parameter's name and type: an integer is positive, a path need not exist, a bool is a flag, a
tuple may be repeated. The fields of a struct parameter are options, too. The result of a command is printed
as text, or with --json as one document.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import click
import msgspec

from foldline.cli.completions import completion_for
from foldline.cli.output import print_json
from foldline.dialects import names
from foldline.errors import did_you_mean

TOKENS = click.IntRange(min=1)


class OneOf(click.Choice[str]):
    """A choice of names that suggests the closest one for a wrong name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice; raises BadParameter, with the closest choice, for any other value."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.rstrip('.')}{did_you_mean(str(value), self.choices)}.", param, ctx)


class Shown(NamedTuple):
    """The result of a command: a document for --json, a function that prints it, and the exit code."""

    document: Callable[[], Any] | None  # None: standard output is used for something else
    show: Callable[[], None]
    code: int = 0


# ---- parameters

_TYPES: dict[Any, Any] = {int: TOKENS, Path: click.Path(path_type=Path)}


class _Parameter(NamedTuple):
    """The flags of a parameter (None for an argument), and its click settings except the type."""

    flags: tuple[str, ...] | None
    settings: dict[str, Any]

    def parameter(self, name: str, kind: Any) -> click.Parameter:
        """Return the click parameter for a name and a type."""
        args = [arg for arg in get_args(kind) if arg not in (NoneType, ...)]
        item = args[0] if args and get_origin(kind) is not Literal else kind
        choices = get_args(item) if get_origin(item) is Literal else ()
        repeatable = get_origin(kind) is tuple
        settings: dict[str, Any] = {"type": OneOf(choices) if choices else _TYPES.get(item, item)}
        flags = self.flags or (() if self.flags is None else (f"--{name.replace('_', '-')}",))
        if not choices:
            settings["shell_complete"] = completion_for(flags, self.settings.get("metavar", ""))
        if self.flags is None:
            settings |= {"nargs": -1 if repeatable else 1, "required": True, **self.settings}
            return click.Argument([name], **settings)
        if kind is bool:
            settings = {"is_flag": True, "default": False}
        elif repeatable:
            settings["multiple"] = True
        elif "default" in self.settings:
            settings["show_default"] = True
        else:
            settings["required"] = NoneType not in get_args(kind)
        if item is int:
            settings["metavar"] = "N"
        settings |= self.settings
        return click.Option([name, *flags], **settings)


def option(about: str, *flags: str, **settings: Any) -> Any:
    """Describe an option; `flags` replace the name of the parameter."""
    return _Parameter(flags, {"help": about, **settings})


def argument(metavar: str, **settings: Any) -> Any:
    """Describe an argument."""
    return _Parameter(None, {"metavar": metavar, **settings})


def parameters(function: Callable[..., Any]) -> list[click.Parameter]:
    """Return the click parameters of a function, or of the fields of a struct."""
    found: list[click.Parameter] = []
    hints = get_type_hints(function)
    for name, described in inspect.signature(function).parameters.items():
        if name in _structs(hints):
            found += parameters(hints[name])
        else:
            found.append(described.default.parameter(name, hints[name]))
    return found


def _structs(hints: dict[str, Any]) -> dict[str, type[msgspec.Struct]]:
    """Return the parameters that are structs of options."""
    return {
        name: kind
        for name, kind in hints.items()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    }


def command(*lines: str, json: bool = True) -> Callable[[Callable[..., Shown | None]], click.Command]:
    """Turn a function into a command; `lines` are examples of its use. With `json` it takes --json.

    The function returns a Shown, or None if it printed everything itself.
    """

    def decorate(function: Callable[..., Shown | None]) -> click.Command:
        structs = _structs(get_type_hints(function))

        def run(**values: Any) -> None:
            as_json = json and values.pop("as_json")
            for name, kind in structs.items():
                values[name] = kind(**{field: values.pop(field) for field in kind.__struct_fields__})
            result = function(**values)
            if result is not None:
                _print_result(result, as_json=as_json)

        params = [*parameters(function), *([JSON] if json else [])]
        name = function.__name__.rstrip("_")
        return click.Command(
            name, params=params, callback=run, help=inspect.getdoc(function), epilog=examples(lines)
        )

    return decorate


def examples(lines: Iterable[str]) -> str:
    """Return examples as click prints them unwrapped at the end of a help."""
    return "\n".join(["\b", "Examples:", *(f"  {line}".rstrip() for line in lines)])


def _print_result(result: Shown, *, as_json: bool) -> None:
    if not as_json:
        result.show()
    elif result.document is not None:
        print_json(result.document())
    if result.code:
        click.get_current_context().exit(result.code)


# ---- parameters of several commands

JSON = click.Option(["as_json", "--json"], is_flag=True, help="Print one JSON document instead of text.")
STORE = option(
    "The store of sessions: sqlite:///FILE, postgresql://...  "
    "[default: the settings', else ~/.foldline/foldline.db]",
    "--store",
    metavar="URL",
)
FILE = argument("FILE", type=click.Path(path_type=str))
SOURCE = argument("FILE|ID")
POLICIES = option("A TOML file with your own policies.", "--policies")
POLICY = option(
    "A preset, or your own policy  [default: the settings', else foldline]", "--policy", metavar="NAME"
)
FOCUS = option("What the summary should focus on.", metavar="TEXT")
PLOTS = option("Plot one session to OUT.html, OUT.png or OUT.svg.", "--plot", metavar="OUT")
DIALECT = option("Write the messages in this dialect.", type=OneOf(names()))
RECORDED_WINDOW = option(
    "The context window, in tokens  [default: the file's own, else its model's, else 200000]"
)
JOBS = option("Processes for several files  [default: one per core]")
FROM_START = option("Fold the whole session, not only from the file's newest compaction on.")
