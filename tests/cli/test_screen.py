"""What a person sees: tables that hold at any width, one row a line in a pipe, help with examples."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.cli.calling import CHAT, EXAMPLES, SESSION, coding_session, write_lines

from foldline.cli.app import COMMANDS
from foldline.core.decide.presets import PRESETS

ROOT = Path(__file__).parents[2]
NAMES = ("foldline", "coop", "klaude", "gencode:low-cost", "claude-code", "opencode", "amp")


@pytest.fixture
def file(tmp_path):
    return write_lines(tmp_path / "session.jsonl", coding_session(4))


TALKS = {"chat", "mcp", "rpc", "serve", "hook", "statusline"}  # a screen, JSON both ways, HTTP
GROUPS = {"batch": ("fold", "replay")}


def test_every_command_has_help_with_examples_and_json(foldline):
    listed = foldline("--help").out
    for name, summary in COMMANDS.items():
        assert f"  {name} " in listed
        assert summary in listed
        for command in [(name, part) for part in GROUPS.get(name, ())] or [(name,)]:
            told = foldline(*command, "--help")
            assert told.code == 0
            assert f"foldline {' '.join(command)}" in told.out[told.out.index("Examples:") :]
            assert "--json" in told.out or name in TALKS
    assert foldline("--version").out.startswith("foldline, version ")
    assert foldline("-h").out == listed


@pytest.mark.parametrize("columns", [60, 80, 110, 200])
def test_no_table_wraps_at_any_width(foldline, file, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    rows = foldline("policies").out.splitlines()
    assert [row.split()[0] for row in rows[2:-1] if row.split()[0] in NAMES] == list(NAMES)
    assert len(rows) == len(PRESETS) + 3  # title, heading, hint
    told = foldline("inspect", file)
    assert max(map(len, [*rows, *told.out.splitlines()[1:]])) <= max(columns, 60)
    assert "module3.py" in told.out
    foldline("import", file, "--id", "work")
    assert len(foldline("sessions").out.splitlines()) == 2


def test_in_a_pipe_nothing_is_cut(foldline, file):
    assert "checks the summary against a ledger." in foldline("policies").out
    long = "What about " + "this and " * 200 + "that?"
    write_lines(file, [{"role": "user", "content": long}, {"role": "assistant", "content": "Yes."}])
    assert "…" not in foldline("policies").out
    shown = foldline("compact", file, "--target", 5000).out
    assert "Nothing to fold" in shown


def test_inspect_says_where_the_tokens_are_and_what_is_wrong(foldline, file):
    found = foldline("inspect", file, "--json").json
    assert found["format"] == "jsonl"
    assert found["tokens"] == sum(one["tokens"] for one in found["by_role"])
    assert {one["name"] for one in found["by_tool"]} == {"read_file", "bash"}
    assert len(found["by_turn"]) == 4
    assert set(found["prune"]) == {"tokens", "results", "superseded"}
    text = foldline("inspect", file, "--top", 1).out
    assert "by tool" in text
    assert "1 more" in text
    assert "a prune would free" in text


def test_inspect_shows_an_examples_boundary_and_unanswered_call(foldline):
    assert "boundary" in foldline("inspect", EXAMPLES / "research.jsonl").out
    assert "unanswered at message" in foldline("inspect", EXAMPLES / "session.jsonl").out


def test_policies_by_name_in_words_and_as_data(foldline):
    told = foldline("policies", "pi").out
    for word in ("triggers", "checked", "keeps", "prunes", "summary"):
        assert f"\n{word} " in told
    data = foldline("policies", "pi", "codex", "--json").json
    assert list(data) == ["pi", "codex"]
    assert data["codex"]["quote_user_tokens"] == 20_000


def test_the_demo_shows_every_step(foldline):
    told = foldline("demo")
    for step in (
        "1. what is in",
        "2. the policy's decision",
        "3. the checkpoint",
        "4. the receipt",
        "5. the start of the view",
    ):
        assert step in told.out
    assert "where to go next" in told.out
    assert "Never touch anything under migrations/" in told.out
    done = foldline("demo", "--json").json
    assert done["receipt"]["tokens_after"] == done["view_tokens"]
    assert foldline("demo", "--file", CHAT, "--target", 3_000, "--json").json["dialect"] == "openai-chat"
    missing = foldline("demo", "--file", "gone.jsonl")
    assert missing.code == 2
    assert "gone.jsonl" in missing.err


def test_the_example_of_the_demo_is_in_what_is_installed(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    wheel = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
    assert wheel.read("foldline/example.jsonl") == SESSION.read_bytes()


def test_in_a_pipe_no_line_is_padded(foldline, file):
    told = foldline("compact", file, "--target", 1000).out
    assert "standing constraints kept word for word: 1\n" in told
    assert "\n- Never touch the lock file.\n" in told
    assert max(map(len, told.splitlines())) < 1000
