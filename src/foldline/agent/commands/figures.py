"""/context, /stats, /cost, /model, /policy: use of the window, price, model and policy."""

from __future__ import annotations

import msgspec

from foldline.agent.commands.command import command
from foldline.agent.host import Host
from foldline.agent.spending import spent
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS
from foldline.core.decide.triggers import thresholds
from foldline.errors import InputError
from foldline.session.view import Stats

BAR = 40  # characters


@command()
async def context(host: Host, _argument: str) -> str:
    """Show what fills the window."""
    stats = await host.session.stats()
    overhead = host.session.setup.overhead
    sizes = {"system prompt": overhead.system, "tools": overhead.tools, **stats.by_category}
    free = max(0, stats.usable - sum(sizes.values()))
    ordered = sorted(sizes.items(), key=lambda pair: -pair[1])
    rows = [f"| {name} | {tokens:,} | {_bar(tokens, stats)} |" for name, tokens in ordered if tokens]
    rows.append(f"| free | {free:,} | {_bar(free, stats, '░')} |")
    table = ["| what | tokens | |", "| --- | ---: | --- |", *rows]
    return "\n".join([meter(stats), "", *table, "", f"Largest messages: {await _largest(host)}"])


def _bar(tokens: int, stats: Stats, cell: str = "█") -> str:
    """Return a bar for a share of the usable window; a thin line for the smallest."""
    return cell * round(tokens * BAR / (stats.usable or 1)) or "▏"


async def _largest(host: Host) -> str:
    infos = [info for info in await host.session.entries() if info.how == "kept"]
    top = sorted(infos, key=lambda info: -info.tokens)[:3]
    return "; ".join(f"`{info.entry[:8]}` {info.role} {info.tokens:,}" for info in top) or "none"


def meter(stats: Stats) -> str:
    """Describe how full the window is."""
    share = stats.context_tokens / stats.usable if stats.usable else 1.0
    return (
        f"{stats.context_tokens:,} of {stats.usable:,} usable tokens ({share:.0%}); "
        f"the model's window is {stats.window.context:,}."
    )


@command()
async def stats(host: Host, _argument: str) -> str:
    """Show all and active messages, compactions, and the compression ratio."""
    rows = [f"| {name} | {value} |" for name, value in figures(await host.session.stats()).items()]
    return "\n".join(["| figure | |", "| --- | ---: |", *rows])


def figures(stats: Stats) -> dict[str, float]:
    """Return the four figures of `/stats`, under the names of GenCode's design."""
    return {
        "totalMessages": stats.total_messages,
        "activeMessages": stats.active_messages,
        "summaryCount": stats.summaries,
        "compressionRatio": stats.compression_ratio,
    }


@command()
async def cost(host: Host, _argument: str) -> str:
    """Show tokens and price of this session, including summaries."""
    return (await spent(host.session)).words


@command("[PROVIDER:NAME] [WINDOW]", idle=True)
async def model(host: Host, argument: str) -> str:
    """Show the model, or switch to another one."""
    if not argument:
        setup = host.session.setup
        return f"The model is `{host.model_name}`, window {setup.window.context:,}."
    name, _, window = argument.partition(" ")
    await host.use_model(name, window=_tokens(window) if window else None)
    return f"Switched to `{name}`, window {host.session.setup.window.context:,}; the view will fit it."


def _tokens(text: str) -> int:
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError as error:
        raise InputError(f"the window must be a number of tokens, not {text!r}") from error


@command("[NAME]", idle=True)
async def policy(host: Host, argument: str) -> str:
    """Show the policy, or switch to another one."""
    if argument:
        policy = host.settings.find_policy(argument)
        host.options = msgspec.structs.replace(host.options, policy=argument)  # for later sessions too
        await host.session.use_policy(host.with_autocompact(policy))
    current = host.session.policy
    names = ", ".join((*PRESETS, *host.settings.policies))
    parts = [f"The policy is `{current.name}`: {current.summary}"]
    if argument and (warning := too_large(await host.session.stats(), current)):
        parts.append(warning)
    return "\n\n".join([*parts, f"Available: {names}."])


def too_large(stats: Stats, policy: Policy) -> str:
    """Return a warning if a view is larger than the policy allows, else ""."""
    hard = thresholds(policy, stats.window).hard
    if hard is None or stats.context_tokens <= hard:
        return ""
    return (
        f"The view has {stats.context_tokens:,} tokens, above the limit of {hard:,}: it will be folded "
        "before the next request. `/preview` shows how."
    )
