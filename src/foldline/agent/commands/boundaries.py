"""/compact, /preview, /undo, /redo, /autocompact."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from foldline.agent.commands.command import Outcome, command
from foldline.agent.commands.places import chosen, prompt_list, prompts
from foldline.agent.host import Host
from foldline.agent.settings_file import save
from foldline.core.compact.receipt import token_change
from foldline.core.decide.ask import Nothing
from foldline.core.decide.triggers import thresholds
from foldline.core.log.entries import Receipt
from foldline.errors import InputError

_RANGE: Final = re.compile(r"(up to|from)(?:\s+(\d+|[0-9a-f]{8,32})(?:\s+(.+))?)?", re.DOTALL)


@command("[up to N|from N] [FOCUS]", takes="summary")
async def compact(host: Host, argument: str) -> str:
    """Fold the older part into a checkpoint, or all up to or from message N; FOCUS is looked at first."""
    found = _RANGE.fullmatch(argument)
    if found is None:
        return done(await host.session.compact(argument or None))
    way, place, focus = found.groups()
    asked = await prompts(host)
    if place is None:
        which = "up to message N and its answer" if way == "up to" else "from message N on"
        return prompt_list(asked, f"`/compact {way} N` folds all {which}, and keeps the rest as it is.")
    entry = chosen(asked, place).entry
    if way == "up to":
        return done(await host.session.compact(focus, up_to=entry))
    return done(await host.session.compact(focus, since=entry))


@command("[FOCUS]", takes="summary")
async def preview(host: Host, argument: str) -> str:
    """Show what would be folded and what stays, before it is done."""
    preview = await host.session.preview(argument or None)
    if isinstance(preview, Nothing):
        return done(preview)
    receipt = preview.receipt
    lines = [f"Would fold {sizes(receipt)}; `/compact` does it.", ""]
    if preview.summary is None:
        lines.append("Only old tool results would be cleared.")
    else:
        lines += [f"{receipt.messages_after} messages stay.", "", preview.summary]
    return "\n".join(lines)


@command(idle=True)
async def undo(host: Host, _argument: str) -> Outcome:
    """Take the newest compaction or exclusion back; what was said since stays."""
    undone = await host.session.undo()
    if undone is None:
        return Outcome("There is no compaction or exclusion to undo.")
    return Outcome(
        "The newest compaction or exclusion is undone: what it took is in view again. `/redo` takes it back.",
        moved=True,
    )


@command(idle=True)
async def redo(host: Host, _argument: str) -> Outcome:
    """Take the newest undo back."""
    redone = await host.session.redo()
    return Outcome(
        "The compaction counts again." if redone else "There is no undo to take back.", moved=bool(redone)
    )


@command("[on|off|reserve N|keep N]")
async def autocompact(host: Host, argument: str) -> str:
    """Show or set when the session compacts by itself; saved for good."""
    words = argument.split()
    if words and words != ["show"]:
        await set_autocompact(host, setting(words))
    return autocompact_text(host)


def setting(words: list[str]) -> dict[str, Any]:
    """Return the keys of `[compaction]` that a user's words set; raises InputError for others."""
    match words:
        case ["on"]:
            return {"enabled": True}
        case ["off"]:
            return {"enabled": False}
        case ["reserve" | "keep" as key, "default"]:
            return {key: None}
        case ["reserve" | "keep" as key, amount]:
            number = amount.replace(",", "").replace("_", "")
            return {key: int(number) if number.isdecimal() else amount}
        case _:
            pass
    raise InputError("/autocompact on, off, reserve TOKENS, keep TOKENS; a share such as 15% is taken too")


async def set_autocompact(host: Host, values: dict[str, Any]) -> None:
    """Set keys of `[compaction]`, here and in the user's settings; a wrong value changes nothing."""
    known = {
        name: getattr(host.settings.compaction, name) for name in host.settings.compaction.__struct_fields__
    }
    over = type(host.settings.compaction)(**{**known, **values})
    bare = msgspec.structs.replace(host.settings, compaction=type(over)())
    policy = over.over(bare.find_policy(host.options.policy))
    save(host.home, "compaction", values)
    host.settings = msgspec.structs.replace(host.settings, compaction=over)
    if "enabled" in values:
        host.options = msgspec.structs.replace(host.options, autocompact=values["enabled"])
    await host.session.use_policy(host.as_asked(policy))


def autocompact_text(host: Host) -> str:
    """Return how the session compacts by itself, in words."""
    policy, window = host.session.policy, host.session.setup.window
    reserve = policy.reserve.resolve(window)
    kept = policy.keep.amount.resolve(window, window.input_limit - reserve) if policy.keep.amount else 0
    messages = f", {policy.keep.messages} messages" if policy.keep.messages else ""
    at = thresholds(policy, window)
    folds = f"Folds past {at.hard:,} tokens" if at.hard is not None else "Never folds by itself"
    drafts = f", a summary is prepared from {at.soft:,}" if at.soft is not None else ""
    return (
        f"Auto-compaction is **{'on' if policy.enabled else 'off'}** (policy {policy.name}). "
        f"{folds}{drafts}; the view has {host.session.view_tokens:,}. "
        f"Reserve {reserve:,} tokens, keep {kept:,} tokens{messages}. "
        "Set with `/autocompact on|off`, `/autocompact reserve N`, `/autocompact keep N`."
    )


def done(outcome: Receipt | Nothing) -> str:
    """Return what a compaction did, in words."""
    if isinstance(outcome, Nothing):
        return f"Nothing was folded: {outcome.words}."
    price = f", ${outcome.price:.4f}" if outcome.price else ""
    writer = outcome.summarizer if outcome.summarizer not in ("", "offline") else "code alone"
    return f"Folded {sizes(outcome)}, by {writer}{price}. `/undo` takes it back."


def sizes(receipt: Receipt) -> str:
    """Return tokens and messages before and after, in words."""
    if receipt.reason == "imported":
        return token_change(receipt)
    return f"{token_change(receipt)}, {receipt.messages_before} → {receipt.messages_after} messages"
