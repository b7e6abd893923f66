"""What a shell is offered: asked as the script of each shell asks, by its own class of click's."""

from __future__ import annotations

import subprocess

import pytest
from click.shell_completion import get_completion_class
from tests.cli.calling import SESSION, talk, write_lines

from foldline.cli.app import COMMANDS, cli
from foldline.cli.commands.completion import VARIABLE
from foldline.core.decide.presets import PRESETS

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def offered(monkeypatch):
    def ask(line: str, shell: str = "bash") -> dict[str, str]:
        """The values that are offered for the last word of a line, each with its kind."""
        words = line.split(" ")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
        told = get_completion_class(shell)(cli, {}, "foldline", VARIABLE).complete()
        if shell == "zsh":  # a kind, a value, a help: a line each
            rows = told.split("\n")
            return {
                value.replace("\\:", ":"): kind for kind, value in zip(rows[::3], rows[1::3], strict=True)
            }
        pairs = (row.split("\t")[0].split(",", 1) for row in told.split("\n") if row)
        return {value: kind for kind, value in pairs}

    return ask


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_asks_foldline(foldline, shell):
    done = foldline("completion", shell)
    assert done.code == 0
    assert f"{VARIABLE}={shell}_complete" in done.out
    assert foldline("completion", shell, "--json").json == {"shell": shell, "script": done.out[:-1]}


def test_another_shell_is_refused(foldline):
    done = foldline("completion", "ksh")
    assert done.code == 2
    assert "'bash', 'zsh', 'fish'" in done.err


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_policies_in_every_shell(offered, shell):
    assert set(offered("foldline ", shell)) == set(COMMANDS)
    assert set(offered("foldline rep", shell)) == {"replay"}
    assert set(offered("foldline compact --policy co", shell)) == {n for n in PRESETS if n.startswith("co")}


def test_the_group_and_a_command_have_options(offered):
    assert set(offered("foldline --v")) == {"--version"}
    assert {"--policy", "--target", "--json"} < set(offered("foldline compact --"))


@pytest.mark.parametrize("command", ["inspect", "replay", "chat", "run", "serve", "slim"])
def test_policies_wherever_one_is_named(offered, command):
    assert set(offered(f"foldline {command} --policy pi")) == {"pi"}


def test_the_last_policy_of_a_list_and_ones_own(offered, tmp_path, monkeypatch):
    (tmp_path / "home" / ".foldline").mkdir()
    (tmp_path / "home" / ".foldline" / "settings.toml").write_text('[policies.mine]\nbase = "pi"\n')
    assert set(offered("foldline replay a.jsonl --policy pi,mi")) == {"pi,mine"}
    assert set(offered("foldline policies mi")) == {"mine", "mi"}  # and files


def test_dialects_formats_and_agents(offered):
    assert set(offered("foldline compact a.jsonl --dialect anth")) == {"anthropic"}
    assert set(offered("foldline export a.jsonl --format cod")) == {"codex"}
    assert set(offered("foldline wrap ")) == {"claude", "codex", "opencode", "pi", "hermes"}
    assert offered("foldline slim code") == {"codex": "plain", "code": "file"}


def test_ids_of_stored_sessions(foldline, offered, tmp_path):
    assert offered("foldline show ") == {}
    for name in ("login-bug", "login-page"):
        file = write_lines(tmp_path / f"{name}.jsonl", talk(f"About {name}.", "Done."))
        assert foldline("import", file, "--id", name).code == 0
    assert set(offered("foldline show login-b")) == {"login-bug"}
    assert set(offered("foldline run --resume lo")) == {"login-bug", "login-page"}
    assert offered("foldline constraints login-p") == {"login-page": "plain", "login-p": "file"}

    other = f"sqlite:///{tmp_path}/other.db"
    foldline("import", SESSION, "--id", "elsewhere", "--store", other)
    assert set(offered(f"foldline show --store {other} ")) == {"elsewhere"}
    assert offered("foldline show --store sqlite:///nowhere.db ") == {}
    assert offered("foldline show --store nonsense:// ") == {}


@pytest.mark.parametrize("args", ["replay ", "batch fold ", "inspect ", "compact "])
def test_files_are_the_shells(offered, args):
    assert set(offered(f"foldline {args}").values()) == {"file"}


def test_bash_takes_the_script(foldline):
    script = foldline("completion", "bash").out
    told = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\ncomplete -p foldline"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_foldline_completion" in told.stdout
