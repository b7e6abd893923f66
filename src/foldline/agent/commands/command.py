"""Slash commands: what one is, and what it returns."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from foldline.agent.events import TurnEnded
from foldline.agent.host import Host

Takes = Literal["", "turn", "summary"]


class Outcome(msgspec.Struct, frozen=True):
    """The result of a command: Markdown, and a text for the editor. `leave` ends the program.

    `ended` is the end of the turn that the command ran.
    """

    text: str = ""
    editor: str | None = None
    moved: bool = False  # to another session or branch
    leave: bool = False
    ended: TurnEnded | None = None


Run = Callable[[Host, str], Awaitable[Outcome | str]]


class Command(msgspec.Struct, frozen=True):
    """A command; `hint` names its argument, an `idle` command may not run during a turn.

    `takes` says what it runs: a turn of the agent, or a summary. An interrupt stops it.
    """

    name: str
    about: str
    run: Run
    hint: str = ""
    idle: bool = False
    takes: Takes = ""


def command(hint: str = "", *, idle: bool = False, takes: Takes = "") -> Callable[[Run], Command]:
    """Turn a function into a command of its name; the first line of its docstring is its help."""

    def decorate(run: Run) -> Command:
        about = (inspect.getdoc(run) or "").partition("\n")[0]
        return Command(run.__name__.rstrip("_"), about, run, hint, idle, takes)

    return decorate
