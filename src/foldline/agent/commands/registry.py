"""Every command by its name, and the running of a line that a user typed."""

from __future__ import annotations

from typing import Final

import msgspec

from foldline.agent.commands import boundaries, figures, places, rules, sessions
from foldline.agent.commands.command import Command, Outcome, command
from foldline.agent.host import Host
from foldline.errors import InputError, did_you_mean


@command("[COMMAND]")
async def help_(_host: Host, argument: str) -> str:
    """Say what the commands do."""
    if argument:
        found = named(argument.removeprefix("/"))
        return f"`/{usage(found)}`: {found.about}"
    lines = [f"- `/{usage(one)}`: {one.about}" for one in COMMANDS.values()]
    keys = "`@path` attaches a file or a picture, `@session` what another session says to your words."
    return "\n".join([*lines, "", keys])


@command()
async def exit_(_host: Host, _argument: str) -> Outcome:
    """Leave; the session is saved as it is."""
    return Outcome(leave=True)


SUBJECTS: Final = (boundaries, figures, places, rules, sessions)
COMMANDS: Final[dict[str, Command]] = {
    one.name: one
    for one in (
        *(one for subject in SUBJECTS for one in vars(subject).values() if isinstance(one, Command)),
        *(help_, exit_, msgspec.structs.replace(exit_, name="quit")),
    )
}


def usage(one: Command) -> str:
    """Return a command with its argument."""
    return f"{one.name} {one.hint}".rstrip()


def named(name: str) -> Command:
    """Return the command of a name; raises InputError with the closest one."""
    if name not in COMMANDS:
        raise InputError(f"no command /{name}{did_you_mean(name, COMMANDS)}; /help lists them")
    return COMMANDS[name]


def parsed(line: str) -> tuple[Command, str]:
    """Return the command of a line such as `/compact the tests`, and its argument."""
    name, _, argument = line.strip().removeprefix("/").partition(" ")
    return named(name), argument.strip()


async def run(host: Host, line: str) -> Outcome:
    """Run a line such as `/compact the tests`; raises FoldlineError for what cannot be done."""
    one, argument = parsed(line)
    if one.idle:
        host.check_idle()
    found = await one.run(host, argument)
    return found if isinstance(found, Outcome) else Outcome(found)
