"""The `foldline` command: finds the subcommand, runs it, and turns errors into exit codes.

Exit codes: 0 success, 1 the work failed, 2 wrong usage or input.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

import foldline
from foldline.errors import FoldlineError, did_you_mean
from foldline.terminal import clean

COMMANDS = {
    "chat": "Talk to the agent in the terminal.",
    "run": "Send one prompt to the agent, and print the answer.",
    "rpc": "Serve the agent to another program, as JSON lines both ways.",
    "serve": "Serve sessions over HTTP, and a gateway for any agent.",
    "tokens": "Make a token for the service.",
    "mcp": "Serve a session to agents as MCP tools.",
    "compact": "Fit a session file into a token budget.",
    "wrap": "Connect an agent to the gateway and the MCP server.",
    "unwrap": "Restore an agent's settings.",
    "doctor": "Show which agents are wrapped, and what to do.",
    "hook": "Answer a hook of Claude Code's plugin.",
    "statusline": "Print a status line for Claude Code.",
    "slim": "Fold an agent's session of this folder into a new one.",
    "inspect": "Show where a session's tokens are, and its problems.",
    "constraints": "Show the rules that the user stated, and what ended them.",
    "replay": "Replay sessions under several policies, turn by turn.",
    "check": "Fail if a replay loses a rule or exceeds the window.",
    "bench": "Compare Foldline with other systems.",
    "batch": "Fold or replay an archive of sessions.",
    "import": "Put a session file into the store.",
    "export": "Write a session in the format of another tool.",
    "sessions": "List the stored sessions.",
    "show": "Show a stored session: history, view, boundaries.",
    "undo": "Undo the newest compaction of a stored session.",
    "redo": "Revert the newest undo of a stored session.",
    "merge": "Add a summary of another branch to a session.",
    "exclude": "Remove a message of a stored session from its context.",
    "search": "Search all messages, including folded ones.",
    "verify": "Check that the store is intact.",
    "backup": "Copy the store to a file while it is in use.",
    "migrate": "Copy every session to another store.",
    "purge": "Delete a stored session permanently.",
    "policies": "Show the policies as a table.",
    "demo": "Fold an example session and show every step.",
    "completion": "Print a shell completion script.",
}

# modules that are not named like their commands
MODULES = {
    "import": "import_",
    "check": "replay",
    **dict.fromkeys(("wrap", "unwrap", "doctor"), "wrap"),
    "statusline": "hook",
    "tokens": "serve",
    **dict.fromkeys(("undo", "redo", "merge", "exclude"), "changes"),
    **dict.fromkeys(("sessions", "show", "search"), "stored"),
    **dict.fromkeys(("verify", "backup", "migrate", "purge"), "stores"),
}

INTERRUPTED = 130  # as in shells: 128 + SIGINT
# attributes of errors that --json includes
ERROR_FIELDS = frozenset(("where", "line", "index", "floor", "budget", "breakdown", "leaf", "detail"))

EXAMPLES = """
\b
Examples:
  foldline compact session.jsonl --target 32000 -o folded.jsonl
  foldline compact session.jsonl --target 32000 --policy pi --preview
  foldline inspect ~/.claude/projects/my-project/1234.jsonl
  foldline import session.jsonl && foldline sessions
"""


class _OutputClosed(Exception):
    """The reader closed standard output, as in `| head`; click would turn a BrokenPipeError into exit 1."""


class _Commands(click.Group):
    """A group that loads a command's module when it is called, so that --help is fast."""

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
        """Complete a command's name without loading its module."""
        commands = [CompletionItem(name, help=about) for name, about in COMMANDS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(item for item in commands if item.value.startswith(incomplete)), *options]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _OutputClosed from None

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
    """Keep long LLM sessions inside the context window without losing anything.

    Commands that print results take --json. Exit codes: 0 success, 1 the work failed, 2 wrong usage or input.
    """


class _CleanFormatter(logging.Formatter):
    """Formats warnings for the terminal; they may quote a session."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message without terminal control characters."""
        return clean(super().format(record))


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit.

    The text of an error goes to standard error; with --json it also goes to standard output, as
    {"error": {"type", "message", "exit_code", ...}}, for `run` as an event {"type": "error", "error"}.
    """
    _open_streams()
    arguments = sys.argv[1:] if args is None else args
    logging.getLogger("stamina").addHandler(logging.NullHandler())  # we report waits ourselves
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_CleanFormatter())
    try:
        code: Any = cli.main(arguments, prog_name="foldline", standalone_mode=False)
        sys.stdout.flush()  # a full disk can still be reported here
    except Exception as error:
        code = _handle(error, arguments)
    except KeyboardInterrupt:
        code = _print_error("interrupted; finished work is kept", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _open_streams() -> None:
    """Replace closed standard streams; let output that is not Unicode replace unknown characters."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until exit
    output: Any = sys.stdout
    if hasattr(output, "reconfigure") and "utf" not in output.encoding.lower():
        output.reconfigure(errors="replace")


def _handle(error: Exception, arguments: list[str]) -> int:
    """Report an error and return the exit code; an unexpected error is a bug and is raised again."""
    match error:
        case _OutputClosed() | BrokenPipeError():
            _discard_output()
            return 0
        case click.Abort(__cause__=KeyboardInterrupt()):
            return _print_error("interrupted; finished work is kept", INTERRUPTED)
        case click.Abort():
            return _print_error("aborted; nothing was changed", INTERRUPTED)
        case FoldlineError():
            code, text = error.exit_code, str(error)
        case click.ClickException():
            error.show()
            code, text = error.exit_code, ""
        case OSError():
            code, text = 1, f"{error.filename or 'input or output'}: {error.strerror or error}"
        case MemoryError():
            code, text = 1, "out of memory: the session is too large for this machine; split it"
        case _:
            raise error
    if text:
        _print_error(text, code)
    try:
        if "--json" in arguments:
            click.echo(json.dumps(_error_json(error, code, event=arguments[0] == "run")))
        sys.stdout.flush()
    except OSError:  # standard output itself failed
        _discard_output()
    return code


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(text: str, code: int) -> int:
    click.echo(click.style("error: ", fg="red") + clean(text), err=True)
    return code


def _error_json(error: Exception, code: int, *, event: bool) -> dict[str, Any]:
    """Return an error as --json prints it, or as an event of `run`."""
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if event:
        return {"type": "error", "error": message}
    fields = {
        key: value for key, value in vars(error).items() if key in ERROR_FIELDS and value not in (None, "")
    }
    return {"error": {"type": type(error).__name__, "message": message, "exit_code": code, **fields}}
