"""/model and /policy."""

from __future__ import annotations

from foldline.agent.commands.command import Command
from foldline.agent.host import Host
from foldline.core.decide.presets import PRESETS
from foldline.errors import InputError


async def _model(host: Host, argument: str) -> str:
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


async def _policy(host: Host, argument: str) -> str:
    if argument:
        policy = host.settings.find_policy(argument)
        host.options = host.with_policy(argument)
        await host.session.use_policy(policy)
    own = host.session.policy
    names = ", ".join((*PRESETS, *host.settings.policies))
    return f"The policy is `{own.name}`: {own.summary}\n\nThere are {names}."


COMMANDS = (
    Command(
        "model", "Show the model, or go on with another one.", _model, "[PROVIDER:NAME] [WINDOW]", idle=True
    ),
    Command("policy", "Show the policy, or go on by another one.", _policy, "[NAME]", idle=True),
)
