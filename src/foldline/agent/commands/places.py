"""/branch, /fork, /rewind, /tree, /merge: other places of the session, and copies of it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from foldline.agent.commands.command import Outcome, command
from foldline.agent.host import Host
from foldline.core.log.entries import Said
from foldline.errors import InputError
from foldline.session.tree import Branch

LINE = 90  # characters of a message that a list shows


class Prompted(msgspec.Struct, frozen=True):
    """A message of the user's on the path: its entry, its words, and whether the view no longer has it."""

    entry: str
    text: str
    folded: bool


async def prompts(host: Host) -> list[Prompted]:
    """Return all messages of the user's on the path, those before a boundary too, oldest first."""
    session = host.session
    folded = {info.entry for info in await session.entries() if info.how == "folded"}
    path = session.store.path(session.id)
    said = [entry async for entry in path if isinstance(entry, Said) and entry.message.is_prompt]
    return [Prompted(entry.id, entry.message.text, entry.id in folded) for entry in said]


@command("[N]", idle=True)
async def branch(host: Host, argument: str) -> Outcome:
    """Go on from before an earlier message of yours, folded ones too."""
    asked = await prompts(host)
    if not argument:
        how = "`/branch N` goes on from before message N, with its words in the editor."
        return Outcome(prompt_list(asked, how))
    return await back_to(host, chosen(asked, argument))


@command("[N]", idle=True)
async def rewind(host: Host, argument: str) -> Outcome:
    """Go back to before your newest message, which comes into the editor."""
    asked = await prompts(host)
    if not asked:
        raise InputError("there is no message of yours to go back to")
    return await back_to(host, chosen(asked, argument) if argument else asked[-1])


async def back_to(host: Host, place: Prompted) -> Outcome:
    """Go back to before a message of the user's, whose words go into the editor."""
    host.check_idle()
    before = (await host.session.stats()).summaries
    rewound = await host.session.rewind(place.entry)
    undone = before - (await host.session.stats()).summaries
    told = f" That leaves {undone} compaction{'s' if undone > 1 else ''} behind." if undone > 0 else ""
    text = f"Back before “{line(place.text)}”.{told} What you left stays: `/tree` shows it."
    return Outcome(text, editor=rewound.text, moved=True)


@command("[N]", idle=True)
async def fork(host: Host, argument: str) -> Outcome:
    """Go on in a copy of this session, or of what came before message N, which comes into the editor."""
    place = chosen(await prompts(host), argument) if argument else None
    end = await _before(host, place) if place else host.session.leaf
    if place and end is None:
        await host.resume(host.new_id())
    else:
        made = await host.session.fork(host.new_id(), at=end)
        await host.resume(made.id)
    up_to = f" up to before “{line(place.text)}”" if place else ""
    text = (
        f"This is a copy{up_to}, session `{await host.short(host.session.id)}`; the other one stays as it is."
    )
    return Outcome(text, editor=place.text if place else None, moved=True)


async def _before(host: Host, place: Prompted) -> str | None:
    entry = await host.store.entry(host.session.id, place.entry)
    return entry.parent if entry is not None else None


@command("[N]", idle=True)
async def tree(host: Host, argument: str) -> Outcome:
    """Show the branches of this session, or go to one."""
    branches = await host.session.branches()
    if not argument:
        return Outcome(branch_list(branches, "`/tree N` goes there."))
    there = numbered(branches, argument, "tree")
    await host.session.branch(there.leaf)
    return Outcome(f"On the branch with “{line(there.text)}”.", moved=True)


@command("[N|SESSION] [FOCUS]", takes="summary")
async def merge(host: Host, argument: str) -> str:
    """Note here what was done on another branch, or in a fork of this session."""
    branches = await host.session.branches()
    if not argument:
        return branch_list(
            branches, "`/merge N` notes here what was done on branch N, `/merge SESSION` in a fork."
        )
    place, _, focus = argument.partition(" ")
    other = numbered(branches, place, "merge").leaf if place.isdecimal() else await host.find(place)
    note = await host.session.merge(other, instructions=focus.strip() or None)
    return f"What was done there is noted here (`{note[:8]}`); it stays as it is."


def branch_list(branches: list[Branch], how: str) -> str:
    """Return the branches of a session as a numbered list, and how a command takes a number."""
    rows = [
        f"{number}. {'**here** ' if one.current else ''}{one.messages} messages, {_when(one.at)}: "
        f"{line(one.text)}"
        for number, one in enumerate(branches, 1)
    ]
    more = f"\n\n{how}" if len(rows) > 1 else ""
    return "\n".join(rows) + more if rows else "Nothing was said yet."


def numbered(branches: list[Branch], argument: str, name: str) -> Branch:
    """Return the branch of a number in that list; raises InputError for another one."""
    if not argument.isdecimal() or not 1 <= int(argument) <= len(branches):
        raise InputError(f"/{name} takes a number from 1 to {len(branches)}")
    return branches[int(argument) - 1]


def prompt_list(asked: list[Prompted], how: str) -> str:
    """Return the user's messages as a numbered list, and how a command takes a number."""
    if not asked:
        return "You said nothing yet."
    rows = [
        f"{number}. {'(folded) ' if one.folded else ''}{line(one.text)}"
        for number, one in enumerate(asked, 1)
    ]
    return "\n".join([*rows, "", how])


def chosen(asked: list[Prompted], argument: str) -> Prompted:
    """Return the message that a number or the beginning of an entry id names; raises InputError."""
    if argument.isdecimal() and 1 <= int(argument) <= len(asked):
        return asked[int(argument) - 1]
    found = [one for one in asked if argument and one.entry.startswith(argument)]
    if len(found) != 1:
        raise InputError(
            f"no message of yours {argument!r}: take a number from 1 to {len(asked)}, as /branch lists them"
        )
    return found[0]


def line(text: str) -> str:
    """Return a text on one short line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LINE else f"{flat[:LINE]}…"


def _when(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at).astimezone().strftime("%d %b %H:%M")
