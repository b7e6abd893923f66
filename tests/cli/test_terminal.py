"""What every command writes to a real terminal steers none, whatever sessions, models, files and errors say."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from tests.agent.program import environment, serve_model
from tests.cli.calling import write_lines
from tests.cli.test_hostile_text import NAME, RAW, STEERING, hostile
from tests.support import forked

from foldline.cli.app import COMMANDS
from foldline.testing import call

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here: run on Linux or macOS")
pytestmark = pytest.mark.slow

# a screen of its own (tests/tui), another program, a page, a hook
ELSEWHERE = {"chat", "mcp", "rpc", "serve", "hook", "statusline"}
CASES = {
    "run": ["run", "-p", "Look.", "--model", "MODEL"],
    "run, as JSON": ["run", "-p", "Look.", "--model", "MODEL", "--json"],
    "run, a command that finds": ["run", "-p", "/recall Next", "--resume", "ID", "--model", "MODEL"],
    "run, a command that fails": ["run", "-p", f"/{STEERING}".replace("\0", ""), "--model", "MODEL"],
    "run, another model": ["run", "-p", "Look.", "--model", NAME],
    "compact": ["compact", "FILE", "--target", "900"],
    "compact, as JSON": ["compact", "FILE", "--target", "900", "--json"],
    "wrap": ["wrap", "codex", "--gateway", f"http://127.0.0.1:9/{STEERING}"],
    "unwrap": ["unwrap", "codex"],
    "doctor": ["doctor", "--gateway", f"http://127.0.0.1:9/{STEERING}"],
    "slim": ["slim", "FILE"],
    "slim, no such agent": ["slim", NAME],
    "check": ["check", "FILE", "--window", "3000"],
    "completion": ["completion", "bash"],
    "inspect": ["inspect", "FILE"],
    "inspect, no such file": ["inspect", NAME],
    "constraints": ["constraints", "FILE"],
    "constraints, as JSON": ["constraints", "FILE", "--json"],
    "replay": ["replay", "FILE", "--window", "3000"],
    "bench": ["bench", "--systems", "newest", "--measures", "valid", "--messages", "40"],
    "batch": ["batch", "fold", "FILE", "--target", "900", "-o", "out"],
    "import": ["import", "FILE"],
    "export": ["export", "FILE", "--format", "markdown"],
    "export, another format": ["export", "FILE", "--format", "openai-chat"],
    "sessions": ["sessions"],
    "sessions, as JSON": ["sessions", "--json"],
    "show": ["show", "ID"],
    "show, as JSON": ["show", "ID", "--json"],
    "exclude, no such entry": ["exclude", "ID", NAME],
    "undo, nothing to undo": ["undo", "ID"],
    "redo, nothing to redo": ["redo", "ID"],
    "merge": ["merge", "ID"],
    "merge, no such branch": ["merge", "ID", NAME],
    "search": ["search", "Next"],
    "search, as JSON": ["search", "Next", "--json"],
    "verify": ["verify", "ID"],
    "backup": ["backup", NAME],
    "migrate": ["migrate", "sqlite:///other.db"],
    "purge": ["purge", "ID", "--yes"],
    "policies": ["policies"],
    "tokens": ["tokens", NAME],
    "policies, no such": ["policies", NAME],
    "demo": ["demo"],
}


def on_a_terminal(folder, *words):
    """Run a command on a pseudo-terminal of its own; return its exit code and all that it wrote."""
    ours, theirs = pty.openpty()
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        process = forked.Program(
            words,
            folder=folder / "work",
            env=environment(folder, TERM="dumb"),
            streams=(nothing.fileno(), theirs, theirs),
        )
    os.close(theirs)
    written = b""
    with os.fdopen(ours, "rb", buffering=0) as screen:
        try:
            while piece := screen.read(65_536):
                written += piece
        except OSError:  # the last one who had the terminal open is gone
            pass
    return process.wait(), written.decode("utf-8", "replace")


def answers(asked):
    """Call a tool with a hostile argument, then say something hostile."""
    return call("find", pattern=f"*{STEERING}") if asked.index % 2 == 0 else f"Done {STEERING}."


def test_every_command_is_looked_at():
    assert {name.partition(",")[0] for name in CASES} | ELSEWHERE == set(COMMANDS)


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A folder with a hostile session: as a file, and in the store of its home."""
    folder = tmp_path_factory.mktemp("imported")
    (folder / "work").mkdir()
    said = [{"title": f"A title {STEERING}", "model": f"m{STEERING}"}, *hostile()]
    file = write_lines(folder / "work" / NAME.replace("/", ""), said)
    code, _ = on_a_terminal(folder, "import", str(file), "--id", "work")
    assert code == 0
    return folder


@pytest.mark.parametrize("words", CASES.values(), ids=CASES.keys())
def test_no_command_steers_a_terminal(tmp_path, imported, words):
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "work" / NAME.replace("/", "")
    with serve_model(answers) as (_, model):
        known = {"FILE": str(file), "ID": "work", "MODEL": model}
        _, written = on_a_terminal(tmp_path, *[known.get(word, word) for word in words])
    assert "Traceback" not in written
    assert written.strip()
    seen = re.sub(r"\x1b\[\d*m", "", written.replace("\r\n", "\n"))  # "error:" is red
    assert [character for character in RAW if character in seen] == []


def test_what_a_model_says_is_on_the_terminal_with_its_escapes(tmp_path):
    (tmp_path / "work").mkdir()
    with serve_model(["Look: \x1b]0;owned\x07\u202e!"]) as (_, model):
        code, written = on_a_terminal(tmp_path, "run", "-p", "Say it.", "--model", model)
    assert code == 0
    assert "Look: \\x1b]0;owned\\x07\\u202e!" in written
