from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from foldline.cli.app import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SESSION = EXAMPLES / "session.jsonl"
CHAT = EXAMPLES / "support-chat.json"


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_command(capture: pytest.CaptureFixture[bytes], *args: object) -> CommandResult:
    capture.readouterr()
    with pytest.raises(SystemExit) as left:
        main([str(arg) for arg in args])
    printed = capture.readouterr()
    return CommandResult(int(left.value.code or 0), printed.out.decode(), printed.err.decode())


def talk(*texts: str, long: int = 0) -> list[dict[str, Any]]:
    """Messages that take turns, each followed by `long` words."""
    words = " ".join(f"word{n}" for n in range(long))
    return [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{text} {words}".strip()}
        for n, text in enumerate(texts)
    ]


def write_lines(path: Path, messages: list[Any]) -> Path:
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    return path


def coding_session(turns: int = 8) -> list[dict[str, Any]]:
    """A coding session in Anthropic's shape: each turn asks, reads a file, runs a test and reports."""
    said: list[dict[str, Any]] = []
    for n in range(turns):
        lines = "\n".join(f"line {k} of module{n}: value_{n}_{k} = {k * 37}" for k in range(60))
        said += [
            {"role": "user", "content": f"Please mend module{n}.py. Never touch the lock file."},
            {"role": "assistant", "content": [
                {"type": "text", "text": f"I'll read module{n}.py first."},
                {"type": "tool_use", "id": f"toolu_r{n}", "name": "read_file", "input": {"path": f"src/module{n}.py"}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_r{n}", "content": lines}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": f"toolu_t{n}", "name": "bash", "input": {"command": f"pytest tests/test_{n}.py"}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_t{n}", "content": f"{n} passed in 0.1s"}]},
            {"role": "assistant", "content": f"module{n}.py is mended; {n} tests pass."},
        ]  # fmt: skip
    return said
