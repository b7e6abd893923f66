"""The same settings reach `open`, `open_sync`, `compact` and the commands: window, price, warning, policy, store."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.cli.calling import run_command, talk

import foldline
from foldline.errors import InputError

MINE = 'models."openai:mine"'
PRICED = f"""
model = "openai:mine"
[{MINE}]
context = 3000
output = 400
price = {{ input = 1, output = 2 }}
"""


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Write the user's settings, and stand beside them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("STORE", "POLICY", "WINDOW", "MODEL"):
        monkeypatch.delenv(f"FOLDLINE_{name}", raising=False)

    def put(text):
        (tmp_path / ".foldline").mkdir(exist_ok=True)
        (tmp_path / ".foldline" / "settings.toml").write_text(text)

    return put


def chat(turns):
    return talk(*(f"Turn {turn}." for turn in range(turns)), long=60)


def saved(tmp_path, messages):
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(messages))
    return file


def test_the_models_of_the_settings_count_everywhere(settings, tmp_path, capsysbinary):
    settings(PRICED)
    session = foldline.open("memory://", "s")
    assert (session.setup.model, session.setup.window) == ("openai:mine", foldline.Window(3_000, None, 400))
    assert session.setup.info.price.output == 2
    assert session.setup.info.warning is None
    with foldline.open_sync("memory://", "s") as other:
        assert other.setup.info == session.setup.info
    usable = foldline.compact(chat(60)).receipt.tokens_after
    assert usable <= 3_000
    code, out, err = run_command(capsysbinary, "compact", saved(tmp_path, chat(60)), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["receipt"]["tokens_after"] == usable


def test_an_assumed_window_is_warned_of_in_the_same_words_everywhere(settings, tmp_path, capsysbinary):
    settings('model = "openai:unheard-of"')
    text = foldline.open("memory://", "s").setup.info.warning
    assert "openai:unheard-of is not in the catalogue: a window of 200,000 tokens" in text
    assert foldline.compact(chat(2)).warnings == (text,)
    _, _, err = run_command(capsysbinary, "compact", saved(tmp_path, chat(2)))
    assert text in " ".join(err.split())
    settings(f'model = "openai:unheard-of"\n[{MINE.replace("mine", "unheard-of")}]\ncontext = 64000\n')
    assert foldline.open("memory://", "s").setup.info.warning is None, "what the warning says is what helps"


def test_policy_and_window_of_the_settings_count_where_none_is_given(settings):
    settings('policy = "mine"\nwindow = 5000\n[policies.mine]\nbase = "pi"\nkeep = 700\n')
    session = foldline.open("memory://", "s")
    assert (session.setup.policy.name, session.setup.policy.keep.amount.tokens) == ("mine", 700)
    assert session.setup.window.context == 5_000
    assert foldline.compact(chat(90)).receipt.policy == "mine"
    assert foldline.compact(chat(90), policy="codex").receipt.policy == "codex"
    given = foldline.open("memory://", "s", policy="codex", window=9_000)
    assert (given.setup.policy.name, given.setup.window.context) == ("codex", 9_000)


async def test_the_store_of_the_settings_is_used_where_none_is_given(settings, tmp_path):
    settings('store = "sqlite:///team.db"')
    async with foldline.open(session="s") as session:
        await session.append({"role": "user", "content": "Hello."})
    assert (tmp_path / "team.db").exists()
    async with foldline.open("sqlite:///own.db", "s") as session:
        assert await session.history() == []


async def test_a_model_of_the_settings_changes_nothing_about_who_writes(settings):
    settings('model = "openai-compatible:mine@http://127.0.0.1:9/v1"\nwindow = 3000\n')
    async with foldline.open("memory://", "s") as session:
        assert session.summarizer.name == "offline"
    async with foldline.open(
        "memory://", "s", model="openai-compatible:mine@http://127.0.0.1:9/v1"
    ) as session:
        assert session.summarizer.name == "openai-compatible:mine@http://127.0.0.1:9/v1"


def test_a_model_that_a_session_changes_to_is_looked_up_in_the_settings(settings):
    settings(PRICED)
    with foldline.open_sync("memory://", "s", model="openai:gpt-5.2") as session:
        session.use_model("openai:mine")
        assert (session.setup.window.context, session.setup.info.price.input) == (3_000, 1)


def test_a_mistake_in_the_settings_is_told_by_its_file(settings):
    settings("window = 'many'")
    for begin in (lambda: foldline.open("memory://", "s"), lambda: foldline.compact(chat(2))):
        with pytest.raises(InputError, match=r"settings\.toml"):
            begin()


def test_importing_reads_no_settings(settings, tmp_path):
    settings("window = 'many'")
    ran = subprocess.run(
        [sys.executable, "-c", "import foldline; foldline.Policy, foldline.Session"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
