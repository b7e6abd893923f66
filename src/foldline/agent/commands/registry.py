"""All commands by name, and running a line that a user typed."""

from __future__ import annotations

from typing import Final

import msgspec

from foldline.agent.commands import boundaries, figures, places, rules, sessions
from foldline.agent.commands.command import Command, Outcome, command
from foldline.agent.host import Host
from foldline.errors import InputError, did_you_mean


@command("[COMMAND]")
async def help_(_host: Host, argument: str) -> str:
    """Show what the commands do."""
    if argument:
        return _help_line(find_command(argument.removeprefix("/")))
    lines = [f"- {_help_line(one)}" for one in COMMANDS.values()]
    references = "`@path` attaches a file or a picture, `@session` matching messages of another session."
    return "\n".join([*lines, "", references])


@command()
async def exit_(_host: Host, _argument: str) -> Outcome:
    """Leave; the session is saved."""
    return Outcome(leave=True)


SUBJECTS: Final = (boundaries, figures, places, rules, sessions)
COMMANDS: Final[dict[str, Command]] = {
    one.name: one
    for one in (
        *(one for subject in SUBJECTS for one in vars(subject).values() if isinstance(one, Command)),
        *(help_, exit_, msgspec.structs.replace(exit_, name="quit")),
    )
}


def _help_line(one: Command) -> str:
    return f"`/{f'{one.name} {one.hint}'.rstrip()}`: {one.about}"


def find_command(name: str) -> Command:
    """Return a command by name; raises InputError with the closest name."""
    if name not in COMMANDS:
        raise InputError(f"no command /{name}{did_you_mean(name, COMMANDS)}; /help lists them")
    return COMMANDS[name]


def parse_line(line: str) -> tuple[Command, str]:
    """Return the command and the argument of a line such as `/compact the tests`."""
    name, _, argument = line.strip().removeprefix("/").partition(" ")
    return find_command(name), argument.strip()


async def run(host: Host, line: str) -> Outcome:
    """Run a line such as `/compact the tests`; raises FoldlineError if that fails."""
    found, argument = parse_line(line)
    if found.idle:
        host.check_idle()
    result = await found.run(host, argument)
    return result if isinstance(result, Outcome) else Outcome(result)
