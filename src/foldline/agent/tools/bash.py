"""bash: run a command with a time-out; a long output is shown in part and stored in full."""

from __future__ import annotations

import codecs
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Self

from foldline.agent.permissions import PermissionRequest
from foldline.agent.processes import run_process
from foldline.agent.tools.toolbox import AgentTool, Arguments, Output, in_part, number
from foldline.agent.tools.toolbox import text as string
from foldline.agent.workspace import Workspace
from foldline.files import make_private
from foldline.session.definitions import Tool

SECONDS = 120  # the default time-out
MAX_SECONDS = 3_600
SHOWN = 30_000  # characters of an output, from its beginning and end
HEAD = 10_000  # of these at the beginning
STORED = 50_000_000  # bytes of an output; a command that prints more is stopped
ENVIRONMENT = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"}


def make(workspace: Workspace, shell: str = "/bin/bash") -> AgentTool:
    """Return the tool; commands run in the workspace's folder."""
    program = shell if Path(shell).exists() else "/bin/sh"

    async def run(arguments: Arguments) -> Output:
        seconds = min(arguments.get("timeout", SECONDS), MAX_SECONDS)
        with _OutputFile(workspace.outputs) as printed:
            code = await run_process(
                [program, "-c", arguments["command"]],
                workspace.root,
                seconds,
                output=printed.take,
                variables=ENVIRONMENT,
            )
            output = printed.text()
        if code is not None:
            end = f"[exit code {code}]" if code else ""
        elif printed.size >= STORED:
            end = f"[more than {STORED:,} bytes of output: stopped]"
        else:
            end = f"[not finished after {seconds} s: stopped]"
        return Output(
            "\n".join(filter(None, (output, end))) or "(no output)", failed=bool(code) or code is None
        )

    about = Tool(
        "bash",
        f"Run a command with bash in the working folder. It is stopped after {SECONDS} s or `timeout`. "
        "There is no terminal and no input. Background processes end with it.",
        {"command": string("The command."), "timeout": number(f"Seconds, {MAX_SECONDS} at most.")},
        ("command",),
    )
    return AgentTool(about, run, asks=lambda arguments: PermissionRequest("bash", arguments["command"]))


class _OutputFile:
    """The output of a command: its beginning and end in memory, all of it in a file if it is long."""

    def __init__(self, folder: Path | None) -> None:
        self.size = 0  # bytes
        self._characters = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begin = self._end = ""
        self._folder = folder
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        if self._folder is not None:
            make_private(self._folder)
            self._file = NamedTemporaryFile(
                "wb", dir=self._folder, prefix="bash-", suffix=".txt", delete=False
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            if self._characters <= SHOWN:
                Path(self._file.name).unlink(missing_ok=True)

    def take(self, piece: bytes) -> bool:
        piece = piece[: STORED - self.size]
        self.size += len(piece)
        if self._file is not None:
            self._file.write(piece)
        self._add(self._decoder.decode(piece))
        return self.size < STORED

    def _add(self, text: str) -> None:
        self._characters += len(text)
        self._begin += text[: SHOWN - len(self._begin)]
        self._end = (self._end + text)[HEAD - SHOWN :]

    def text(self) -> str:
        """Return the output, or its beginning and end with the path of the file."""
        self._add(self._decoder.decode(b"", final=True))
        if self._characters <= SHOWN:
            return self._begin.rstrip("\n")
        tail = self._end.rstrip("\n")
        hint = f"\n[full output: read {self._file.name}]" if self._file is not None else ""
        return in_part(self._begin[:HEAD], f"{tail}{hint}", self._characters - SHOWN)
