"""/pin, /unpin, /exclude, /constraints, /recall: what stays in view, what leaves it, what was said before."""

from __future__ import annotations

from foldline.agent.commands.command import command
from foldline.agent.host import Host
from foldline.errors import InputError
from foldline.session.recall import EntryInfo

SHOWN = 20  # messages that /pin lists


@command("[ID|last]")
async def pin(host: Host, argument: str) -> str:
    """Keep a message word for word in every view."""
    if not argument:
        return await _listed(host)
    info = await _entry(host, argument)
    await host.session.pin(info.entry)
    return f"Pinned `{info.entry[:8]}`: it stays word for word in every view. “{info.text}”"


@command("[ID]")
async def unpin(host: Host, argument: str) -> str:
    """Let a pinned message be folded again."""
    if not argument:
        pinned = [info for info in await host.session.entries() if info.pinned]
        return "\n".join(f"- `{one.entry[:8]}` {one.text}" for one in pinned) or "Nothing is pinned."
    info = await _entry(host, argument)
    await host.session.unpin(info.entry)
    return f"`{info.entry[:8]}` is no longer pinned."


@command("[ID|last] [PART]", idle=True)
async def exclude(host: Host, argument: str) -> str:
    """Take a message, or one part of it by its number from 0, out of the context."""
    if not argument:
        return await _listed(host, "`/exclude ID` takes one out, `/undo` brings it back.")
    name, _, part = argument.partition(" ")
    if part and not part.isdecimal():
        raise InputError("/exclude ID PART: a part is a number from 0")
    info = await _entry(host, name)
    receipt = await host.session.exclude(info.entry, int(part) if part else None)
    freed = f"{receipt.tokens_before - receipt.tokens_after:,} tokens less"
    return f"`{info.entry[:8]}` is out of the context, {freed}: “{info.text}”. `/undo` brings it back."


async def _listed(host: Host, how: str = "`/pin ID` pins one.") -> str:
    infos = await host.session.entries(SHOWN)
    rows = [
        f"- `{one.entry[:8]}` {one.role}{' (pinned)' if one.pinned else ''} {one.how}: {one.text}"
        for one in infos
    ]
    return "\n".join([*rows, "", how]) if rows else "Nothing was said yet."


async def _entry(host: Host, argument: str) -> EntryInfo:
    """Return the message that the beginning of an id, or `last`, names; raises InputError."""
    infos = await host.session.entries()
    if argument == "last" and infos:
        return infos[-1]
    found = [info for info in infos if info.entry.startswith(argument)]
    if len(found) != 1:
        raise InputError(
            f"{len(found)} messages begin with {argument!r}: /pin lists the newest with their ids"
        )
    return found[0]


@command()
async def constraints(host: Host, _argument: str) -> str:
    """Show your standing rules, and what ended the others."""
    rules = await host.session.constraints()
    rows = [f"- {fact.text} (`{fact.entry[:8]}`)" for fact in rules.standing]
    gone = [f"- ~~{end.fact.text}~~ {end.how} by “{end.by.text}”" for end in rules.ended]
    if not rows and not gone:
        return "You stated no standing rule."
    return "\n".join(
        [f"**Standing: {len(rows)}**", *rows, *([f"\n**Ended: {len(gone)}**", *gone] if gone else [])]
    )


@command("QUERY")
async def recall(host: Host, argument: str) -> str:
    """Search all that was said, folded messages included."""
    if not argument:
        raise InputError("/recall QUERY: a few words that stand in the message")
    hits = await host.session.recall(argument, 10)
    rows = [f"- `{hit.entry[:8]}` {hit.role}: {' '.join(hit.snippet.split())}" for hit in hits]
    return "\n".join(rows) or f"Nothing that was said matches {argument!r}."
