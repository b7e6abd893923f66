"""The `foldline` command: finds the subcommand, runs it, and turns errors into exit codes.

Exit codes: 0 done, 1 the work failed, 2 the call or the input is wrong.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

import foldline
from foldline.errors import FoldlineError

COMMANDS = {
    "compact": "Fit a session file into a budget of tokens.",
    "inspect": "Show where a session's tokens are, and what is wrong with it.",
    "import": "Put a session file into the store.",
    "export": "Write a stored session to a file.",
    "sessions": "List the stored sessions.",
    "show": "Show a stored session: history, view, boundaries.",
    "search": "Search what was said, folded messages included.",
    "verify": "Prove the store, or a file of ours, whole.",
    "purge": "Delete a stored session for good.",
    "policies": "Show the policies as a table.",
    "demo": "Fold an example session and show every step.",
}

EXAMPLES = """
\b
Examples:
  foldline compact session.jsonl --target 32000 -o folded.jsonl
  foldline compact session.jsonl --target 32000 --policy pi --preview
  foldline inspect ~/.claude/projects/my-project/1234.jsonl
  foldline import session.jsonl && foldline sessions
"""


class _Commands(click.Group):
    """A group that loads a command's module when it is called, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"foldline.cli.{cmd_name}_").command
        return command

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

    Every command takes --json. Exit codes: 0 done, 1 the work failed, 2 the call or the input is wrong.
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit."""
    try:
        code: Any = cli.main(args, prog_name="foldline", standalone_mode=False)
    except FoldlineError as error:
        _complain(str(error))
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted; nothing that was stored is lost")
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        _complain(f"{error.filename or 'input or output'}: {error.strerror or error}")
        code = 1
    except MemoryError:
        _complain("out of memory: this file is too large to fold at once")
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    click.echo(click.style("error: ", fg="red") + text, err=True)
