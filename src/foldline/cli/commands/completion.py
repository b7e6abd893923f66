"""`foldline completion SHELL`: print a script that makes a shell complete commands, options and names."""

from __future__ import annotations

from typing import Literal

import click
from click.shell_completion import get_completion_class

from foldline.cli.options import Shown, argument, command

VARIABLE = "_FOLDLINE_COMPLETE"


@command(
    'eval "$(foldline completion bash)"                        in ~/.bashrc',
    'eval "$(foldline completion zsh)"                         in ~/.zshrc',
    "foldline completion fish > ~/.config/fish/completions/foldline.fish",
)
def completion(shell: Literal["bash", "zsh", "fish"] = argument("bash|zsh|fish")) -> Shown:
    """Print a shell's completion script: for commands, options, policies, ids of stored sessions, files."""
    completer = get_completion_class(shell)
    assert completer is not None
    script = completer(click.get_current_context().find_root().command, {}, "foldline", VARIABLE).source()
    return Shown(lambda: {"shell": shell, "script": script}, lambda: click.echo(script))
