"""What goes wrong ends in an exit code, a text that names the place, and with --json in an object."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.calling import coding_session, talk, write_lines

from foldline.cli.common import available
from foldline.errors import FormatError
from foldline.stores.sqlite_database import APPLICATION
from foldline.transcripts import open_transcript, source

TARGET = ("--target", 2000)


def commands(file):
    return (("compact", file, *TARGET), ("inspect", file), ("import", file))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "is empty"),
        (bytes(range(256)) * 20, "binary"),
        (b"\x1f\x8b" + b"\xff" * 50, "broken gzip"),
        (b"just notes\n", "not a session file"),
        (b'{"role": "user", "content": 7}\n', "nothing in this file can be read"),
        (b'[{"role": "user", "content": "a"},\n {"role" "user"}]', "session.jsonl:2: not JSON"),
        (b'[{"role": "user", "content": "a"}, {"role": 7, "content": "b"}]', "message 1"),
        (b"[" * 100_000 + b"]" * 100_000, "nested"),
        (b"[]", "session.jsonl"),
        (b'{"meta": {"agent": "x"}}\n', "no message in this file"),
    ],
)
def test_what_is_no_session_is_named_by_every_command(foldline, tmp_path, raw, text):
    file = tmp_path / "session.jsonl"
    file.write_bytes(raw)
    for command in commands(file):
        done = foldline(*command)
        assert done.code == 2, command
        assert "session.jsonl" in done.err
        assert text in done.err
        assert not done.out
    assert file.read_bytes() == raw


def test_files_that_cannot_be_read(foldline, tmp_path):
    for name, text in (
        (tmp_path, "this is a directory"),
        (tmp_path / "missing", "no such file"),
        ("/proc/self/mem", "cannot be"),
    ):
        for command in commands(name):
            done = foldline(*command, "--json")
            assert done.code == 2
            assert f"{name}: {text}" in done.err
            assert done.json["error"]["where"] == str(name)


def test_the_whole_lines_of_a_truncated_file_survive(foldline, file):
    raw = file.read_bytes()
    file.write_bytes(raw[: raw.rindex(b"mended")])
    for command in commands(file):
        done = foldline(*command, "--json")
        assert done.code == 0
        assert "warning: line 18: " in done.err
        assert "the file ends inside this line" in done.err
    assert foldline("import", file, "--json").json["messages"] == 17
    assert foldline("inspect", file, "--json").json["messages"] == 17


@pytest.mark.skipif(available() is None, reason="the system does not say how much memory is free")
def test_a_file_that_memory_cannot_hold_is_refused_before_it_is_read(foldline, file):
    os.truncate(file, 2**40)  # a hole: nothing is written
    for command in commands(file):
        done = foldline(*command)
        assert done.code == 2
        assert "session.jsonl: too large for this machine: 1,099.5 GB need about" in done.err


def test_a_file_of_warnings_shows_the_first_ten(foldline, tmp_path):
    file = tmp_path / "many.jsonl"
    write_lines(file, talk("one"))
    file.write_bytes(file.read_bytes() + b"{broken}\n" * 30)
    done = foldline("inspect", file)
    assert done.code == 0
    assert done.err.count("warning: line") == 10
    assert "and 20 more" in done.err


def test_an_output_that_cannot_be_written_leaves_the_old_one(foldline, file, tmp_path):
    full = foldline("compact", file, *TARGET, "-o", "/dev/full", "--json")
    assert full.code == 1
    assert "/dev/full: cannot be written: No space left on device" in full.err
    assert full.json["error"]["type"] == "FoldlineError"
    for bad in (tmp_path / "no" / "such" / "out.jsonl", tmp_path, file / "x"):
        done = foldline("compact", file, *TARGET, "-o", bad)
        assert done.code == 2
        assert str(bad) in done.err
    assert foldline("import", file, "--id", "work").code == 0
    assert foldline("export", "work", "-o", "/dev/full").code == 1


def test_a_fold_may_be_written_over_its_own_input(foldline, file):
    file.chmod(0o640)
    assert foldline("compact", file, *TARGET, "-o", file).code == 0
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in file.parent.iterdir() if path.is_file()] == [file.name]
    assert foldline("compact", file, *TARGET, "--json").json["cut"] is None


def test_a_link_stays_a_link(foldline, file, tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "target.jsonl")
    foldline("compact", file, *TARGET, "-o", link)
    assert link.is_symlink()
    assert (tmp_path / "target.jsonl").is_file()


def test_a_database_of_a_newer_version_or_of_somebody_else_is_left_alone(foldline, file, tmp_path):
    newer, other, torn = tmp_path / "newer.db", tmp_path / "other.db", tmp_path / "torn.db"
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 99")
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute("CREATE TABLE entries (x)")
    database.close()
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE notes (text)")
    database.close()
    torn.write_bytes(b"no database at all" * 400)
    for path, text in (
        (newer, "written by a newer Foldline"),
        (other, "belongs to another program"),
        (torn, "not a Foldline database"),
    ):
        before = path.read_bytes()
        for command in (("import", file), ("sessions",), ("verify",)):
            done = foldline(*command, "--store", f"sqlite:///{path}")
            assert done.code == 2, done
            assert str(path) in done.err
            assert text in done.err
        assert path.read_bytes() == before


def test_damage_in_the_store_is_found(foldline, file):
    foldline("import", file, "--id", "work")
    path = Path.home() / ".foldline" / "foldline.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "UPDATE entries SET payload = cast(replace(payload, 'module1', 'module9') AS BLOB) WHERE seq = 8"
        )
    database.close()
    done = foldline("verify")
    assert done.code == 1
    assert "problem: " in done.err
    told = foldline("verify", "--json")
    assert told.code == 1
    assert told.json["ok"] is False
    assert "work" in told.json["problems"][0]


def test_wrong_calls_say_what_is_right(foldline, file):
    for args, text in (
        (["nosuch"], "No such command"),
        (["compact"], "Missing argument 'FILE|ID'"),
        (["compact", file, "--dialect", "latin"], "is not one of"),
        (["compact", file, "--policies", "/no/such.toml"], "/no/such.toml: no such file"),
        (["policies", "nobody"], "no policy 'nobody'"),
        (["inspect", file, "--top", "0"], "Invalid value"),
        (["compact", file, "--model", "nobody:nothing", "--target", "2000"], None),
    ):
        done = foldline(*args, "--json")
        if text is None:
            continue
        assert done.code == 2, args
        assert text in done.err
        assert text in done.json["error"]["message"]


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/urandom", "/dev"])
def test_what_has_no_end_is_refused_at_once(foldline, name):
    if not Path(name).exists():
        pytest.skip("no such device here")
    for command in commands(name):
        done = foldline(*command)
        assert done.code == 2
        assert "name a session file" in done.err


def test_a_socket_is_no_session_file(foldline, tmp_path):
    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        done = foldline("inspect", place)
    assert (done.code, "socket" in done.err) == (2, True)


def test_a_pipe_of_zeros_is_refused_at_once(tmp_path):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    with subprocess.Popen(["sh", "-c", f"cat /dev/zero > {place}"]) as endless:
        with pytest.raises(FormatError, match="binary data"):
            open_transcript(place)
        endless.kill()


def test_a_pipe_that_does_not_end_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(source, "_LONGEST", 5 * 2**20)
    place = tmp_path / "pipe"
    os.mkfifo(place)
    with subprocess.Popen(["sh", "-c", f"yes '{{\"a\": 1}}' > {place}"]) as endless:
        with pytest.raises(FormatError, match="within"):
            open_transcript(place)
        endless.kill()


def test_a_pipe_that_ends_is_read(foldline, file, tmp_path):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    with subprocess.Popen(["sh", "-c", f"cat {file} > {place}"]):
        assert foldline("inspect", place).code == 0


@pytest.mark.parametrize("command", ["replay", "check"])
def test_what_can_be_read_once_is_not_replayed(foldline, tmp_path, command):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    for name in ("-", place):
        done = foldline(command, name)
        assert done.code == 2
        assert "save it to a file first" in done.err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["sessions", "compact - --target 2000"])
def test_a_closed_stream_is_no_traceback(closed, words):
    command = f"{sys.executable} -m foldline.cli {words} {closed}"
    done = subprocess.run(
        ["sh", "-c", command], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == (0 if words == "sessions" else 2)


def test_output_in_no_unicode_replaces_what_it_lacks(file):
    command = [sys.executable, "-m", "foldline.cli", "inspect", str(file)]
    said = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(command, check=False, capture_output=True, env=said)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"tokens" in done.stdout


def test_a_token_for_longer_than_a_calendar_is_refused(foldline):
    assert foldline("tokens", "a", "--days", 4_000_000).code == 2


def test_the_demo_of_a_policy_that_never_folds(foldline, away_from_home):
    (away_from_home / ".foldline").mkdir()
    (away_from_home / ".foldline/settings.toml").write_text('[policies.foldline]\nbase = "amp"\n')
    assert "never compacts automatically" in foldline("demo").out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("compact", "{file}", "--target", "9000", "--dialect", "antropic"), "anthropic"),
        (
            ("batch", "fold", "{file}", "-o", "out", "--target", "9000", "--dialect", "openai-chats"),
            "openai-chat",
        ),
        (("export", "{file}", "--format", "claud-code"), "claude-code"),
        (("export", "{file}", "--format", "Codexx"), "codex"),
        (("export", "{file}", "--format", "markdown", "--results", "hole"), "whole"),
        (("compact", "{file}", "--target", "9000", "--policy", "claude-cod"), "claude-code"),
        (("policies", "foldlin"), "foldline"),
    ],
)
def test_a_wrong_name_is_told_the_closest_one(foldline, tmp_path, words, meant):
    file = write_lines(tmp_path / "session.jsonl", coding_session())
    done = foldline(*(word.format(file=file) for word in words))
    assert done.code == 2
    assert f"did you mean '{meant}'?" in done.err


def test_a_name_like_no_other_has_no_closest_one(foldline, tmp_path):
    file = write_lines(tmp_path / "session.jsonl", coding_session())
    done = foldline("export", file, "--format", "xyzzy")
    assert done.code == 2
    assert "did you mean" not in done.err
    assert "claude-code" in done.err


@pytest.mark.parametrize(
    ("word", "meant"),
    [("inspct", "inspect"), ("session", "sessions"), ("Compact", "compact"), ("xyzzy", None)],
)
def test_a_misspelt_command_is_answered_with_the_one_that_is_meant(foldline, word, meant):
    done = foldline(word)
    assert done.code == 2
    assert f"No such command '{word}'" in done.err
    assert ("did you mean" in done.err) is (meant is not None)
    assert meant is None or f"did you mean '{meant}'?" in done.err


def test_a_policy_that_is_named_shows_its_thresholds_in_the_window_that_is_given(foldline):
    assert (
        "in 64,000     47,616 tokens usable; hard above 47,616"
        in foldline("policies", "pi", "--window", 64_000).out
    )
    assert "usable; hard" not in foldline("policies", "pi").out
    told = foldline("policies", "foldline", "--window", 64_000).out
    assert "soft above" in told
    assert "hard above" in told


def test_one_message_is_not_called_messages(foldline, tmp_path):
    file = write_lines(tmp_path / "session.jsonl", [{"role": "user", "content": "word " * 900}])
    done = foldline("compact", file, "--target", 120)
    assert "add -o FILE to write 1 message, or --json" in done.out
