"""`foldline run`: text, JSON lines, exit codes, piped input, resuming; as a program against a model over HTTP."""

from __future__ import annotations

import json

import pytest
from tests.agent.program import run_foldline, serve_model, settings

from foldline.testing import Refusal, call


def answers(asked):
    return f"Answer {asked.index}. " + "It is done as you said. " * 80


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_without_a_model_it_says_how_to_set_one(tmp_path):
    done = run_foldline(tmp_path, "run", "-p", "Hello.")
    assert done.returncode == 2
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "--model openai-compatible:" in done.stderr
    assert "chat --demo" in done.stderr


def test_a_key_that_is_missing_is_named(tmp_path):
    done = run_foldline(tmp_path, "run", "-p", "Hello.", "--model", "anthropic:claude-sonnet-4-5")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "ANTHROPIC_API_KEY" in done.stderr


@pytest.mark.parametrize("kind", ["missing", "not PEM"])
def test_certificates_that_cannot_be_used_are_named(tmp_path, kind):
    file = tmp_path / "certificates.pem"
    if kind == "not PEM":
        file.write_text("nothing")
    model = "openai-compatible:m@http://127.0.0.1:9/v1"
    result = run_foldline(tmp_path, "run", "-p", "Hello.", "--model", model, SSL_CERT_FILE=str(file))
    assert result.returncode == 2
    [error] = result.stderr.splitlines()
    assert error.startswith(f"error: SSL_CERT_FILE={file} cannot be used: ")


def test_an_error_is_one_line_of_json(tmp_path):
    done = run_foldline(tmp_path, "run", "-p", "Hello.", "--model", "anthropic:claude-sonnet-4-5", "--json")
    [found] = lines(done)
    assert set(found) == {"type", "error"}
    assert (found["type"], done.returncode) == ("error", 2)


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (["-p", "/stats"], ["session", "turn"]),
        (["-p", "/nosuch"], ["session", "error"]),
        (["--resume", "nosuch", "-p", "Hello."], ["error"]),
        (["--nosuch"], ["error"]),
    ],
)
def test_whatever_is_asked_every_line_is_an_event(tmp_path, words, kinds):
    with serve_model([]) as (_, name):
        done = run_foldline(tmp_path, "run", "--json", "--model", name, *words)
    assert [line["type"] for line in lines(done)] == kinds
    assert done.returncode == (2 if "error" in kinds else 0)


def test_the_demonstration_needs_no_model(tmp_path):
    done = run_foldline(tmp_path, "run", "--demo", "-p", "What is in loans.py? Never change the limits.")
    assert done.returncode == 0
    assert "LIMIT_LOANS" in done.stdout


@pytest.mark.slow
def test_a_server_that_is_not_there_is_told_in_a_line(tmp_path):
    name = "openai-compatible:scripted@http://127.0.0.1:9/v1"
    done = run_foldline(tmp_path, "run", "-p", "Hello.", "--json", "--model", name, "--window", "60000")
    assert done.returncode == 1
    [error] = done.stderr.splitlines()
    assert error.startswith(f"error: {name}: connection: no server answers there")
    assert [line["type"] for line in lines(done)].count("retrying") == 2


@pytest.mark.slow
def test_a_long_wait_is_told_and_a_short_one_is_not(tmp_path):
    busy = [Refusal(529), Refusal(529, retry_after=5.0), "Here."]
    with serve_model(busy) as (_, name):
        done = run_foldline(tmp_path, "run", "-p", "Hello.", "--model", name, "--window", "60000")
    assert (done.returncode, done.stdout) == (0, "Here.\n")
    told = [line for line in done.stderr.splitlines() if line.startswith("The model does not answer")]
    assert len(told) == 1
    assert "overloaded (503)" in told[0]


def test_the_answer_goes_to_standard_output_and_the_rest_to_standard_error(tmp_path):
    with serve_model([call("find", pattern="*"), "Two files."]) as (model, name):
        done = run_foldline(tmp_path, "run", "-p", "How many?", "--model", name, stdin="context\n")
    assert (done.returncode, done.stdout) == (0, "Two files.\n")
    assert "find" in done.stderr
    assert "How many?\n\ncontext" in str(model.requests[0].messages[1]["content"])


def test_events_are_json_lines(tmp_path):
    with serve_model([call("find", pattern="*"), "Two files."]) as (_, name):
        done = run_foldline(tmp_path, "run", "-p", "How many?", "--json", "--model", name)
    kinds = [line["type"] for line in lines(done)]
    assert kinds[0] == "session"
    assert kinds[-1] == "turn"
    assert {"prompt", "call", "result", "text", "reply"} <= set(kinds)


@pytest.mark.slow
def test_a_compaction_is_an_event_with_summary_time_tokens_and_first_kept(tmp_path):
    with serve_model(answers, window=60_000) as (_, name):
        first = run_foldline(tmp_path, "run", "-p", "Never push to main.", "--json", "--model", name)
        session = lines(first)[0]["id"]
        for _ in range(3):
            run_foldline(tmp_path, "run", "-p", "Go on.", "--resume", session, "--model", name)
        done = run_foldline(tmp_path, "run", "-p", "/compact", "--continue", "--json", "--model", name)
    [found] = [line for line in lines(done) if line["type"] == "compaction"]
    assert found["summary"]
    assert found["timestamp"].endswith("Z")
    assert found["tokensBefore"] > found["tokensAfter"]
    assert found["firstKeptEntryId"]
    assert found["reason"] == "manual"


def test_a_failed_turn_is_exit_code_1_and_nothing_is_lost(tmp_path):
    with serve_model([Refusal(401, "bad key", kind="authentication_error"), "Here."]) as (_, name):
        failed = run_foldline(tmp_path, "run", "-p", "Hello.", "--json", "--model", name)
        assert failed.returncode == 1
        assert lines(failed)[-1] == {"type": "error", "error": lines(failed)[-1]["error"]}
        done = run_foldline(tmp_path, "run", "-p", "Again.", "--continue", "--model", name)
    assert (done.returncode, done.stdout) == (0, "Here.\n")


def test_what_changes_something_needs_to_be_allowed(tmp_path):
    write = call("write", path="a.txt", content="x")
    with serve_model([write, "No.", write, "Yes."]) as (_, name):
        run_foldline(tmp_path, "run", "-p", "Write.", "--model", name)
        assert not (tmp_path / "work/a.txt").exists()
        run_foldline(tmp_path, "run", "-p", "Write.", "--allow", "write", "--model", name)
        assert (tmp_path / "work/a.txt").read_text() == "x"


def test_nothing_to_say_and_both_ways_to_go_on_are_refused(tmp_path):
    assert run_foldline(tmp_path, "run").returncode == 2
    both = run_foldline(tmp_path, "run", "-p", "x", "--resume", "a", "--continue")
    assert both.returncode == 2
    model = ("--model", "openai-compatible:a@http://127.0.0.1:9/v1")
    assert run_foldline(tmp_path, "run", "-p", "x", "--resume", "nosuch", *model).returncode == 2


def test_spans_are_written_as_json_lines(tmp_path):
    trace = tmp_path / "new/trace.jsonl"
    with serve_model(["Hello."]) as (_, name):
        done = run_foldline(tmp_path, "run", "-p", "Hi.", "--model", name, FOLDLINE_TRACE_FILE=str(trace))
    assert done.returncode == 0, done.stderr
    assert trace.stat().st_mode & 0o777 == 0o600
    spans = [json.loads(line) for line in trace.read_text().splitlines()]
    assert any("chat" in span["name"] for span in spans)


def test_a_session_goes_on_with_its_own_model_and_window(tmp_path):
    with (
        serve_model(["One.", "Two.", "Three."], window=60_000) as (model, name),
        serve_model(["Other."]) as (_, other),
    ):
        begun = run_foldline(tmp_path, "run", "-p", "A.", "--json", "--model", name, "--window", "31000")
        settings(tmp_path, f'model = "{other}"\n')
        again = run_foldline(tmp_path, "run", "-p", "B.", "--continue")
        shown = run_foldline(tmp_path, "run", "-p", "/context", "--resume", lines(begun)[0]["id"])
        named = run_foldline(tmp_path, "run", "-p", "C.", "--continue", "--model", other)
    assert (again.returncode, again.stdout) == (0, "Two.\n"), again.stderr
    assert len(model.requests) == 2
    assert "31,000" in shown.stdout
    assert named.stdout == "Other.\n"


def test_an_address_elsewhere_that_is_stored_is_not_asked(tmp_path):
    away = "openai-compatible:m@http://198.51.100.7/v1"
    with serve_model(["Here.", "Here."]) as (_, name):
        begun = run_foldline(tmp_path, "run", "-p", "A.", "--json", "--model", name)
        session = lines(begun)[0]["id"]
        run_foldline(tmp_path, "run", "-p", f"/model {away}", "--resume", session, "--model", name)
        settings(tmp_path, f'model = "{name}"\n')
        done = run_foldline(tmp_path, "run", "-p", "B.", "--continue")
    assert (done.returncode, done.stdout) == (0, "Here.\n"), done.stderr
    assert f"--model {away}" in done.stderr


def test_the_settings_of_the_folder_that_is_named_are_in_force(tmp_path):
    for name, window in (("work", 99_000), ("project", 50_000)):
        file = tmp_path / name / ".foldline/settings.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f"window = {window}\n")
    with serve_model([]) as (_, name):
        done = run_foldline(
            tmp_path, "run", "-p", "/model", "--model", name, "--folder", str(tmp_path / "project")
        )
    assert "window 50,000" in done.stdout
