"""`foldline hook` and `foldline statusline`: the commands that Claude Code runs.

Neither may break the agent: the exit code is 0 for any input. They use click directly, because loading
`foldline.cli.options` takes longer than their work.
"""

from __future__ import annotations

import json
import sys
from typing import Any, TypeVar

import click

T = TypeVar("T")
LONGEST = 1024 * 1024  # bytes of a status; Claude Code writes some 2,000
HOOK_EXAMPLES = """
\b
Examples:
  foldline hook claude session.compact < event.json
  foldline hook claude SessionStart < event.json
"""
NO_EVENT = (
    "standard input {problem}; an event of Claude Code is expected there, as JSON: the plugin writes it "
    "(docs/agents.md says how to install it)"
)
STATUS_EXAMPLES = """
\b
Examples:
  foldline statusline < status.json
"""


@click.command(epilog=HOOK_EXAMPLES)
@click.argument("agent", metavar="claude")
@click.argument("event", metavar="EVENT")
def hook(agent: str, event: str) -> None:
    """Answer a hook of Claude Code: read the event from standard input, print the answer.

    The plugin runs this. EVENT is session.compact, which folds the messages, or SessionStart, which adds the
    user's rules again after Claude Code itself compacted. An error is written to standard error, and for
    session.compact as "why" in the answer; the exit code is 0.
    """
    try:
        answer = _answer(agent, event, sys.stdin.buffer.read())
    except Exception as error:  # a hook must not break the agent
        text = " ".join(f"{error}".split()) or type(error).__name__
        answer = {"why": text} if event == "session.compact" else None
        click.echo(f"foldline: {text}", err=True)
    if answer is not None:
        click.echo(json.dumps(answer))


def _answer(agent: str, event: str, document: bytes) -> dict[str, Any] | None:
    # slow; its errors are caught here
    from foldline.wrapping.claude_hooks import CompactionEvent, fold, rules_put_back  # noqa: PLC0415

    if agent == "claude" and event == "session.compact":
        return fold(_event(document, CompactionEvent))
    if agent == "claude" and event == "SessionStart":
        return rules_put_back(_event(document, dict[str, Any]))
    return None


def _event(document: bytes, kind: type[T]) -> T:
    """Read an event; raises InputError that says what is expected."""
    import msgspec  # noqa: PLC0415  slow

    from foldline.core.log import codec  # noqa: PLC0415
    from foldline.errors import InputError  # noqa: PLC0415

    if not document.strip():
        raise InputError(NO_EVENT.format(problem="is empty"))
    try:
        return msgspec.convert(codec.decode(document), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(NO_EVENT.format(problem=f"is something else ({error})")) from error
    except ValueError as error:
        raise InputError(NO_EVENT.format(problem="is not JSON")) from error


@click.command(epilog=STATUS_EXAMPLES)
def statusline() -> None:
    """Print a status line for Claude Code: model, how full its window is, folds, tokens saved, rules.

    Claude Code runs this, with the session's status on standard input. `foldline wrap claude` sets it up.
    """
    from foldline.wrapping.statusline import status_line  # noqa: PLC0415  `hook` does not need it

    try:
        line = status_line(json.loads(sys.stdin.buffer.read(LONGEST)))
    except Exception:  # nothing to show
        line = ""
    if line:
        click.echo(line)
