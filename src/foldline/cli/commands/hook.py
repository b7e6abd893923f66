"""`foldline hook` and `foldline statusline`: what Claude Code runs by itself.

Neither may harm the agent that runs it: whatever comes in, the exit code is 0. Their options are made by
click alone, since `foldline.cli.options` takes longer to load than the line to write.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

LONGEST = 1024 * 1024  # bytes that Claude Code says of a session; it writes 2,000
HOOK_EXAMPLES = """
\b
Examples:
  foldline hook claude session.compact < event.json
  foldline hook claude SessionStart < event.json
"""
STATUS_EXAMPLES = """
\b
Examples:
  foldline statusline < status.json
"""


@click.command(epilog=HOOK_EXAMPLES)
@click.argument("agent", metavar="claude")
@click.argument("event", metavar="EVENT")
def hook(agent: str, event: str) -> None:
    """Answer a hook of Claude Code: its event on standard input, the answer on standard output.

    Its plugin runs this. EVENT is session.compact, which folds the messages, or SessionStart, which puts the
    user's rules back behind a compaction of Claude Code's own. What goes wrong is told as "why", or on
    standard error; the exit code is 0.
    """
    try:
        answer = _answer(agent, event, sys.stdin.buffer.read())
    except Exception as error:  # a hook must not break the agent
        why = " ".join(f"{error}".split()) or type(error).__name__
        answer = {"why": why} if event == "session.compact" else None
        click.echo(f"foldline: {why}", err=True)
    if answer is not None:
        click.echo(json.dumps(answer))


def _answer(agent: str, event: str, given: bytes) -> dict[str, Any] | None:
    import msgspec  # noqa: PLC0415  what takes long is loaded where its errors are caught

    from foldline.core.log import codec  # noqa: PLC0415
    from foldline.wrapping.claude_hooks import CompactionEvent, fold, rules_put_back  # noqa: PLC0415

    if agent == "claude" and event == "session.compact":
        return fold(msgspec.convert(codec.decode(given), CompactionEvent, strict=False))
    if agent == "claude" and event == "SessionStart":
        return rules_put_back(msgspec.convert(codec.decode(given), dict[str, Any]))
    return None


@click.command(epilog=STATUS_EXAMPLES)
def statusline() -> None:
    """Print a status line for Claude Code: model, how full its window is, folds, tokens saved, rules.

    Claude Code runs this with what it says of the session on standard input. `foldline wrap claude` sets it.
    """
    from foldline.wrapping.statusline import status_line  # noqa: PLC0415  the other command does not need it

    try:
        line = status_line(json.loads(sys.stdin.buffer.read(LONGEST)))
    except Exception:  # nothing to show
        line = ""
    if line:
        click.echo(line)
