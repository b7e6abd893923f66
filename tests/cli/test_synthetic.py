"""The formats without public files, through every command that reads a session."""

from __future__ import annotations

import json

import pytest
from tests.support.synthetic import SYNTHETIC

from foldline import dialects

FILES = {
    "klaude-code": ("klaude-code/events.jsonl", 10, 1),
    "coop": ("coop/coop_dm_signal_alice-uuid.jsonl", 12, 1),
    "gencode": ("gencode.json", 7, 1),
    "moldable": ("moldable.json", 10, 1),
    "aider": ("aider.chat.history.md", 8, 0),
    "markdown": ("chat.md", 6, 0),
}
TITLES = {
    "klaude-code": "Retry the upload",
    "gencode": "Implement Auth System",
    "markdown": "Why is the build slow?",
}


@pytest.fixture(params=FILES)
def form(request: pytest.FixtureRequest) -> str:
    return request.param


def test_import_keeps_messages_compactions_and_titles(foldline, form):
    name, messages, folds = FILES[form]
    done = foldline("import", SYNTHETIC / name, "--id", "s", "--json")
    assert (done.json["format"], done.json["messages"], done.json["compactions"]) == (form, messages, folds)
    assert done.json["warnings"] == []
    assert foldline("import", SYNTHETIC / name, "--id", "s", "--json").json["new_entries"] == 0
    [listed] = foldline("sessions", "--json").json
    assert listed["title"] == TITLES.get(form, listed["title"])
    assert foldline("verify").code == 0


def test_compact_folds_all_that_was_said_into_a_budget(foldline, form, tmp_path):
    name, *_ = FILES[form]
    target = 140 if form == "klaude-code" else 125
    # offline and from the start, so that there is something to fold in each of them
    done = foldline(
        "compact", SYNTHETIC / name, "--from-start", "--target", target, "-o", tmp_path / "o.jsonl", "--json"
    )
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    system = next((row["system"] for row in rows if "role" not in row), None)
    sent = [row for row in rows if "role" in row]
    dialect = {"coop": "anthropic", "gencode": "anthropic", "moldable": "ui-message"}.get(form, "openai-chat")
    assert dialects.get(dialect).validate(sent, system) == []
    assert done.json["view_tokens"] <= target
    assert "foldline-checkpoint" in json.dumps(sent[0])
