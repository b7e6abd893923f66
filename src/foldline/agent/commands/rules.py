"""/pin, /unpin, /exclude, /constraints, /recall: what stays in view, what leaves it, and search."""

from __future__ import annotations

from foldline.agent.commands.command import command
from foldline.agent.host import Host
from foldline.errors import InputError
from foldline.session.recall import EntryInfo

LISTED = 20  # messages in the list of /pin and /exclude


@command("[ID|last]")
async def pin(host: Host, argument: str) -> str:
    """Keep a message word for word in every view."""
    if not argument:
        return await _entry_list(host, "`/pin ID` pins one.")
    info = await _find_entry(host, argument)
    await host.session.pin(info.entry)
    return f"Pinned `{info.entry[:8]}`: it stays word for word in every view. “{info.text}”"


@command("[ID]")
async def unpin(host: Host, argument: str) -> str:
    """Let a pinned message be folded again."""
    if not argument:
        pinned = [info for info in await host.session.entries() if info.pinned]
        return "\n".join(f"- `{info.entry[:8]}` {info.text}" for info in pinned) or "Nothing is pinned."
    info = await _find_entry(host, argument)
    await host.session.unpin(info.entry)
    return f"`{info.entry[:8]}` is no longer pinned."


@command("[ID|last] [PART]", idle=True)
async def exclude(host: Host, argument: str) -> str:
    """Remove a message, or one part of it by its number from 0, from the context."""
    if not argument:
        return await _entry_list(host, "`/exclude ID` removes one, `/undo` brings it back.")
    name, _, part = argument.partition(" ")
    if part and not part.isdecimal():
        raise InputError("/exclude ID PART: PART is a number from 0")
    info = await _find_entry(host, name)
    receipt = await host.session.exclude(info.entry, int(part) if part else None)
    freed = f"{receipt.tokens_before - receipt.tokens_after:,} tokens less"
    return f"`{info.entry[:8]}` is out of the context, {freed}: “{info.text}”. `/undo` brings it back."


async def _entry_list(host: Host, usage: str) -> str:
    rows = [
        f"- `{info.entry[:8]}` {info.role}{' (pinned)' if info.pinned else ''} {info.how}: {info.text}"
        for info in await host.session.entries(LISTED)
    ]
    return "\n".join([*rows, "", usage]) if rows else "There are no messages yet."


async def _find_entry(host: Host, argument: str) -> EntryInfo:
    """Return the message with an id that starts so, or the `last`; raises InputError if there is not one."""
    infos = await host.session.entries()
    if argument == "last" and infos:
        return infos[-1]
    found = [info for info in infos if info.entry.startswith(argument)]
    if len(found) != 1:
        raise InputError(
            f"{len(found)} messages have an id that starts with {argument!r}: /pin lists the newest"
        )
    return found[0]


@command()
async def constraints(host: Host, _argument: str) -> str:
    """Show your standing rules, and what ended the others."""
    rules = await host.session.constraints()
    standing = [f"- {fact.text} (`{fact.entry[:8]}`)" for fact in rules.standing]
    ended = [f"- ~~{end.fact.text}~~ {end.how} by “{end.by.text}”" for end in rules.ended]
    if not standing and not ended:
        return "You stated no standing rules."
    sections = [f"**Standing: {len(standing)}**", *standing]
    return "\n".join([*sections, *([f"\n**Ended: {len(ended)}**", *ended] if ended else [])])


@command("QUERY")
async def recall(host: Host, argument: str) -> str:
    """Search all messages, including folded ones."""
    if not argument:
        raise InputError("/recall QUERY: give a few words of the message")
    hits = await host.session.recall(argument, 10)
    rows = [f"- `{hit.entry[:8]}` {hit.role}: {' '.join(hit.snippet.split())}" for hit in hits]
    return "\n".join(rows) or f"No message matches {argument!r}."
