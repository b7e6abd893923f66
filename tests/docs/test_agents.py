"""The agents of examples/agents: the same loop as without Foldline, a few lines more, and no overflow."""

from __future__ import annotations

import ast
import asyncio
import difflib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import anthropic
import openai
import pytest

import foldline
from foldline.testing import Scripted, call, serve_in_thread

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AGENTS, PLAIN = ROOT / "examples" / "agents", ROOT / "tests" / "docs" / "plain"
LOOPS = ("openai_loop", "responses_loop", "anthropic_loop", "sync_loop")
WINDOW, TURNS = 24_000, 20
REPORT = " ".join(f"House {number} got its parcel." for number in range(160))
SUMMARY = """\
## Goal
Say what is in the files.

## Constraints & Preferences
(none)

## Progress
### Done
- [x] The model says itself what it read: each house got its parcel.
### In Progress
(none)
### Blocked
(none)

## Key Decisions
(none)

## Next Steps
1. Read the next file.

## Critical Context
(none)

## Turn in Progress
(none)
"""


def load(path):
    """Import a file of examples by its path: the folder is no package."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reader(asked):
    """Read the file that was asked for, then answer; what asks for neither is the request of a summary."""
    newest = asked.messages[-1]
    words = newest.get("content") if newest.get("role") == "user" else None
    if isinstance(words, str) and (path := re.fullmatch(r"What is in (.+)\?", words)):
        return call("read", path=path[1])
    answered = (
        newest.get("role") == "tool" or newest.get("type") == "function_call_output" or tool_results(words)
    )
    return REPORT if answered else SUMMARY


def tool_results(content):
    return isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)


def question(turn):
    return f"What is in part_{turn}.txt?"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of files of about 1,500 tokens, the SDKs' keys in the environment, no settings of anybody's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for turn in range(TURNS):
        lines = [f"{turn}.{line}: the parcel of house {line * 7 + turn} went out" for line in range(120)]
        Path(f"part_{turn}.txt").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    return tmp_path


def talk(path, turns, **more):
    """Run the main function of an example or of a plain loop, async or not, with a question for each turn."""
    done = load(path).main([question(turn) for turn in turns], **more)
    if inspect.iscoroutine(done):
        asyncio.run(done)


async def kept():
    """Return the figures and the history of the session that an example left."""
    async with foldline.open("sqlite:///agent.db", "files", window=WINDOW) as session:
        return await session.stats(), await session.history()


def point_to(monkeypatch, url):
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)


@pytest.mark.parametrize("name", LOOPS)
def test_the_plain_loop_overflows(name, folder, monkeypatch):
    model = Scripted(reader, window=WINDOW)
    with serve_in_thread(model) as url:
        point_to(monkeypatch, url)
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)):
            talk(PLAIN / f"{name}.py", range(TURNS))
    assert model.requests[-1].refused
    assert model.requests[-1].tokens > WINDOW - 5_000


@pytest.mark.parametrize("name", LOOPS)
def test_the_example_goes_on_and_loses_nothing(name, folder, monkeypatch, capsys):
    model = Scripted(reader, window=WINDOW)
    with serve_in_thread(model) as url:
        point_to(monkeypatch, url)
        talk(AGENTS / f"{name}.py", range(TURNS), window=WINDOW)

    assert capsys.readouterr().out == f"{REPORT}\n" * TURNS
    assert [asked.refused for asked in model.requests if asked.refused] == []
    figures, history = asyncio.run(kept())
    said = str(history)
    assert figures.summaries >= 2
    assert any("The model says itself what it read" in str(asked.messages) for asked in model.requests)
    assert figures.total_messages == 4 * TURNS
    assert all(f"{turn}.119: the parcel of house" in said for turn in range(TURNS))


@pytest.mark.parametrize("name", LOOPS)
def test_a_window_smaller_than_thought_is_met_by_folding(name, folder, monkeypatch, capsys):
    model = Scripted(reader, window=WINDOW)
    with serve_in_thread(model) as url:
        point_to(monkeypatch, url)
        talk(AGENTS / f"{name}.py", range(TURNS), window=3 * WINDOW)

    said = capsys.readouterr().out.splitlines()
    assert len(said) == TURNS
    assert sum(line != REPORT for line in said) <= 3  # what came before an overflow had too little room
    refused = [asked for asked in model.requests if asked.refused and reader(asked) != SUMMARY]
    assert 1 <= len(refused) <= 3  # the window is learnt
    figures, history = asyncio.run(kept())
    assert len(history) == figures.total_messages >= 4 * TURNS


@pytest.mark.parametrize("name", ["openai_loop", "anthropic_loop"])
def test_the_example_is_a_program_and_goes_on_where_it_was_left(name, folder, monkeypatch):
    model = Scripted(reader)
    with serve_in_thread(model) as url:
        point_to(monkeypatch, url)
        talk(AGENTS / f"{name}.py", range(1))
        done = subprocess.run(
            [sys.executable, AGENTS / f"{name}.py"],
            input=f"{question(1)}\n",
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.stdout, done.stderr) == (f"{REPORT}\n", "")
    assert question(0) in str(model.requests[-1].messages)


def code(path):
    """The lines of a file that are code: no blank ones, no comments, no docstrings."""
    text = path.read_text(encoding="utf-8")
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return [
        line.rstrip()
        for number, line in lines
        if number not in docstrings and line.strip() and not line.strip().startswith("#")
    ]


@pytest.mark.parametrize("name", LOOPS)
def test_the_example_is_at_most_ten_lines_longer_than_without_us(name):
    plain, ours = code(PLAIN / f"{name}.py"), code(AGENTS / f"{name}.py")
    changed = [line for line in difflib.ndiff(plain, ours) if line.startswith("+ ")]

    assert len(ours) - len(plain) <= 10
    assert len(changed) <= 16, "lines that are new or differ"


def test_the_pages_show_the_examples_as_they_are():
    programs = "".join((AGENTS / f"{name}.py").read_text(encoding="utf-8") for name in LOOPS)
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    shown = re.findall(r"^```python\n(async def answer.*?)^```$", pages, re.MULTILINE | re.DOTALL)

    assert shown
    assert [block for block in shown if block not in programs] == []
