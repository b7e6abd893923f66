"""`foldline compact --model`: a model that can be asked writes the summary, and the receipt says what that cost."""

import pytest
from tests.cli.calling import coding_session, write_lines
from tests.summarizers.talking import GOOD

from foldline.testing import Scripted, serve_in_thread

SUMMARY = GOOD.replace(
    "Never touch anything under migrations/ without asking me first.", "Never touch the lock file."
)
SUMMARY += "\n\n## Turn in Progress\nModule 11 is being mended."  # where the cut falls inside a turn


@pytest.fixture
def session(tmp_path):
    return write_lines(tmp_path / "session.jsonl", coding_session(12))


@pytest.fixture
def served():
    """A model that writes a summary, and its name."""
    model = Scripted([SUMMARY])
    with serve_in_thread(model) as url:
        yield model, f"openai-compatible:scripted@{url}/v1"


COOP = ("--policy", "coop", "--target", 3000)


def test_the_model_that_is_named_writes_the_summary(foldline, session, served):
    model, name = served
    done = foldline("compact", session, *COOP, "--model", name, "--window", 100_000)
    assert done.code == 0
    assert len(model.requests) == 1
    assert f"written by {name}" in done.out
    assert "the summary took" in done.out
    assert "Mend the login page" in done.out


def test_offline_takes_its_window_alone(foldline, session, served):
    model, name = served
    done = foldline("compact", session, *COOP, "--model", name, "--offline", "--json")
    assert (done.code, len(model.requests)) == (0, 0)
    assert done.json["receipt"]["summarizer"] == "offline"


def write_rules(tmp_path, lines):
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[policies.mine]\nbase = "coop"\n{lines}\n')
    return rules


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("for_model", [True, False])
def test_offline_asks_no_summary_model_either(foldline, session, tmp_path, served, named, for_model):  # noqa: PLR0917
    model, name = served
    table = '[policies.mine.per_model."openai-compatible:"]\n' if for_model else ""
    rules = write_rules(tmp_path, f'{table}summary_model = "{name}"')
    asked = ["--model", name] if named else []
    done = foldline("compact", session, "--policy", rules, "--target", 3000, "--offline", "--json", *asked)
    assert (done.code, len(model.requests)) == (0, 0)
    assert done.json["receipt"]["summarizer"] == "offline"
    assert "summary_model" not in done.err


def test_offline_says_nothing_of_a_summary_model_that_cannot_be_asked(foldline, session, tmp_path):
    rules = write_rules(tmp_path, 'summary_model = "nobody:small-1"')
    done = foldline("compact", session, "--policy", rules, "--target", 3000, "--offline", "--json")
    assert (done.code, done.json["receipt"]["notes"], done.err) == (0, [], "")


def test_a_model_of_the_settings_is_not_asked(foldline, session, served, monkeypatch):
    model, name = served
    monkeypatch.setenv("FOLDLINE_MODEL", name)
    done = foldline("compact", session, *COOP, "--json")
    assert (done.code, len(model.requests)) == (0, 0)


def test_without_a_key_code_writes_and_the_receipt_says_why(foldline, session, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    done = foldline("compact", session, *COOP, "--model", "anthropic:claude-sonnet-4-6", "--json")
    assert done.code == 0
    assert done.json["receipt"]["summarizer"] == "offline"
    assert any("no key: set ANTHROPIC_API_KEY" in note for note in done.json["receipt"]["notes"])


@pytest.mark.parametrize("model", [True, False])
def test_a_summary_model_that_cannot_be_asked_is_named(foldline, session, tmp_path, served, model):
    rules = write_rules(tmp_path, 'summary_model = "nobody:small-1"')
    _, name = served
    asked = ["--model", name, "--window", 100_000] if model else []
    done = foldline("compact", session, "--policy", rules, "--target", 3000, "--json", *asked)
    assert done.code == 0
    instead = f"{name} is asked instead" if model else "code alone writes"
    (note,) = [note for note in done.json["receipt"]["notes"] if "summary_model cannot be asked" in note]
    assert "nobody" in note
    assert note.endswith(instead)
    assert "warning: the policy's summary_model cannot be asked" in " ".join(done.err.split())
