"""The commands that have a screen: it opens in place of the text that the command would print.

Each gets the app, the host and its argument, and returns the outcome, None if the user left the screen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from textual.app import App

from foldline.agent.commands import registry
from foldline.agent.commands.boundaries import autocompact_text
from foldline.agent.commands.command import Outcome
from foldline.agent.commands.places import local_date, short_line, user_prompts
from foldline.agent.commands.sessions import hand_off, session_title
from foldline.agent.host import Host
from foldline.tui.dialogs import Picker, TextDialog
from foldline.tui.preview import PreviewScreen

AnyApp = App[Any]
ScreenCommand = Callable[[AnyApp, Host, str], Awaitable[Outcome | None]]


def screen_of(name: str, *, has_argument: bool) -> ScreenCommand | None:
    """Return the screen of a command; some have one only without an argument."""
    return ALWAYS.get(name) or (None if has_argument else BARE.get(name))


async def preview(app: AnyApp, host: Host, focus: str) -> Outcome | None:
    """Show what a fold would do, and edit its summary."""
    result = await app.push_screen_wait(PreviewScreen(host.session, focus))
    return Outcome(result) if result is not None else None


async def handoff(app: AnyApp, host: Host, goal: str) -> Outcome | None:
    """Edit the first message of the new session."""
    if not goal:
        return await registry.run(host, "/handoff")
    draft = await host.session.preview_handoff(goal)
    title = f"The first message of the session for “{short_line(goal)}”"
    text = await app.push_screen_wait(TextDialog(title, draft))
    return None if text is None else await hand_off(host, goal, text)


async def autocompact(app: AnyApp, host: Host, _argument: str) -> Outcome | None:
    """Turn auto-compaction on or off."""
    title = autocompact_text(host).replace("*", "").replace("`", "")
    choices = [("on", "/autocompact on"), ("off", "/autocompact off")]
    return await _pick(app, host, title, choices, 0 if host.session.policy.enabled else 1)


async def branch(app: AnyApp, host: Host, _argument: str) -> Outcome | None:
    """Choose the message to continue from."""
    choices = [
        (f"{'folded' if prompt.folded else '':<8}{short_line(prompt.text)}", f"/branch {prompt.entry}")
        for prompt in await user_prompts(host)
    ]
    return await _pick(app, host, "Continue from before which message?", choices, len(choices) - 1)


async def tree(app: AnyApp, host: Host, _argument: str) -> Outcome | None:
    """Choose a branch."""
    choices = [
        (f"{'here  ' if one.current else '      '}{one.messages:>4}  {short_line(one.text)}", f"/tree {n}")
        for n, one in enumerate(await host.session.branches(), 1)
    ]
    return await _pick(app, host, "Switch to which branch?", choices)


async def resume(app: AnyApp, host: Host, _argument: str) -> Outcome | None:
    """Choose a session of the folder."""
    choices: list[tuple[str, str]] = []
    for info in await host.sessions():
        title = short_line(await session_title(host, info)) or info.id
        line = f"{local_date(info.updated)}  {info.messages:>4} messages  {title}"
        choices.append((line, f"/resume {info.id}"))
    return await _pick(app, host, "Continue which session?", choices)


ALWAYS: dict[str, ScreenCommand] = {"preview": preview, "handoff": handoff}
BARE: dict[str, ScreenCommand] = {
    "autocompact": autocompact,
    "branch": branch,
    "resume": resume,
    "tree": tree,
}


async def _pick(
    app: AnyApp, host: Host, title: str, choices: Sequence[tuple[str, str]], selected: int = 0
) -> Outcome | None:
    """Let the user choose one of several lines, each with a command, and run its command."""
    if not choices:
        return Outcome("There is nothing to choose from yet.")
    index = await app.push_screen_wait(Picker(title, [line for line, _ in choices], selected))
    return None if index is None else await registry.run(host, choices[index][1])
