"""`foldline slim`: the newest session of a folder, folded, for the agent that wrote it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.cli.calling import SESSION, talk, write_lines
from tests.exports.moving import export, load
from tests.mcp.homes import AGENTS, write_transcript

from foldline.core.log.entries import Compacted
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.dialects import get
from foldline.transcripts.places import newest_transcript

TARGET = 9_000


@pytest.fixture(autouse=True)
def own_places(monkeypatch):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)


def example(agent, home):
    return write_transcript(home, Path.cwd(), agent, load(SESSION.read_bytes()), at=1_000)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_newest_session_is_folded_for_the_agent_that_wrote_it(foldline, away_from_home, agent):
    original = example(agent, away_from_home)
    before = original.read_bytes()
    done = foldline("slim", "--target", TARGET, "--json").json
    assert done["agent"] == agent
    assert done["tokens_before"] > 40_000
    assert done["tokens_after"] <= TARGET
    assert original.read_bytes() == before

    written = Path(done["file"])
    assert done["session"] in shlex.join(shlex.split(done["command"])) or str(written) in done["command"]
    assert newest_transcript(Path.cwd()).path == written
    again = load(written.read_bytes())
    assert again.format == agent
    state = ViewState(again.entries, counter=OFFLINE)
    assert state.tokens <= TARGET * 1.1
    rendered = get(again.dialect).render(native_items(state.view()))
    assert get(again.dialect).validate(rendered.messages, rendered.system) == []
    assert "never" in str(rendered.messages).lower()

    assert foldline("slim", "--target", TARGET, "--json").json["file"] is None  # it is small by now
    assert foldline("slim", "--undo", "--json").json["removed"][0] == str(written)
    assert not written.exists()
    assert newest_transcript(Path.cwd()).path == original
    assert foldline("slim", "--undo").code == 2


def test_what_pi_hides_from_the_model_is_not_in_the_folded_session(foldline, away_from_home):
    path = example("pi", away_from_home)
    hidden = {
        "role": "bashExecution",
        "command": "cat .env",
        "output": "hunter-of-snarks",
        "excludeFromContext": True,
    }
    last = json.loads(path.read_text().splitlines()[-1])
    line = {**last, "type": "message", "id": "hidden", "parentId": last["id"], "message": hidden}
    path.write_text(path.read_text() + json.dumps(line) + "\n")
    done = foldline("slim", "pi", "--target", TARGET, "--json").json
    assert "hunter-of-snarks" not in Path(done["file"]).read_text()


def test_an_agent_is_named_and_without_a_target_a_fifth_of_the_window_is_left(foldline, away_from_home):
    example("pi", away_from_home)
    example("claude-code", away_from_home)
    done = foldline("slim", "claude", "--window", 50_000)
    assert done.code == 0
    assert "to continue: claude --resume" in done.out
    assert done.err == ""
    known = foldline("slim", "pi", "--window", 50_000, "--json").json
    assert known["agent"] == "pi"
    assert 2_000 < known["tokens_after"] <= 10_000


def test_the_command_names_pi_s_file_where_its_home_was_moved(
    foldline, away_from_home, tmp_path, monkeypatch
):
    example("pi", away_from_home)
    moved = tmp_path / "pi's own home"
    (away_from_home / ".pi/agent").rename(moved)
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(moved))
    done = foldline("slim", "pi", "--target", TARGET, "--json").json
    assert shlex.split(done["command"]) == ["pi", "--session", done["file"]]
    assert Path(done["file"]).is_relative_to(moved)


def test_a_session_of_klaude_code_named_by_its_path_stays_in_its_own_project(
    foldline, away_from_home, tmp_path
):
    path = write_transcript(away_from_home, tmp_path / "work", "klaude-code", load(SESSION.read_bytes()))
    path.with_name("meta.json").write_text(json.dumps({"id": "s", "work_dir": str(tmp_path / "work")}))
    done = foldline("slim", path, "--target", TARGET, "--json").json
    assert Path(done["file"]).parent.parent == path.parent.parent


def test_an_export_of_opencode_is_folded_into_one_that_it_imports(foldline, tmp_path):
    raw, _ = export(load(SESSION.read_bytes()), "opencode")
    (tmp_path / "session.json").write_bytes(raw)
    done = foldline("slim", tmp_path / "session.json", "--target", TARGET, "--json").json
    assert done["command"].startswith("opencode import ses_")
    again = load(Path(done["file"]).read_bytes())
    assert again.format == "opencode"
    assert any(isinstance(entry, Compacted) for entry in again.entries)
    assert (tmp_path / "session.json").read_bytes() == raw
    refused = foldline("slim", "opencode")
    assert refused.code == 2
    assert "opencode export" in refused.err


def test_a_dry_run_writes_nothing(foldline, away_from_home):
    original = example("codex", away_from_home)
    done = foldline("slim", "--target", TARGET, "--dry-run")
    assert done.code == 0
    assert "would write" in done.out
    assert [one for one in away_from_home.rglob("*") if one.is_file()] == [original]
    assert not foldline("slim", "--target", TARGET, "--dry-run", "--json").json["written"]


def test_nothing_is_written_that_undo_could_not_remove(foldline, away_from_home):
    example("claude-code", away_from_home)
    records = away_from_home / ".foldline/slimmed.json"
    records.parent.mkdir(exist_ok=True)
    records.write_text("{broken")
    before = sorted(away_from_home.rglob("*.jsonl"))
    assert "cannot be read" in foldline("slim", "--target", TARGET).err
    assert sorted(away_from_home.rglob("*.jsonl")) == before


def test_undo_leaves_a_session_alone_in_which_the_agent_went_on(foldline, away_from_home):
    example("claude-code", away_from_home)
    written = Path(foldline("slim", "--target", TARGET, "--json").json["file"])
    with written.open("a") as file:
        file.write(json.dumps({"type": "custom-title", "customTitle": "More"}) + "\n")
    refused = foldline("slim", "--undo")
    assert refused.code == 2
    assert f"the agent has continued {written}" in refused.err
    assert written.exists()


def test_what_was_folded_before_is_not_written_over(foldline, away_from_home, monkeypatch):
    monkeypatch.setattr(
        "foldline.folding.now", lambda: "2026-01-01T00:00:00Z"
    )  # a fold is named by its time too
    original = example("claude-code", away_from_home)
    first = foldline("slim", original, "--target", TARGET, "--json").json
    for dry in ((), ("--dry-run",)):
        refused = foldline("slim", original, "--target", TARGET, *dry)
        assert refused.code == 2
        assert first["command"] in refused.err


def test_what_no_agent_resumes_is_refused_with_the_way_out(foldline, tmp_path):
    plain = write_lines(tmp_path / "talk.jsonl", talk("Hello.", "Hello."))
    refused = foldline("slim", plain)
    assert refused.code == 2
    assert "foldline export" in refused.err


def test_without_a_session_it_says_what_to_do(foldline):
    refused = foldline("slim")
    assert refused.code == 2
    assert "name a session file" in refused.err
    assert "did you mean 'codex'" in foldline("slim", "codx").err


@pytest.mark.corpus
def test_recorded_sessions_are_slimmed(foldline, recorded, away_from_home):
    for file in sorted((recorded / "native").glob("*.jsonl")):
        if file.stem.startswith(("copilot", "gemini")):
            assert foldline("slim", file).code == 2
            continue
        done = foldline("slim", file, "--target", 32_000, "--json")
        assert done.code == 0, (file, done.err)
        if done.json["file"]:
            state = ViewState(load(Path(done.json["file"]).read_bytes()).entries, counter=OFFLINE)
            assert done.json["tokens_after"] <= 32_000
            assert state.tokens <= 35_000
