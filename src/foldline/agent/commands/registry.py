"""Every command by its name, and the running of a line that a user typed."""

from __future__ import annotations

from typing import Final

from foldline.agent.commands import boundaries, figures, places, rules, sessions
from foldline.agent.commands.command import Command, Outcome
from foldline.agent.host import Host
from foldline.errors import InputError, did_you_mean


async def _help(_host: Host, argument: str) -> str:
    """Say what the commands do."""
    if argument:
        command = named(argument.removeprefix("/"))
        return f"`/{command.name}{f' {command.hint}' if command.hint else ''}`: {command.about}"
    lines = [f"- `/{one.name}{f' {one.hint}' if one.hint else ''}`: {one.about}" for one in COMMANDS.values()]
    keys = "`@path` attaches a file or a picture, `@session` what another session says to your words."
    return "\n".join([*lines, "", keys])


async def _leave(_host: Host, _argument: str) -> Outcome:
    return Outcome(leave=True)


COMMANDS: Final[dict[str, Command]] = {
    one.name: one
    for one in (
        *boundaries.COMMANDS,
        *figures.COMMANDS,
        *places.COMMANDS,
        *rules.COMMANDS,
        *sessions.COMMANDS,
        Command("help", "Say what the commands do.", _help, "[COMMAND]"),
        Command("exit", "Leave; the session is saved as it is.", _leave),
        Command("quit", "Leave; the session is saved as it is.", _leave),
    )
}


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
    command, argument = parsed(line)
    if command.idle:
        host.check_idle()
    found = await command.run(host, argument)
    return found if isinstance(found, Outcome) else Outcome(found)
