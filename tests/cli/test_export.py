"""`foldline export`: a session from one agent to another in one command."""

from __future__ import annotations

import json
import os
import shlex
import stat

import pytest
from tests.cli.calling import EXAMPLES, coding_session, talk, write_lines
from tests.support.openers import open_in_claude_code, open_in_pi

from foldline import convert
from foldline.dialects import get, names

RESEARCH = EXAMPLES / "research.jsonl"  # a pi session with a compaction of pi's


@pytest.fixture
def file(tmp_path):
    return write_lines(tmp_path / "work.jsonl", coding_session(8))


def test_a_file_goes_from_one_agent_to_another_and_back_in_one_command_each(foldline, tmp_path):
    claude, back = tmp_path / "claude.jsonl", tmp_path / "pi.jsonl"
    there = foldline("export", RESEARCH, "--format", "claude-code", "-o", claude)
    again = foldline("export", claude, "--format", "pi", "-o", back)

    assert (there.code, again.code) == (0, 0)
    assert "wrote 70 messages to" in there.err
    assert "to continue: put it at ~/.claude/projects/" in there.err
    assert "claude --resume " in there.err
    open_in_claude_code(claude.read_bytes())
    open_in_pi(back.read_bytes())
    assert (
        foldline("inspect", back, "--json").json["messages"]
        == foldline("inspect", RESEARCH, "--json").json["messages"]
    )


@pytest.mark.parametrize(("form", "opens"), [("pi", open_in_pi), ("claude-code", open_in_claude_code)])
def test_a_file_is_folded_on_the_way(foldline, file, tmp_path, form, opens):
    out = tmp_path / "folded.jsonl"
    told = foldline(
        "export", file, "--format", form, "--view", "--policy", "pi", "--target", 2500, "-o", out, "--json"
    )
    context = opens(out.read_bytes())

    assert told.code == 0
    assert "foldline-checkpoint" in json.dumps(context[0])
    assert told.json["count"] < 48
    assert told.json["written_as"] in told.json["place"]
    assert foldline("inspect", out, "--json").json["tokens"] <= 2_700


def test_a_stored_session_is_folded_on_the_way_and_stays_as_it_is(foldline, file, tmp_path):
    foldline("import", file, "--id", "work")
    before = foldline("export", "work").out
    out = tmp_path / "folded.jsonl"
    told = foldline(
        "export", "work", "--format", "pi", "--view", "--policy", "pi", "--target", 2500, "-o", out
    )

    assert told.code == 0
    assert "foldline-checkpoint" in open_in_pi(out.read_bytes())[0]["summary"]
    assert foldline("export", "work").out == before


def test_without_a_target_the_view_is_the_files_own(foldline, tmp_path):
    out = tmp_path / "view.jsonl"
    foldline("export", RESEARCH, "--format", "pi", "--view", "-o", out)
    context = open_in_pi(out.read_bytes())

    assert context[0]["role"] == "compactionSummary"
    assert "foldline-checkpoint" not in context[0]["summary"]
    assert len(context) < 40


def test_to_fold_needs_the_view(foldline, file):
    refused = foldline("export", file, "--format", "pi", "--target", 3000)

    assert refused.code == 2
    assert "need --view" in refused.err


def test_what_a_form_cannot_carry_is_named(foldline, file, tmp_path):
    foldline("import", file, "--id", "work")
    out = tmp_path / "view.jsonl"
    text = foldline("export", RESEARCH, "--format", "openai-chat", "-o", out)
    document = foldline("export", RESEARCH, "--format", "openai-chat", "-o", out, "--json")

    assert "warning: boundaries left out (a list has no form for them) (1)" in text.err
    assert document.json["warnings"] == [
        "boundaries left out (a list has no form for them) (1)",
        "signed thinking left out (3)",
        *document.json["warnings"][2:],
    ]


def test_one_document_for_every_kind_of_form(foldline, file):
    foldline("import", file, "--id", "work")
    pi = foldline("export", "work", "--format", "pi", "--json").json
    read = foldline("export", "work", "--format", "markdown", "--json").json

    assert pi["lines"][0]["type"] == "session"
    assert pi["count"] == 48
    assert read["text"].startswith("# work")
    fold = ("--view", "--policy", "pi", "--target", 2500)
    folded = foldline("export", "work", "--format", "coop", *fold, "--json").json
    assert json.loads(folded["beside"]["_compaction.json"])["summary"]


@pytest.mark.parametrize(
    "form", ["openai-chat", "openai-responses", "anthropic", "bedrock-converse", "ui-message"]
)
def test_a_list_in_a_json_file_is_one_document_that_is_read_again(foldline, file, tmp_path, form):
    out, lines = tmp_path / "x.json", tmp_path / "x.jsonl"
    told = foldline("export", file, "--format", form, "--view", "--target", 2500, "-o", out)
    foldline("export", file, "--format", form, "--view", "--target", 2500, "-o", lines)
    document = json.loads(out.read_text())

    assert told.code == 0
    assert document["dialect"] == form
    whole = [{"system": document["system"]}] if "system" in document else []
    assert [*whole, *document["messages"]] == [json.loads(row) for row in lines.read_text().splitlines()]
    assert (
        foldline("inspect", out, "--json").json["messages"]
        == foldline("inspect", lines, "--json").json["messages"]
    )


@pytest.mark.parametrize("view", [[], ["--view"]])
@pytest.mark.parametrize("form", names())
def test_a_list_has_the_system_prompt_that_stands_beside_a_file_s_messages(foldline, tmp_path, form, view):
    blocks = [{"type": "text", "text": "Be brief."}]
    body = {"dialect": "anthropic", "system": blocks, "messages": talk("one", "two")}
    (tmp_path / "a.json").write_text(json.dumps(body))
    told = foldline("export", tmp_path / "a.json", "--format", form, *view, "--json").json
    wanted = convert([{"role": "system", "content": "Be brief."}, *talk("one", "two")], to=form)
    apart = {"anthropic": blocks, "ui-message": "Be brief."}.get(form, wanted.system)
    assert told["system"] == apart
    assert get(form).validate(told["messages"], told["system"]) == []
    assert json.dumps(told).count("Be brief.") == 1


@pytest.mark.parametrize("stored", [True, False])
def test_the_system_prompt_and_tools_beside_the_messages_come_back(foldline, tmp_path, stored):
    """By our own form, by the store, and by a list; no list has the tools, and it says so."""
    session = EXAMPLES / "session.jsonl"
    apart = foldline("inspect", session, "--json").json["apart_tokens"]
    source = session
    if stored:
        foldline("import", session, "--id", "login")
        source = "login"
        assert foldline("import", session, "--id", "login", "--json").json["new_entries"] == 0
    own = tmp_path / "own.jsonl"
    foldline("export", source, "-o", own)
    assert foldline("inspect", own, "--json").json["apart_tokens"] == apart > 0
    foldline("compact", own, "--target", 9000, "-o", tmp_path / "folded.jsonl")
    header = json.loads((tmp_path / "folded.jsonl").read_text().splitlines()[0])
    assert set(header) == {"system", "tools"}
    for view in ((), ("--view",), ("--view", "--target", 9000)):
        listed = foldline("export", source, "--format", "anthropic", *view, "--json").json
        assert listed["system"] == header["system"]
        assert f"tool definitions left out ({len(header['tools'])})" in " ".join(listed["warnings"])


def test_lines_in_a_json_file_are_named(foldline, file, tmp_path):
    assert (
        "give the file the suffix .jsonl"
        in foldline("export", file, "--format", "pi", "-o", tmp_path / "x.json").err
    )
    assert (
        "name the file .jsonl"
        not in foldline("export", file, "--format", "pi", "-o", tmp_path / "x.jsonl").err
    )


def test_the_printed_command_quotes_its_path(foldline, file, tmp_path):
    there = tmp_path / "my project's folder"
    there.mkdir()
    told = foldline(
        "export", file, "--format", "pi", "--cwd", there, "-o", tmp_path / "x.jsonl", "--json"
    ).json
    program, flag, path = shlex.split(told["command"])

    assert (program, flag) == ("pi", "--session")
    assert path == told["place"]
    assert told["command"].split()[2].startswith("~/'"), "the shell still finds the home folder"


def test_an_option_that_would_do_nothing_is_refused(foldline, file, tmp_path):
    for words in (["--policies", tmp_path / "missing.toml"], ["--format", "pi", "--results", "whole"]):
        done = foldline("export", file, *words)
        assert (done.code, done.out) == (2, "")
        assert words[-2] in done.err


def test_a_file_of_any_form_becomes_our_own(foldline, tmp_path):
    out = tmp_path / "own.jsonl"
    assert foldline("export", RESEARCH, "-o", out).code == 0
    told = foldline("import", out, "--id", "again", "--json").json

    assert (told["format"], told["messages"], told["compactions"]) == ("foldline", 70, 1)


def test_the_folder_to_go_on_in(foldline, file, tmp_path):
    own = foldline("export", RESEARCH, "--format", "pi", "--json").json["lines"][0]["cwd"]
    here = foldline("export", file, "--format", "pi", "--json").json["lines"][0]["cwd"]
    given = foldline("export", RESEARCH, "--format", "pi", "--cwd", tmp_path, "--json").json

    assert own == json.loads(RESEARCH.read_text().splitlines()[0])["cwd"]
    assert here == os.getcwd()  # noqa: PTH109 (what the command sees)
    assert given["lines"][0]["cwd"] == str(tmp_path)


def test_results_in_markdown_are_whole_when_asked(foldline, tmp_path):
    messages = coding_session(1)
    messages[2]["content"][0]["content"] = "x" * 9_000
    file = write_lines(tmp_path / "long.jsonl", messages)
    short = foldline("export", file, "--format", "markdown")
    whole = foldline("export", file, "--format", "markdown", "--results", "whole")

    assert "[… 7,000 characters …]" in short.out
    assert "results shortened (1)" in short.err
    assert "x" * 9_000 in whole.out


def test_nothing_half_written_is_left(foldline, file, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("what was there")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n")
    assert foldline("export", broken, "--format", "pi", "-o", out).code == 2
    assert foldline("export", "nobody", "--format", "pi", "-o", out).code == 2
    assert out.read_text() == "what was there"
    assert foldline("export", file, "--format", "pi", "-o", "/dev/full").code == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []
    assert stat.S_ISREG(out.stat().st_mode)


@pytest.mark.parametrize(
    ("form", "name", "beside"),
    [
        ("klaude-code", "events.jsonl", "meta.json"),
        ("klaude-code", "s.jsonl", "s.meta.json"),
        ("coop", "s.jsonl", "s_compaction.json"),
    ],
)
def test_a_file_that_nobody_named_is_not_replaced(foldline, tmp_path, form, name, beside):
    out = tmp_path / name
    (tmp_path / beside).write_text("mine")
    refused = foldline("export", RESEARCH, "--format", form, "-o", out)
    assert refused.code == 2
    assert beside in refused.err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir() if path.is_file()] == [
        (beside, "mine")
    ]
    (tmp_path / beside).unlink()
    for _ in range(2):  # whoever names the export again replaces all of it
        assert foldline("export", RESEARCH, "--format", form, "-o", out).code == 0
    assert json.loads((tmp_path / beside).read_text())


def test_a_folder_is_no_session(foldline, tmp_path):
    done = foldline("export", tmp_path)

    assert done.code == 2
    assert "is a directory" in done.err
    assert "foldline batch" in done.err


def test_a_session_whose_id_is_a_folders_name_too_is_exported(foldline, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "api").mkdir()
    assert foldline("import", file, "--id", "api").code == 0

    assert foldline("export", "api").code == 0
    assert "no session ''" in foldline("export", "").err


def test_two_sessions_for_klaude_in_one_folder_keep_their_own_meta(foldline, tmp_path):
    for name in ("a", "b"):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps({"title": f"Of {name}", "messages": [{"role": "user", "content": "hi"}]}))
        assert foldline("export", file, "--format", "klaude-code", "-o", tmp_path / f"{name}.jsonl").code == 0
    for name in ("a", "b"):
        told = json.loads((tmp_path / f"{name}.meta.json").read_text())
        assert told["title"] == f"Of {name}"
        again = foldline("export", tmp_path / f"{name}.jsonl", "--format", "moldable")
        assert f"Of {name}" in again.out
