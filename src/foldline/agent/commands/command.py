"""A command that a user types after a slash: its name, its argument, and what it answers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from foldline.agent.events import TurnEnded
from foldline.agent.host import Host

Takes = Literal["", "turn", "summary"]


class Outcome(msgspec.Struct, frozen=True):
    """What a command answers: Markdown, and a text for the editor. `leave`: the program is to end.

    `ended` is the end of the turn that it had the agent work on.
    """

    text: str = ""
    editor: str | None = None
    moved: bool = False  # another session, or another place in this one
    leave: bool = False
    ended: TurnEnded | None = None


Run = Callable[[Host, str], Awaitable[Outcome | str]]


class Command(msgspec.Struct, frozen=True):
    """A command; `hint` names its argument, `idle` says that it has to wait for the turn under way.

    `takes` says what it takes the time of: a turn of the agent, or a summary. An interrupt stops it.
    """

    name: str
    about: str
    run: Run
    hint: str = ""
    idle: bool = False
    takes: Takes = ""


def command(hint: str = "", *, idle: bool = False, takes: Takes = "") -> Callable[[Run], Command]:
    """Make a function a command of its name; the first line of its docstring is what users read of it."""

    def made(run: Run) -> Command:
        about = (inspect.getdoc(run) or "").partition("\n")[0]
        return Command(run.__name__.rstrip("_"), about, run, hint, idle, takes)

    return made
