"""What only a process of its own can show: pipes, terminals, limits of the system, being killed."""

from __future__ import annotations

import json
import os
import pty
import resource
import select
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.running import COMMAND, EXAMPLES, environment, run
from tests.support.waiting import wait_until

SESSION = EXAMPLES / "session.jsonl"


def test_a_pipe_in_and_out(tmp_path):
    chat = (EXAMPLES / "support-chat.json").read_bytes()
    done = run(tmp_path, "compact", "-", "--target", 1500, "-o", "-", input=chat)
    assert done.returncode == 0
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(messages) > 1
    again = run(tmp_path, "compact", "-", "--target", 1500, "--json", input=done.stdout)
    assert json.loads(again.stdout)["cut"] is None


@pytest.mark.parametrize(
    "args", [["compact", SESSION, "--target", 6000], ["compact", SESSION, "--target", 6000, "--json"]]
)
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path, args):
    words = [*COMMAND, *map(str, args)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path), cwd=tmp_path
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (0, b"")


def on_terminal(home: Path, *args: object, columns: int = 100, **more: str) -> str:
    """Run a command on a terminal of its own and return what it drew."""
    leader, follower = pty.openpty()
    env = environment(home, TERM="xterm-256color", COLUMNS=str(columns), **more)
    words = [*COMMAND, *(str(arg) for arg in args)]
    with subprocess.Popen(
        words, stdin=follower, stdout=follower, stderr=follower, env=env, cwd=home
    ) as process:
        os.close(follower)
        drawn = b""
        while select.select([leader], [], [], 60)[0]:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break  # the other end is closed
            if not piece:
                break
            drawn += piece
        process.wait(60)
    os.close(leader)
    assert process.returncode == 0
    return drawn.decode("utf-8", "replace")


@pytest.mark.slow
def test_colours_and_progress_are_for_terminals(tmp_path):
    drawn = on_terminal(tmp_path, "inspect", SESSION)
    assert "reading " in drawn
    assert "\x1b[32m" in drawn
    plain = on_terminal(tmp_path, "inspect", SESSION, NO_COLOR="1")
    assert "\x1b[3" not in plain.replace("\x1b[3A", "")
    piped = run(tmp_path, "inspect", SESSION)
    assert b"\x1b" not in piped.stdout + piped.stderr
    assert piped.stderr == b""


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_file_and_a_whole_store(tmp_path):
    old = tmp_path / "out.jsonl"
    old.write_text("old\n")

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    done = run(tmp_path, "compact", SESSION, "--target", 6000, "-o", old, preexec_fn=small_files)
    assert done.returncode == 1
    assert b"the old file is unchanged" in done.stderr
    assert old.read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    stored = run(tmp_path, "import", SESSION, preexec_fn=small_files)
    assert stored.returncode == 1
    assert b"Traceback" not in stored.stderr
    assert run(tmp_path, "import", SESSION).returncode == 0
    assert run(tmp_path, "verify").returncode == 0


def test_standard_output_that_is_full_is_told(tmp_path):
    for args in (["policies"], ["policies", "--json"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*COMMAND, *args],
                stdout=full,
                stderr=subprocess.PIPE,
                env=environment(tmp_path),
                cwd=tmp_path,
                check=False,
            )
        assert done.returncode == 1
        assert done.stderr.decode() == "error: input or output: No space left on device\n"


# Whoever stores this message never comes to an end of it.
ENDLESS = """
CREATE TRIGGER endless AFTER INSERT ON entries WHEN NEW.seq = 1500 BEGIN
    SELECT count(*) FROM (WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT n FROM n);
END"""


def on(file, statement):
    """Execute a statement on a store that somebody else is writing; return its first value."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        row = database.execute(statement).fetchone()
        return row and row[0]


@pytest.mark.slow
def test_a_killed_import_leaves_a_whole_store_and_is_completed(tmp_path):
    file, store = tmp_path / "long.jsonl", tmp_path / ".foldline" / "foldline.db"
    assert run(tmp_path, "import", SESSION, "--id", "short").returncode == 0
    on(store, ENDLESS)
    with file.open("w") as stream:
        for n in range(2000):
            role = "user" if n % 2 == 0 else "assistant"
            stream.write(json.dumps({"role": role, "content": f"message {n} " + "word " * 40}) + "\n")
    words = [*COMMAND, "import", str(file), "--id", "long"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path), cwd=tmp_path
    ) as process:
        wait_until(lambda: on(store, "SELECT entries FROM sessions WHERE id = 'long'"), 300)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    on(store, "DROP TRIGGER endless")
    assert json.loads(run(tmp_path, "verify", "--json").stdout) == {"ok": True, "problems": []}
    info = json.loads(run(tmp_path, "sessions", "--json").stdout)[0]
    assert info["id"] == "long"
    assert 0 < info["messages"] < 1500
    done = json.loads(run(tmp_path, "import", file, "--id", "long", "--json").stdout)
    assert done["new_entries"] == 2000 - info["messages"]
    assert json.loads(run(tmp_path, "sessions", "--json").stdout)[0]["messages"] == 2000
    assert run(tmp_path, "verify").returncode == 0


def test_two_imports_at_once_end_in_one_session(tmp_path):
    words = [*COMMAND, "import", str(SESSION), "--id", "one", "--json"]
    env = environment(tmp_path)
    both = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=tmp_path)
        for _ in range(2)
    ]
    told = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    new = sum(json.loads(out)["new_entries"] for out, _ in told)
    (info,) = json.loads(run(tmp_path, "sessions", "--json").stdout)
    assert info["entries"] <= new
    assert run(tmp_path, "verify").returncode == 0


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys, foldline\n"
        "assert set(sys.modules).isdisjoint({'foldline.session.session', 'msgspec', 'asyncio', 'sqlite3', 'click'}), 'import'\n"
        "from foldline.cli.app import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'foldline.session.session', 'foldline.core.compact.plan', 'sqlite3', 'asyncio', 'rich', 'msgspec', 'tomllib'}\n"
        "assert set(sys.modules).isdisjoint(heavy), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env=environment(tmp_path),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"compact" in done.stdout


@pytest.mark.slow
def test_settings_reach_the_commands(tmp_path):
    folder = tmp_path / ".foldline"
    folder.mkdir()
    (folder / "settings.toml").write_text(
        'policy = "mine"\nwindow = 30_000\nstore = "sqlite:///here.db"\n[policies.mine]\nbase = "pi"\n'
    )
    done = json.loads(run(tmp_path, "compact", SESSION, "--json").stdout)
    assert done["receipt"]["policy"] == "mine"
    assert done["view_tokens"] <= 30_000
    assert run(tmp_path, "import", SESSION).returncode == 0
    assert (tmp_path / "here.db").exists()
    by_variable = run(tmp_path, "compact", SESSION, "--json", env={"FOLDLINE_POLICY": "codex"})
    assert json.loads(by_variable.stdout)["receipt"]["policy"] == "codex"


@pytest.mark.slow
def test_a_line_of_fifty_megabytes(tmp_path):
    file = tmp_path / "big.jsonl"
    with file.open("w") as stream:
        stream.write(json.dumps({"role": "user", "content": "start"}) + "\n")
        stream.write(json.dumps({"role": "assistant", "content": "word " * 10_000_000}) + "\n")
        stream.write(json.dumps({"role": "user", "content": "and now?"}) + "\n")
    done = run(tmp_path, "inspect", file, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["messages"] == 3
    assert found["largest"][0]["index"] == 1
