"""A command is a function: its parameters are its options, its docstring is its help.

    @command("foldline sessions --store sqlite:///team.db --json")
    def sessions(store_url: str | None = STORE) -> Shown: ...

A parameter's default says what it is: `target: int | None = option("The budget in tokens")`. Its name gives
that of the option, its type what is taken: an integer is positive, a path need not exist, a bool is a switch,
a tuple is given any number of times. A parameter that is a struct stands for the options that its fields
describe. What a command returns is printed in one place: as text, or with --json as one document.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import click
import msgspec

from foldline.cli.completions import completed
from foldline.cli.output import print_json
from foldline.dialects import names
from foldline.errors import did_you_mean

TOKENS = click.IntRange(min=1)


class OneOf(click.Choice[str]):
    """A choice of names that says which known one is close to a wrong one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice; raises BadParameter, with the closest one, for any other value."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.rstrip('.')}{did_you_mean(str(value), self.choices)}.", param, ctx)


class Shown(NamedTuple):
    """What a command found: a document for --json, and how people are shown it; then the exit code."""

    document: Callable[[], Any] | None  # None: standard output has something else
    show: Callable[[], None]
    code: int = 0


# ---- parameters

_TYPES: dict[Any, Any] = {int: TOKENS, Path: click.Path(path_type=Path)}


class _Parameter(NamedTuple):
    """The flags of a parameter (None for an argument), and its settings for click beside its type."""

    flags: tuple[str, ...] | None
    settings: dict[str, Any]

    def made(self, name: str, kind: Any) -> click.Parameter:
        """Return the parameter of a name and a type."""
        args = [one for one in get_args(kind) if one not in (NoneType, ...)]
        one = args[0] if args else kind
        several = get_origin(kind) is tuple
        chosen: dict[str, Any] = {
            "type": OneOf(args) if get_origin(kind) is Literal else _TYPES.get(one, one)
        }
        flags = self.flags or (() if self.flags is None else (f"--{name.replace('_', '-')}",))
        if get_origin(kind) is not Literal:
            chosen["shell_complete"] = completed(flags, self.settings.get("metavar", ""))
        if self.flags is None:
            chosen |= {"nargs": -1 if several else 1, "required": True, **self.settings}
            return click.Argument([name], **chosen)
        if kind is bool:
            chosen = {"is_flag": True, "default": False}
        elif several:
            chosen["multiple"] = True
        elif "default" in self.settings:
            chosen["show_default"] = True
        else:
            chosen["required"] = NoneType not in get_args(kind)
        if one is int:
            chosen["metavar"] = "N"
        chosen |= self.settings
        return click.Option([name, *flags], **chosen)


def option(about: str, *flags: str, **more: Any) -> Any:
    """Describe an option; `flags` are its names where that of the parameter is not its name."""
    return _Parameter(flags, {"help": about, **more})


def argument(metavar: str, **more: Any) -> Any:
    """Describe an argument."""
    return _Parameter(None, {"metavar": metavar, **more})


def parameters(function: Callable[..., Any]) -> list[click.Parameter]:
    """Return what the parameters of a function, or the fields of a struct, describe."""
    made: list[click.Parameter] = []
    hints = get_type_hints(function)
    for name, one in inspect.signature(function).parameters.items():
        if name in _structs(hints):
            made += parameters(hints[name])
        else:
            made.append(one.default.made(name, hints[name]))
    return made


def _structs(hints: dict[str, Any]) -> dict[str, type[msgspec.Struct]]:
    """Return the parameters that are structs of options."""
    return {
        name: kind
        for name, kind in hints.items()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    }


def command(*lines: str, json: bool = True) -> Callable[[Callable[..., Shown | None]], click.Command]:
    """Make a function a command; `lines` are examples of its use. With `json` it takes --json.

    Such a function returns a Shown, or None where it has printed all there is to say.
    """

    def made(function: Callable[..., Shown | None]) -> click.Command:
        structs = _structs(get_type_hints(function))

        def run(**given: Any) -> None:
            as_json = json and given.pop("as_json")
            for name, kind in structs.items():
                given[name] = kind(**{field: given.pop(field) for field in kind.__struct_fields__})
            found = function(**given)
            if found is not None:
                _shown(found, as_json=as_json)

        takes = [*parameters(function), *([JSON] if json else [])]
        name = function.__name__.rstrip("_")
        return click.Command(
            name, params=takes, callback=run, help=inspect.getdoc(function), epilog=examples(lines)
        )

    return made


def examples(lines: Iterable[str]) -> str:
    """Return examples as they stand under a command's help."""
    return "\n".join(["\b", "Examples:", *(f"  {line}".rstrip() for line in lines)])


def _shown(found: Shown, *, as_json: bool) -> None:
    if not as_json:
        found.show()
    elif found.document is not None:
        print_json(found.document())
    if found.code:
        click.get_current_context().exit(found.code)


# ---- what several commands take

JSON = click.Option(["as_json", "--json"], is_flag=True, help="Print one JSON document instead of text.")
STORE = option(
    "Where sessions live: sqlite:///FILE, postgresql://...  "
    "[default: the settings', else ~/.foldline/foldline.db]",
    "--store",
    metavar="URL",
)
FILE = argument("FILE", type=click.Path(path_type=str))
SOURCE = argument("FILE|ID")
POLICIES = option("A TOML file with policies of your own.", "--policies")
POLICY = option(
    "A preset, or one of your own  [default: the settings', else foldline]", "--policy", metavar="NAME"
)
PLOTS = option("Draw it, one session: OUT.html, OUT.png or OUT.svg.", "--plot", metavar="OUT")
DIALECT = option("Write the messages in this dialect.", type=OneOf(names()))
FROM_START = option("Fold everything said, not from the file's newest compaction on.")
