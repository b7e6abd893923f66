"""`foldline chat`: the agent in a full-screen terminal interface."""

from __future__ import annotations

import shlex
import sys

from foldline.cli.agent_options import AgentOptions
from foldline.cli.options import command
from foldline.cli.output import err, escape
from foldline.cli.tracing import traced
from foldline.errors import InputError


@command(
    "foldline chat --demo                                          a scripted model, no key needed",
    "foldline chat --model anthropic:claude-sonnet-4-5",
    "foldline chat --model openai-compatible:NAME@http://127.0.0.1:8080/v1",
    "foldline chat --continue",
    json=False,
)
def chat(agent: AgentOptions) -> None:
    """Talk to the agent; see, fold, undo, branch and hand over its context.

    Every message is stored at once. --continue continues the newest session of the folder. /help lists the
    commands.
    """
    options = agent.host()
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise InputError("chat needs a terminal: without one, use foldline run -p TEXT or foldline rpc")
    try:
        from foldline.tui.app import ChatApp  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        if error.name not in ("textual", "tomlkit"):
            raise
        raise InputError("the screen needs Textual: pip install 'foldline[chat]'") from error
    with traced():
        app = ChatApp(options, demo=agent.demo)
        app.run()
    if session := app.to_resume:
        err().print(f"[dim]to continue:[/] {escape(resume_command(session, agent.store))}", soft_wrap=True)
    sys.exit(app.return_code or 0)


def resume_command(session: str, store: str | None) -> str:
    """Return the command that continues a session."""
    from foldline.stores.urls import without_password  # noqa: PLC0415  slow: not before the screen appears

    option = f" --store {shlex.quote(without_password(store))}" if store else ""
    return f"foldline chat --resume {shlex.quote(session)}{option}"
