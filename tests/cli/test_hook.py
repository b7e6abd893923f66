"""`foldline hook` and `foldline statusline`, as Claude Code and its plugin run them."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.calling import coding_session
from tests.e2e.running import environment
from tests.mcp.homes import write_transcript

from foldline.core.measure.tokens import OFFLINE
from foldline.dialects import ANTHROPIC, get
from foldline.loading import from_messages
from foldline.terminal import clean
from foldline.testing import Refusal, Scripted, serve_in_thread
from foldline.wrapping.statusline import SessionRecord, keep, record_of

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins/claude-code"
SESSION = "0b1c-session"
GARBAGE = (b"", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"source": "compact"}', b'{"messages": [3]}')


@pytest.fixture
def given(foldline, monkeypatch):
    """Run a command with this on its standard input."""

    def run(document, *words):
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        return foldline(*words)

    return run


def row(message, place):
    """A message as Claude Code hands it to a plugin."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    made = {"role": message["role"], "handle": f"handle {place}", "toolUses": []}
    made["text"] = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    for block in blocks:
        if block["type"] == "tool_use":
            made["toolUses"].append(
                {"tool_use_id": block["id"], "tool": block["name"], "input": block["input"]}
            )
        elif block["type"] == "tool_result":
            result = {"tool_use_id": block["tool_use_id"], "text": block["content"], "isError": False}
            made.setdefault("toolResults", []).append(result)
    return made


def event(turns=30, **more):
    rows = [row(message, place) for place, message in enumerate(coding_session(turns))]
    known = {"trigger": "auto", "session": SESSION, "model": "claude-sonnet-4-5", "window": 60_000}
    return {**known, "messages": rows, **more}


def after(asked, answer):
    """The rows that the plugin hands back."""
    return [asked["messages"][one] if isinstance(one, int) else one for one in answer["messages"]]


def is_valid(rows):
    """Whether rows, as Claude Code writes them, are a request that the API takes."""
    sent = []
    for one in rows:
        results = [
            {"type": "tool_result", "tool_use_id": result["tool_use_id"], "content": result["text"]}
            for result in one.get("toolResults", ())
        ]
        text = [{"type": "text", "text": one["text"]}] if one["text"] else []
        calls = [
            {"type": "tool_use", "id": call["tool_use_id"], "name": call["tool"], "input": call["input"]}
            for call in one["toolUses"]
        ]
        sent.append({"role": one["role"], "content": [*results, *text, *calls]})
    return get(ANTHROPIC).validate([one for one in sent if one["content"]]) == []


def test_a_compaction_is_answered_by_a_checkpoint_and_the_places_of_what_is_kept(given):
    asked = event()
    thinking = {"role": "assistant", "text": "", "toolUses": []}
    asked["messages"].insert(-1, thinking)
    answer = given(asked, "hook", "claude", "session.compact").json
    first, *rest = answer["messages"]
    assert first["role"] == "user"
    assert first["text"].startswith("<foldline-checkpoint ")
    assert "- Never touch the lock file." in first["text"]
    kept = [one for one in rest if isinstance(one, int)]
    assert kept == sorted(set(kept))
    assert kept[-2:] == [len(asked["messages"]) - 2, len(asked["messages"]) - 1]  # thinking, and its reply
    assert is_valid(after(asked, answer))
    assert answer["told"].endswith(", 1 rule held")
    record = record_of(SESSION)
    assert (record.folds, record.rules, record.told) == (1, 1, True)
    assert record.saved > 10_000


def test_half_an_emoji_and_what_is_null_are_no_reason_not_to_fold(given):
    asked = event(window=60_000.0, trigger=None)
    asked["messages"][0]["text"] += " \ud83d"
    asked["messages"][0] |= {"toolUses": None, "toolResults": None}
    asked["messages"][-1] |= {"text": asked["messages"][-1]["text"] or None}
    answer = given(asked, "hook", "claude", "session.compact").json
    assert answer["messages"][0]["text"].startswith("<foldline-checkpoint ")


def test_the_next_compaction_folds_from_the_checkpoint_of_the_last(given):
    asked = event(30)
    once = after(asked, given(asked, "hook", "claude", "session.compact").json)
    more = [row(message, place) for place, message in enumerate(coding_session(42)[180:], 1_000)]
    again = {**asked, "messages": [*once, *more]}
    answer = given(again, "hook", "claude", "session.compact").json
    first = answer["messages"][0]
    assert first["text"].count("<foldline-checkpoint ") == 1
    assert "Please mend module0.py." in first["text"]
    assert first["text"].count("- Never touch the lock file.") == 1
    assert is_valid(after(again, answer))
    assert record_of(SESSION).folds == 2


def test_what_has_room_is_not_folded_and_a_user_who_asked_is_told(given):
    asked = event(2, window=None)
    by_hand = given({**asked, "trigger": "manual"}, "hook", "claude", "session.compact").json
    assert "fit already" in by_hand["skip"]
    assert "fit already" in given(asked, "hook", "claude", "session.compact").json["why"]
    assert record_of(SESSION).folds == 0


@pytest.mark.parametrize("name", ["session.compact", "SessionStart", "Stop"])
@pytest.mark.parametrize("raw", GARBAGE, ids=range(len(GARBAGE)))
def test_a_hook_harms_nobody(given, name, raw):
    done = given(raw, "hook", "claude", name)
    assert done.code == 0
    assert set(json.loads(done.out or "{}")) == ({"why"} if name == "session.compact" else set())
    assert done.err.count("\n") <= 1
    assert given(raw, "statusline").code == 0


@pytest.mark.parametrize(
    ("raw", "problem"), [(b" ", "is empty"), (b"x", "is not JSON"), (b"[]", "is something else (")]
)
@pytest.mark.parametrize("name", ["session.compact", "SessionStart"])
def test_without_an_event_it_says_what_is_expected(given, name, raw, problem):
    done = given(raw, "hook", "claude", name)
    assert done.err.startswith(f"foldline: standard input {problem}")
    assert "an event of Claude Code is expected there, as JSON" in done.err


# ---- rules put back


def start(path, source="compact"):
    return {"session_id": SESSION, "transcript_path": str(path), "source": source}


def test_the_rules_are_put_back_behind_a_compaction_of_claude_code_s_own(given, away_from_home):
    path = write_transcript(away_from_home, Path.cwd(), "claude-code")
    context = given(start(path), "hook", "claude", "SessionStart").json["hookSpecificOutput"]
    assert context["hookEventName"] == "SessionStart"
    assert "- Never touch the lock file." in context["additionalContext"]
    assert record_of(SESSION).rules == 1
    assert given(start(path, "startup"), "hook", "claude", "SessionStart").out == ""


def test_many_rules_are_put_back_as_far_as_there_is_room(given, away_from_home):
    said = [
        {"role": role, "content": text}
        for n in range(120)
        for role, text in (("user", f"Never touch file{n}.py, not even to mend it, since it is made by hand."),
                           ("assistant", "I won't."))
    ]  # fmt: skip
    loaded = from_messages(said, OFFLINE, dialect=ANTHROPIC)
    path = write_transcript(away_from_home, Path.cwd(), "claude-code", loaded)
    context = given(start(path), "hook", "claude", "SessionStart").json["hookSpecificOutput"]
    lines = context["additionalContext"].splitlines()
    assert lines[1] == "- Never touch file0.py, not even to mend it, since it is made by hand."
    assert lines[-1] == "(120 in all: user_rules of the MCP server foldline lists them)"
    assert 7_000 < len(context["additionalContext"]) < 9_000


def test_behind_a_fold_of_ours_they_stand_in_the_checkpoint(given, away_from_home):
    path = write_transcript(away_from_home, Path.cwd(), "claude-code")
    given(event(), "hook", "claude", "session.compact")
    assert given(start(path), "hook", "claude", "SessionStart").out == ""
    assert given(start(path), "hook", "claude", "SessionStart").out != ""  # the next one was not ours


def test_a_fold_of_a_sub_agent_leaves_the_session_s_rules_as_they_are(given, away_from_home):
    path = write_transcript(away_from_home, Path.cwd(), "claude-code")
    given(event(), "hook", "claude", "session.compact")
    helper = event(agent="helper")
    ruled = [one for one in helper["messages"] if "lock file" in one["text"]]
    for one in ruled:
        one["text"] = "Please mend a module."
    assert ruled
    assert given(helper, "hook", "claude", "session.compact").json["told"].endswith(", 0 rules held")
    record = record_of(SESSION)
    assert (record.folds, record.rules, record.told) == (2, 1, True)
    assert given(start(path), "hook", "claude", "SessionStart").out == ""


def test_a_record_that_cannot_be_written_keeps_no_fold_and_no_rule_back(given, away_from_home):
    (away_from_home / ".foldline").mkdir(exist_ok=True)
    (away_from_home / ".foldline/claude-code").write_text("a file is in the way")
    path = write_transcript(away_from_home, Path.cwd(), "claude-code")
    assert given(event(), "hook", "claude", "session.compact").json["messages"]
    context = given(start(path), "hook", "claude", "SessionStart").json["hookSpecificOutput"]
    assert "- Never touch the lock file." in context["additionalContext"]


def test_a_fold_counts_what_another_hook_of_the_session_recorded_meanwhile(given, away_from_home):
    def folded_meanwhile(asked):
        keep(SESSION, SessionRecord(folds=4, saved=1_000, rules=3, told=True))
        return Refusal(400, "no summaries here")

    model = Scripted(folded_meanwhile)
    with serve_in_thread(model) as url:
        settings = away_from_home / ".foldline/settings.toml"
        settings.parent.mkdir(exist_ok=True)
        name = f"openai-compatible:m@{url}/v1"
        settings.write_text(f'policy = "mine"\n[policies.mine]\nbase = "coop"\nsummary_model = "{name}"\n')
        given(event(agent="helper"), "hook", "claude", "session.compact")
    assert model.requests
    record = record_of(SESSION)
    assert (record.folds, record.rules, record.told) == (5, 3, True)
    assert record.saved > 1_000


# ---- the status line


def status(used=34.0, **more):
    window = {"context_window_size": 200_000, "total_input_tokens": 68_000, "used_percentage": used}
    return {"session_id": SESSION, "model": {"display_name": "Sonnet 4.5"}, "context_window": window, **more}


def test_the_status_line_tells_of_the_window_and_of_what_was_folded(given):
    assert given(status(), "statusline").out == "Sonnet 4.5 · ███░░░░░░░ 34% of 200k\n"
    given(event(), "hook", "claude", "session.compact")
    line = given(status(), "statusline").out
    assert " · 1 fold saved " in line
    assert line.endswith("k tokens · 1 rule held\n")


def test_the_status_line_shows_what_is_known_alone_and_steers_no_terminal(given, away_from_home):
    assert given({"model": {"id": "opus"}}, "statusline").out == "opus\n"
    assert "34% of 200k" in given(status(None), "statusline").out  # of its tokens
    assert "██████████ 250% of" in given(status(250), "statusline").out
    hostile = "Opus\n\x1b[31m"
    assert given({"model": {"display_name": hostile}}, "statusline").out == clean("Opus \x1b[31m") + "\n"
    for name in ("../x", "", 3, "a" * 200):
        assert given(status(session_id=name), "statusline").out.endswith("of 200k\n")
    folder = away_from_home / ".foldline/claude-code"
    folder.mkdir(parents=True)
    for spoilt in ("", "[1]", '{"folds": "x"}', '{"folds": 1}'):
        (folder / f"{SESSION}.json").write_text(spoilt)
        assert given(status(), "statusline").out.endswith("of 200k\n")


# ---- the plugin


def test_the_plugin_names_files_and_commands_that_there_are(given):
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
    manifest = json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())
    assert [(ROOT / one["source"]).resolve() for one in market["plugins"]] == [PLUGIN]
    assert [one["name"] for one in market["plugins"]] == [manifest["name"]]
    hooks = json.loads((PLUGIN / "hooks/hooks.json").read_text())
    assert [(PLUGIN / "hooks" / one).is_file() for one in hooks["modules"]] == [True]
    told = [one["command"] for rows in hooks["hooks"].values() for row in rows for one in row["hooks"]]
    server = manifest["mcpServers"]["foldline"]
    for words in [*told, " ".join([server["command"], *server["args"]])]:
        program, *rest = words.split()
        assert program == "foldline"
        assert given(b"", *rest, "--help").code == 0


DRIVER = """
const { register } = await import(process.argv[2])
const { spawnSync } = await import('node:child_process')
const { readFileSync } = await import('node:fs')
const [program, given] = [JSON.parse(process.argv[3]), JSON.parse(readFileSync(0))]
const logged = []
const $ = {
  session: { usage: async () => ({ context: { window: given.window } }), id: async () => given.session,
             model: async () => given.model },
  process: { run: async ([, ...words], init) => {
    const ran = spawnSync(program[0], [...program.slice(1), ...words], { input: init.stdin })
    if (ran.error) throw ran.error
    return { exitCode: ran.status, stdout: String(ran.stdout) }
  } },
  ui: { log: line => logged.push(line) },
}
let hook
register((event, made) => { if (event === 'session.compact') hook = made })
const result = await hook($, given, async () => ({ messages: ['the built-in one'] }))
console.log(JSON.stringify({ result, logged }))
"""


@pytest.fixture
def module(tmp_path, away_from_home):
    """The plugin's module asked by an engine of ours, with a program for `foldline`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    driver = tmp_path / "driver.mjs"
    driver.write_text(DRIVER)

    def run(asked, *program):
        words = [node, driver, PLUGIN / "hooks/foldline.mjs", json.dumps(program)]
        done = subprocess.run(
            words,
            input=json.dumps(asked).encode(),
            env=environment(away_from_home),
            capture_output=True,
            check=True,
        )
        return json.loads(done.stdout)

    return run


def test_the_plugin_hands_back_what_foldline_says(module):
    asked = event()
    told = module(asked, sys.executable, "-m", "foldline")
    messages = told["result"]["messages"]
    assert messages[0]["text"].startswith("<foldline-checkpoint ")
    assert messages[-1] == asked["messages"][-1]
    assert [line.endswith(", 1 rule held") for line in told["logged"]] == [True]


@pytest.mark.parametrize(
    "program", [["/no/such/program"], [sys.executable, "-c", "print('{')"], [sys.executable, "-c", ""]]
)
def test_whatever_goes_wrong_claude_code_compacts_by_itself_and_says_so(module, program):
    told = module(event(2), *program)
    assert told["result"] == {"messages": ["the built-in one"]}
    assert "Claude Code compacts by itself" in told["logged"][0]


def test_nothing_is_made_ahead(module):
    assert "skip" in module(event(2, trigger="precompute"), "/no/such/program")["result"]
