"""/branch, /fork, /rewind, /tree, /merge: other points and branches of the session, and copies of it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from foldline.agent.commands.command import Outcome, command
from foldline.agent.host import Host
from foldline.core.log.entries import Said
from foldline.errors import InputError
from foldline.session.tree import Branch

LONGEST = 90  # characters of a message in a list


class UserPrompt(msgspec.Struct, frozen=True):
    """A user message on the path: its entry, its text, and whether it is folded out of the view."""

    entry: str
    text: str
    folded: bool


async def user_prompts(host: Host) -> list[UserPrompt]:
    """Return all user messages on the path, including folded ones, oldest first."""
    session = host.session
    folded = {info.entry for info in await session.entries() if info.how == "folded"}
    path = session.store.path(session.id)
    said = [entry async for entry in path if isinstance(entry, Said) and entry.message.is_prompt]
    return [UserPrompt(entry.id, entry.message.text, entry.id in folded) for entry in said]


@command("[N]", idle=True)
async def branch(host: Host, argument: str) -> Outcome:
    """Continue from before an earlier message of yours, even a folded one."""
    prompts = await user_prompts(host)
    if not argument:
        usage = "`/branch N` continues from before message N, with its text in the editor."
        return Outcome(prompt_list_text(prompts, usage))
    return await rewind_to(host, find_prompt(prompts, argument))


@command("[N]", idle=True)
async def rewind(host: Host, argument: str) -> Outcome:
    """Go back to before your newest message, and put it into the editor."""
    prompts = await user_prompts(host)
    if not prompts:
        raise InputError("there is no message of yours to go back to")
    return await rewind_to(host, find_prompt(prompts, argument) if argument else prompts[-1])


async def rewind_to(host: Host, prompt: UserPrompt) -> Outcome:
    """Go back to before a user message, and put its text into the editor."""
    host.check_idle()
    before = (await host.session.stats()).summaries
    rewound = await host.session.rewind(prompt.entry)
    left = before - (await host.session.stats()).summaries
    compactions = f" This leaves {left} compaction{'s' if left > 1 else ''} behind." if left > 0 else ""
    text = f"Back before “{short_line(prompt.text)}”.{compactions} The branch you left is kept: see `/tree`."
    return Outcome(text, editor=rewound.text, moved=True)


@command("[N]", idle=True)
async def fork(host: Host, argument: str) -> Outcome:
    """Continue in a copy of this session, or of the part before message N, which goes into the editor."""
    prompt = find_prompt(await user_prompts(host), argument) if argument else None
    leaf = host.session.leaf
    if prompt is not None:
        entry = await host.store.entry(host.session.id, prompt.entry)
        leaf = entry.parent if entry is not None else None
    if prompt is not None and leaf is None:
        await host.resume(host.new_id())
    else:
        copy = await host.session.fork(host.new_id(), at=leaf)
        await host.resume(copy.id)
    part = f" of everything before “{short_line(prompt.text)}”" if prompt else ""
    text = f"This is a copy{part}, session `{await host.short(host.session.id)}`; the original is unchanged."
    return Outcome(text, editor=prompt.text if prompt else None, moved=True)


@command("[N]", idle=True)
async def tree(host: Host, argument: str) -> Outcome:
    """Show the branches of this session, or switch to one."""
    branches = await host.session.branches()
    if not argument:
        return Outcome(branch_list_text(branches, "`/tree N` switches to branch N."))
    target = find_branch(branches, argument, "tree")
    await host.session.branch(target.leaf)
    return Outcome(f"On the branch with “{short_line(target.text)}”.", moved=True)


@command("[N|SESSION] [FOCUS]", takes="summary")
async def merge(host: Host, argument: str) -> str:
    """Add a summary of another branch, or of a fork, to this session."""
    branches = await host.session.branches()
    if not argument:
        return branch_list_text(
            branches, "`/merge N` adds a summary of branch N to this one, `/merge SESSION` of a fork."
        )
    name, _, focus = argument.partition(" ")
    source = find_branch(branches, name, "merge").leaf if name.isdecimal() else await host.find(name)
    note = await host.session.merge(source, instructions=focus.strip() or None)
    return f"A summary of it was added here (`{note[:8]}`); the source is unchanged."


def branch_list_text(branches: list[Branch], usage: str) -> str:
    """Return the branches as a numbered list, then the usage of the command."""
    rows = [
        f"{number}. {'**here** ' if branch.current else ''}{branch.messages} messages, "
        f"{'' if branch.at is None else local_date(branch.at)}: {short_line(branch.text)}"
        for number, branch in enumerate(branches, 1)
    ]
    footer = f"\n\n{usage}" if len(rows) > 1 else ""
    return "\n".join(rows) + footer if rows else "There are no messages yet."


def find_branch(branches: list[Branch], argument: str, name: str) -> Branch:
    """Return the branch with a number of the list; raises InputError if there is none."""
    if not argument.isdecimal() or not 1 <= int(argument) <= len(branches):
        raise InputError(f"/{name} takes a number from 1 to {len(branches)}")
    return branches[int(argument) - 1]


def prompt_list_text(prompts: list[UserPrompt], usage: str) -> str:
    """Return the user's messages as a numbered list, then the usage of the command."""
    if not prompts:
        return "You have no messages yet."
    rows = [
        f"{number}. {'(folded) ' if prompt.folded else ''}{short_line(prompt.text)}"
        for number, prompt in enumerate(prompts, 1)
    ]
    return "\n".join([*rows, "", usage])


def find_prompt(prompts: list[UserPrompt], argument: str) -> UserPrompt:
    """Return a message by its number or the start of its entry id; raises InputError if there is none."""
    if argument.isdecimal() and 1 <= int(argument) <= len(prompts):
        return prompts[int(argument) - 1]
    found = [prompt for prompt in prompts if argument and prompt.entry.startswith(argument)]
    if len(found) != 1:
        raise InputError(
            f"no message {argument!r} of yours: give a number from 1 to {len(prompts)}; /branch lists them"
        )
    return found[0]


def short_line(text: str) -> str:
    """Return a text on one line of at most LONGEST characters."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def local_date(timestamp: float) -> str:
    """Return a Unix time as a short date in the local time zone."""
    return datetime.fromtimestamp(timestamp).astimezone().strftime("%d %b %H:%M")
