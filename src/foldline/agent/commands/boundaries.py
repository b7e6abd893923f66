"""/compact, /preview, /undo, /redo, and /autocompact, which is saved to the user's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from foldline.agent.commands.command import Outcome, command
from foldline.agent.commands.places import find_prompt, prompt_list_text, user_prompts
from foldline.agent.host import Host
from foldline.config import FILE, Settings
from foldline.core.compact.receipt import token_change
from foldline.core.decide.ask import Nothing
from foldline.core.decide.policy import usable_of
from foldline.core.decide.triggers import thresholds
from foldline.core.log.entries import Receipt
from foldline.errors import InputError
from foldline.files import PRIVATE, content, written
from foldline.policies import MOST

_RANGE: Final = re.compile(r"(up to|from)(?:\s+(\d+|[0-9a-f]{8,32})(?:\s+(.+))?)?", re.DOTALL)


@command("[up to N|from N] [FOCUS]", takes="summary")
async def compact(host: Host, argument: str) -> str:
    """Fold the older part into a checkpoint, or all up to or from message N; FOCUS guides the summary."""
    match = _RANGE.fullmatch(argument)
    if match is None:
        return result_text(await host.session.compact(argument or None))
    direction, number, focus = match.groups()
    prompts = await user_prompts(host)
    if number is None:
        which = "up to message N and its answer" if direction == "up to" else "from message N on"
        return prompt_list_text(
            prompts, f"`/compact {direction} N` folds everything {which}, and keeps the rest."
        )
    entry = find_prompt(prompts, number).entry
    if direction == "up to":
        return result_text(await host.session.compact(focus, up_to=entry))
    return result_text(await host.session.compact(focus, since=entry))


@command("[FOCUS]", takes="summary")
async def preview(host: Host, argument: str) -> str:
    """Show what a fold would do, without doing it."""
    preview = await host.session.preview(argument or None)
    if isinstance(preview, Nothing):
        return result_text(preview)
    receipt = preview.receipt
    lines = [f"Would fold {sizes_text(receipt)}; `/compact` does it.", ""]
    if preview.summary is None:
        lines.append("Only old tool results would be cleared.")
    else:
        lines += [f"{receipt.messages_after} messages stay.", "", preview.summary]
    return "\n".join(lines)


@command(idle=True)
async def undo(host: Host, _argument: str) -> Outcome:
    """Undo the newest compaction or exclusion; later messages stay."""
    if await host.session.undo() is None:
        return Outcome("There is no compaction or exclusion to undo.")
    return Outcome(
        "The newest compaction or exclusion is undone: its messages are in view again. `/redo` reverts this.",
        moved=True,
    )


@command(idle=True)
async def redo(host: Host, _argument: str) -> Outcome:
    """Revert the newest undo."""
    entry = await host.session.redo()
    return Outcome("The compaction is back." if entry else "There is no undo to revert.", moved=bool(entry))


@command("[on|off|reserve N|keep N]")
async def autocompact(host: Host, argument: str) -> str:
    """Show or set when the session compacts automatically; saved to the settings."""
    words = argument.split()
    if words and words != ["show"]:
        await set_autocompact(host, parse_setting(words))
    return autocompact_text(host)


def parse_setting(words: list[str]) -> dict[str, Any]:
    """Return the keys of `[compaction]` that the words set; raises InputError for other words."""
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
            raise InputError(
                "/autocompact takes on, off, reserve N or keep N; N is in tokens or a share such as 15%"
            )


async def set_autocompact(host: Host, values: dict[str, Any]) -> None:
    """Set keys of `[compaction]`, here and in the user's settings; an invalid value changes nothing."""
    compaction = msgspec.structs.replace(host.settings.compaction, **values)
    bare = msgspec.structs.replace(host.settings, compaction=type(compaction)())
    policy = compaction.over(bare.find_policy(host.options.policy))
    save(host.home, "compaction", values)
    host.settings = msgspec.structs.replace(host.settings, compaction=compaction)
    if "enabled" in values:
        host.options = msgspec.structs.replace(host.options, autocompact=values["enabled"])
    await host.session.use_policy(host.with_autocompact(policy))


def save(home: Path, table: str, values: Mapping[str, Any]) -> None:
    """Set keys of a table in the user's settings (None removes a key), and keep comments and order.

    Raises InputError for an invalid value, or a file that cannot be read or written.
    """
    try:
        import tomlkit  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        raise InputError("writing settings needs tomlkit: pip install 'foldline[chat]'") from error
    file = home / FILE
    try:
        document = tomlkit.parse(content(file, MOST).decode() if file.exists() else "")
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {error}") from error
    fields: Any = document.setdefault(table, tomlkit.table())
    for key, value in values.items():
        if value is None:
            fields.pop(key, None)
        else:
            fields[key] = value
    try:
        msgspec.convert(document.unwrap(), Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{table}: {error}; nothing was saved") from error
    text: str = tomlkit.dumps(document)  # pyright: ignore[reportUnknownMemberType]
    try:
        with written(file.resolve(), mode=PRIVATE) as stream:  # a link stays one
            stream.write(text.encode())
    except (OSError, InputError) as error:
        raise InputError(f"{file} cannot be written: {error}") from error


def autocompact_text(host: Host) -> str:
    """Describe when the session compacts automatically."""
    policy, window = host.session.policy, host.session.setup.window
    reserve = policy.reserve.resolve(window)
    kept = policy.keep.amount.resolve(window, usable_of(policy, window)) if policy.keep.amount else 0
    messages = f", {policy.keep.messages} messages" if policy.keep.messages else ""
    at = thresholds(policy, window)
    folds = f"Folds past {at.hard:,} tokens" if at.hard is not None else "Never folds automatically"
    drafts = f", a summary is prepared from {at.soft:,}" if at.soft is not None else ""
    return (
        f"Auto-compaction is **{'on' if policy.enabled else 'off'}** (policy {policy.name}). "
        f"{folds}{drafts}; the view has {host.session.view_tokens:,}. "
        f"Reserve {reserve:,} tokens, keep {kept:,} tokens{messages}. "
        "Set with `/autocompact on|off`, `/autocompact reserve N`, `/autocompact keep N`."
    )


def result_text(outcome: Receipt | Nothing) -> str:
    """Describe what a compaction did."""
    if isinstance(outcome, Nothing):
        return f"Nothing was folded: {outcome.words}."
    price = f", ${outcome.price:.4f}" if outcome.price else ""
    writer = outcome.summarizer if outcome.summarizer not in ("", "offline") else "code alone"
    return f"Folded {sizes_text(outcome)}, by {writer}{price}. `/undo` reverts it."


def sizes_text(receipt: Receipt) -> str:
    """Return tokens and messages before and after."""
    if receipt.reason == "imported":
        return token_change(receipt)
    return f"{token_change(receipt)}, {receipt.messages_before} → {receipt.messages_after} messages"
