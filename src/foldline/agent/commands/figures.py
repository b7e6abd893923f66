"""/context, /stats, /cost, /model, /policy: what fills the window, at which price, and how it is folded."""

from __future__ import annotations

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
    """Return a bar of which the usable window is the whole; the smallest is a thin line."""
    return cell * round(tokens * BAR / (stats.usable or 1)) or "▏"


async def _largest(host: Host) -> str:
    infos = [info for info in await host.session.entries() if info.how == "kept"]
    top = sorted(infos, key=lambda info: -info.tokens)[:3]
    return "; ".join(f"`{one.entry[:8]}` {one.role} {one.tokens:,}" for one in top) or "none"


def meter(stats: Stats) -> str:
    """Return how full the window is, in words."""
    share = stats.context_tokens / stats.usable if stats.usable else 1.0
    return (
        f"{stats.context_tokens:,} of {stats.usable:,} usable tokens ({share:.0%}); "
        f"the model's window is {stats.window.context:,}."
    )


@command()
async def stats(host: Host, _argument: str) -> str:
    """Show messages in all and in view, compactions, and their ratio."""
    rows = [f"| {name} | {value} |" for name, value in figures(await host.session.stats()).items()]
    return "\n".join(["| figure | |", "| --- | ---: |", *rows])


def figures(stats: Stats) -> dict[str, float]:
    """Return the four figures of a long conversation, by their names in GenCode's design."""
    return {
        "totalMessages": stats.total_messages,
        "activeMessages": stats.active_messages,
        "summaryCount": stats.summaries,
        "compressionRatio": stats.compression_ratio,
    }


@command()
async def cost(host: Host, _argument: str) -> str:
    """Show tokens and price of this session, summaries included."""
    return (await spent(host.session)).words


@command("[PROVIDER:NAME] [WINDOW]", idle=True)
async def model(host: Host, argument: str) -> str:
    """Show the model, or go on with another one."""
    if not argument:
        setup = host.session.setup
        return f"The model is `{host.model_name}`, window {setup.window.context:,}."
    name, _, window = argument.partition(" ")
    await host.use_model(name, window=_tokens(window) if window else None)
    return f"On with `{name}`, window {host.session.setup.window.context:,}; the view is made to fit it."


def _tokens(text: str) -> int:
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError as error:
        raise InputError(f"the window is a number of tokens, not {text!r}") from error


@command("[NAME]", idle=True)
async def policy(host: Host, argument: str) -> str:
    """Show the policy, or go on by another one."""
    if argument:
        policy = host.settings.find_policy(argument)
        host.options = host.with_policy(argument)
        await host.session.use_policy(host.as_asked(policy))
    own = host.session.policy
    names = ", ".join((*PRESETS, *host.settings.policies))
    told = f"The policy is `{own.name}`: {own.summary}"
    if argument and (warning := too_large(await host.session.stats(), own)):
        told = f"{told}\n\n{warning}"
    return f"{told}\n\nThere are {names}."


def too_large(stats: Stats, policy: Policy) -> str:
    """Return what is to be said where a view is larger than a policy lets it be; "" where it is not."""
    hard = thresholds(policy, stats.window).hard
    if hard is None or stats.context_tokens <= hard:
        return ""
    return (
        f"The view takes {stats.context_tokens:,} tokens, and it folds above {hard:,}: "
        "before the next request. `/preview` shows how."
    )
