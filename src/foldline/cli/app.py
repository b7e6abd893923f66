"""The `foldline` command: finds the subcommand, runs it, and turns errors into exit codes.

Exit codes: 0 done, 1 the work failed, 2 the call or the input is wrong.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

import foldline
from foldline.errors import FoldlineError, did_you_mean
from foldline.terminal import clean

COMMANDS = {
    "chat": "Talk to the agent in the terminal, its context in view.",
    "run": "Send one prompt to the agent; its answer as text or JSON lines.",
    "rpc": "Serve the agent to another program, JSON lines both ways.",
    "serve": "Serve sessions over HTTP, and a gateway for any agent.",
    "tokens": "Make a token for the service, to be kept by its hash.",
    "mcp": "Serve a session to agents as MCP tools: recall, rules, figures.",
    "compact": "Fit a session file into a budget of tokens.",
    "wrap": "Lead an agent through the gateway, with MCP tools.",
    "unwrap": "Put an agent's settings back as they were.",
    "doctor": "Say which agents are wrapped, and what to do.",
    "hook": "Answer a hook of Claude Code's plugin.",
    "statusline": "Print a status line for Claude Code.",
    "slim": "Fold an agent's session of this folder; the agent resumes it.",
    "inspect": "Show where a session's tokens are, and what is wrong with it.",
    "constraints": "Show the rules that the user stated, and what ended them.",
    "replay": "Replay sessions under several policies, turn by turn.",
    "check": "Fail where a replay loses a rule or exceeds the window.",
    "bench": "Measure Foldline beside the systems of others.",
    "batch": "Fold or replay an archive of sessions, resumable.",
    "import": "Put a session file into the store.",
    "export": "Write a session in the format of another tool.",
    "sessions": "List the stored sessions.",
    "show": "Show a stored session: history, view, boundaries.",
    "undo": "Undo the newest compaction of a stored session.",
    "redo": "Take back the newest undo of a stored session.",
    "merge": "Note in a session what was done on another branch.",
    "exclude": "Take a message of a stored session out of its context.",
    "search": "Search everything that was said, folded messages included.",
    "verify": "Check that everything stored is intact.",
    "backup": "Copy the store to a file while it is in use.",
    "migrate": "Copy every session to another store.",
    "purge": "Delete a stored session permanently.",
    "policies": "Show the policies as a table.",
    "demo": "Fold an example session and show every step.",
    "completion": "Print the completion script of a shell.",
}

# the files of commands that are named otherwise
MODULES = {
    "import": "import_",
    **dict.fromkeys(("wrap", "unwrap", "doctor"), "wrap"),
    "statusline": "hook",
    "redo": "undo",
    **dict.fromkeys(("sessions", "show", "search"), "stored"),
    **dict.fromkeys(("verify", "backup", "migrate", "purge"), "stores"),
}

INTERRUPTED = 130  # as in shells: 128 + SIGINT
# of our errors, for --json
PARTS = frozenset(("where", "line", "index", "floor", "budget", "breakdown", "leaf", "detail"))

EXAMPLES = """
\b
Examples:
  foldline compact session.jsonl --target 32000 -o folded.jsonl
  foldline compact session.jsonl --target 32000 --policy pi --preview
  foldline inspect ~/.claude/projects/my-project/1234.jsonl
  foldline import session.jsonl && foldline sessions
"""


class _ReaderLeft(Exception):
    """The reader of standard output closed it, as in `| head`; click turns a BrokenPipeError into exit 1."""


class _Commands(click.Group):
    """A group that loads a command's module when it is called, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"foldline.cli.commands.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete a command's name without loading any."""
        found = [CompletionItem(name, help=about) for name, about in COMMANDS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(item for item in found if item.value.startswith(incomplete)), *options]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderLeft from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Commands,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(foldline.__version__, prog_name="foldline")
def cli() -> None:
    """Keep long LLM sessions inside the context window, and lose nothing.

    A command that prints takes --json. Exit codes: 0 done, 1 the work failed, 2 call or input is wrong.
    """


class _CleanFormatter(logging.Formatter):
    """Of warnings on standard error: they may quote a session."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message without what steers a terminal."""
        return clean(super().format(record))


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit.

    An error's text goes to standard error; with --json its parts also go to standard output as
    {"error": {"type", "message", "exit_code", ...}}, that of `run` as an event: {"type": "error", "error"}.
    """
    _open_streams()
    words = sys.argv[1:] if args is None else args
    logging.getLogger("stamina").addHandler(logging.NullHandler())  # a wait is told in our words
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_CleanFormatter())
    try:
        code: Any = cli.main(words, prog_name="foldline", standalone_mode=False)
        sys.stdout.flush()  # here a full disk can still be reported
    except Exception as error:
        report = (_told if words[0] == "run" else _report) if "--json" in words else None
        code = _failed(error, report)
    except KeyboardInterrupt:
        _complain("interrupted; finished work is kept")
        code = INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)


def _open_streams() -> None:
    """Open nothing for a standard stream that is closed; let output in no Unicode replace what it lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - to the end
    output: Any = sys.stdout
    if hasattr(output, "reconfigure") and "utf" not in output.encoding.lower():
        output.reconfigure(errors="replace")


def _failed(error: Exception, report: Callable[[Exception, int], None] | None) -> int:
    """Report an error and return the exit code; an unexpected error is a bug and is raised again."""
    match error:
        case _ReaderLeft() | BrokenPipeError():
            _discard_output()
            return 0
        case click.Abort(__cause__=KeyboardInterrupt()):
            _complain("interrupted; finished work is kept")
            return INTERRUPTED
        case click.Abort():
            _complain("aborted; nothing was changed")
            return INTERRUPTED
        case FoldlineError():
            code, text = error.exit_code, str(error)
        case click.ClickException():
            error.show()
            code, text = error.exit_code, ""
        case OSError():
            code, text = 1, f"{error.filename or 'input or output'}: {error.strerror or error}"
        case MemoryError():
            code, text = 1, "out of memory: this file is too large to fold at once"
        case _:
            raise error
    if text:
        _complain(text)
    try:
        if report is not None:
            report(error, code)
        sys.stdout.flush()
    except OSError:  # standard output itself failed
        _discard_output()
    return code


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str) -> None:
    click.echo(click.style("error: ", fg="red") + clean(text), err=True)


def _message(error: Exception) -> str:
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


def _told(error: Exception, _code: int) -> None:
    click.echo(json.dumps({"type": "error", "error": _message(error)}))


def _report(error: Exception, code: int) -> None:
    parts = {key: value for key, value in vars(error).items() if key in PARTS and value not in (None, "")}
    found = {"type": type(error).__name__, "message": _message(error), "exit_code": code, **parts}
    click.echo(json.dumps({"error": found}))
