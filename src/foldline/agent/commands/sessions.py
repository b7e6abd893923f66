"""/handoff, /resume, /sessions, /save, /export, /clear: this session and the others."""

from __future__ import annotations

import asyncio
from datetime import datetime

from foldline.agent.commands.command import Outcome, command
from foldline.agent.commands.places import line
from foldline.agent.host import Host
from foldline.errors import InputError
from foldline.session.tree import first_words
from foldline.stores import SessionInfo
from foldline.stores.ids import short_ids

SUFFIXES = {"markdown": ".md", "jsonl": ".jsonl"}


@command("GOAL", idle=True, takes="summary")
async def handoff(host: Host, argument: str) -> Outcome:
    """Begin a new session for GOAL with what serves it."""
    if not argument:
        raise InputError("/handoff GOAL: what the new session is for")
    made = await host.session.handoff(argument, to=host.new_id())
    before = await host.short(host.session.id)
    await host.resume(made.id)
    return Outcome(
        f"A new session for “{argument}”, with what serves it. The other one: `/resume {before}`.", moved=True
    )


@command("[all]")
async def sessions(host: Host, argument: str) -> str:
    """List the sessions of this folder, or all."""
    return await _listed(host, argument)


async def _listed(host: Host, argument: str = "") -> str:
    everywhere = argument == "all"
    infos, short = await host.sessions(everywhere=everywhere), await short_ids(host.store)
    rows = [
        f"{'-' if everywhere else f'{number}.'} {'**here** ' if info.id == host.session.id else ''}"
        f"{await _told(host, info)}, `{short(info.id)}`"
        for number, info in enumerate(infos, 1)
    ]
    more = "`/resume N` goes on with one; `/sessions all` lists those of other folders."
    if everywhere:
        more = "`/resume ID` goes on with one."
    return "\n".join([*rows, "", more]) if rows else "No session of this folder is stored yet."


async def _told(host: Host, info: SessionInfo) -> str:
    about = await subject(host, info)
    folds = f"{info.compactions} compaction{'s' * (info.compactions != 1)}"
    return f"{f'“{line(about)}”, ' if about else ''}{info.messages} messages, {folds}, {when(info)}"


def when(info: SessionInfo) -> str:
    """Return when something was last said in a session, in the user's own time."""
    return datetime.fromtimestamp(info.updated).astimezone().strftime("%d %b %H:%M")


async def subject(host: Host, info: SessionInfo) -> str:
    """Return a session's title, else what it began with: nobody knows it by its id."""
    return info.title or await first_words(host.store, info.id)


@command("[N|ID]", idle=True)
async def resume(host: Host, argument: str) -> Outcome:
    """Go on with another session."""
    if not argument:
        return Outcome(await _listed(host))
    infos = await host.sessions()
    if argument.isdecimal() and 1 <= int(argument) <= len(infos):
        argument = infos[int(argument) - 1].id
    await host.resume(await host.find(argument))
    return Outcome(await stands(host), moved=True)


async def stands(host: Host) -> str:
    """Return where a session that was opened again stands, in words."""
    where, name = await host.session.standing(), f"Session `{await host.short(host.session.id)}`"
    if where.state == "mid_tool":
        return f"{name}: its last turn did not end. `/continue` lets it go on, or say something else."
    if where.state == "waiting" and where.question:
        return f"{name}: it asked “{where.question}”"
    return f"{name}."


@command(idle=True, takes="turn")
async def continue_(host: Host, _argument: str) -> Outcome:
    """Let an interrupted turn go on."""
    if (await host.session.standing()).state != "mid_tool":
        return Outcome("There is nothing to go on with: the last turn has ended.")
    ended = await host.agent.run()
    return Outcome(ended.detail, ended=ended)


@command()
async def save(host: Host, _argument: str) -> str:
    """Say that the session is saved."""
    await host.session.settled()
    leaf = host.session.leaf
    what = f"up to entry `{leaf[:8]}`" if leaf else "nothing was said yet"
    return (
        f"Saved: session `{await host.short(host.session.id)}`, {what}. Everything is stored as it is said."
    )


@command("[FORM] [FILE]")
async def export(host: Host, argument: str) -> str:
    """Write the session to a file: markdown, jsonl, or another tool's form."""
    words = argument.split()
    form = words[0] if words else "markdown"
    data = await host.session.export(form)
    name = words[1] if len(words) > 1 else f"{host.session.id}{SUFFIXES.get(form, '.json')}"
    path = await asyncio.to_thread(_written, host, name, data)
    return f"Written: {path}, {len(data):,} bytes of {form}."


def _written(host: Host, name: str, data: bytes) -> str:
    path = host.workspace.resolve(name, writing=True)
    if path.exists():
        raise InputError(f"{name} is there already: give another name behind the form")
    host.workspace.put(path, data.decode("utf-8"))
    return host.workspace.shown(path)


@command(idle=True)
async def clear(host: Host, _argument: str) -> Outcome:
    """Begin a new session; the old one is kept."""
    before = await host.short(host.session.id)
    await host.resume(host.new_id())
    return Outcome(f"A new session. The other one is kept: `/resume {before}`.", moved=True)
