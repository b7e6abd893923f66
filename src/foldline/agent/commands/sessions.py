"""/handoff, /resume, /continue, /sessions, /save, /export, /clear: this session and others."""

from __future__ import annotations

import asyncio

from foldline.agent.commands.command import Outcome, command
from foldline.agent.commands.places import local_date, short_line
from foldline.agent.host import Host
from foldline.errors import InputError
from foldline.session.tree import first_words
from foldline.stores import SessionInfo
from foldline.stores.ids import short_ids

SUFFIXES = {"markdown": ".md", "jsonl": ".jsonl"}


@command("GOAL", idle=True, takes="summary")
async def handoff(host: Host, argument: str) -> Outcome:
    """Start a new session for GOAL with what it needs from this one."""
    if not argument:
        raise InputError("/handoff GOAL: say what the new session is for")
    return await hand_off(host, argument)


async def hand_off(host: Host, goal: str, text: str | None = None) -> Outcome:
    """Continue in a new session for a goal; `text` replaces the drafted hand-off."""
    created = await host.session.handoff(goal, to=host.new_id(), text=text)
    previous = await host.short(host.session.id)
    await host.resume(created.id)
    return Outcome(f"A new session for “{goal}”. The previous one: `/resume {previous}`.", moved=True)


@command("[all]")
async def sessions(host: Host, argument: str) -> str:
    """List the sessions of this folder, or all."""
    return await _session_list(host, everywhere=argument == "all")


async def _session_list(host: Host, *, everywhere: bool = False) -> str:
    infos, short = await host.sessions(everywhere=everywhere), await short_ids(host.store)
    rows = [
        f"{'-' if everywhere else f'{number}.'} {'**here** ' if info.id == host.session.id else ''}"
        f"{await _describe(host, info)}, `{short(info.id)}`"
        for number, info in enumerate(infos, 1)
    ]
    usage = "`/resume N` continues one; `/sessions all` lists those of other folders."
    if everywhere:
        usage = "`/resume ID` continues one."
    return "\n".join([*rows, "", usage]) if rows else "No session of this folder is stored yet."


async def _describe(host: Host, info: SessionInfo) -> str:
    title = short_line(await session_title(host, info))
    folds = f"{info.compactions} compaction{'s' * (info.compactions != 1)}"
    return f"{f'“{title}”, ' if title else ''}{info.messages} messages, {folds}, {local_date(info.updated)}"


async def session_title(host: Host, info: SessionInfo) -> str:
    """Return a session's title, by default its first words."""
    return info.title or await first_words(host.store, info.id)


@command("[N|ID]", idle=True)
async def resume(host: Host, argument: str) -> Outcome:
    """Continue another session."""
    if not argument:
        return Outcome(await _session_list(host))
    infos = await host.sessions()
    if argument.isdecimal() and 1 <= int(argument) <= len(infos):
        argument = infos[int(argument) - 1].id
    await host.resume(await host.find(argument))
    return Outcome(await state_text(host), moved=True)


async def state_text(host: Host) -> str:
    """Describe the state of a session that was resumed."""
    standing, name = await host.session.standing(), f"Session `{await host.short(host.session.id)}`"
    if standing.state == "mid_tool":
        return f"{name}: its last turn did not end. `/continue` continues it; or say something else."
    if standing.state == "waiting" and standing.question:
        return f"{name}: it asked “{standing.question}”"
    return f"{name}."


@command(idle=True, takes="turn")
async def continue_(host: Host, _argument: str) -> Outcome:
    """Continue an interrupted turn."""
    if (await host.session.standing()).state != "mid_tool":
        return Outcome("There is nothing to continue: the last turn has ended.")
    ended = await host.agent.run()
    return Outcome(ended.detail, ended=ended)


@command()
async def save(host: Host, _argument: str) -> str:
    """Show that the session is saved."""
    await host.session.settled()
    leaf = host.session.leaf
    extent = f"up to entry `{leaf[:8]}`" if leaf else "no messages yet"
    return f"Saved: session `{await host.short(host.session.id)}`, {extent}. Every message is stored at once."


@command("[FORM] [FILE]")
async def export(host: Host, argument: str) -> str:
    """Write the session to a file: markdown, jsonl, or the format of another tool."""
    words = argument.split()
    form = words[0] if words else "markdown"
    data = await host.session.export(form)
    name = words[1] if len(words) > 1 else f"{host.session.id}{SUFFIXES.get(form, '.json')}"
    path = await asyncio.to_thread(_write_export, host, name, data)
    return f"Wrote {path}, {len(data):,} bytes of {form}."


def _write_export(host: Host, name: str, data: bytes) -> str:
    path = host.workspace.resolve(name, writing=True)
    if path.exists():
        raise InputError(f"{name} already exists: give another name after the format")
    host.workspace.put(path, data.decode("utf-8"))
    return host.workspace.shown(path)


@command(idle=True)
async def clear(host: Host, _argument: str) -> Outcome:
    """Start a new session; the old one is kept."""
    previous = await host.short(host.session.id)
    await host.resume(host.new_id())
    return Outcome(f"A new session. The previous one is kept: `/resume {previous}`.", moved=True)
