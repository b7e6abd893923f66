"""What a word may become: a command after a slash, a file after an at sign."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.agent.commands.registry import COMMANDS
from foldline.agent.tools.find import files
from foldline.agent.workspace import Workspace

SHOWN = 8
LISTED = 5_000  # files of the folder that are offered


class Completion:
    """Completes words in a folder; its files are listed once, in a thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._files: list[str] = []

    def load(self) -> None:
        """List the files of the folder."""
        found: list[str] = []
        for path in files(self._workspace.root):
            found.append(self._workspace.shown(path))
            if len(found) >= LISTED:
                break
        self._files = found

    def __call__(self, word: str, first: bool) -> Sequence[str]:
        """Return what a word may become, the likeliest first."""
        if word.startswith("/"):
            return [f"/{name}" for name in COMMANDS if f"/{name}".startswith(word)] if first else ()
        typed = word[1:].lower()
        begin = [name for name in self._files if name.lower().startswith(typed)]
        inside = [name for name in self._files if typed in name.lower() and name not in begin[:SHOWN]]
        return [f"@{name}" for name in (*begin, *inside)][:SHOWN]
