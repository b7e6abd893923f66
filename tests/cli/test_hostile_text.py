"""What a session holds is shown, and steers no terminal: control characters, OSC, bidi overrides, file names."""

import io
import json
import sys

import pytest
from tests.cli.calling import write_lines

from foldline.cli import output
from foldline.terminal import clean, clean_json

STEERING = "\x1b]0;owned\x07 \x1b[2J \x9b31m \x90q\x9c \x00 \x08 \r \x7f \u202egnp.exe\u202c \u2066x\u2069 \u200f \u2028 \ufeff \U000e0041"
RAW = [character for character in STEERING if not character.isascii() or not character.isprintable()]
NAME = "evil\x1b]0;owned\x07\u202egnp.jsonl"


def hostile():
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": f"read{STEERING}", "arguments": json.dumps({"path": f"/a/{STEERING}.py"})},
    }
    talk = [{"role": "user", "content": f"Fix {STEERING} it. Never push {STEERING} to main."}]
    talk += [{"role": "assistant", "content": f"I look {STEERING}", "tool_calls": [call]}]
    talk += [{"role": "tool", "tool_call_id": "c1", "content": f"Error: {STEERING}\n" * 40}]
    for number in range(8):
        talk += [{"role": "assistant", "content": f"Step {number} {STEERING} " + "went on with it " * 80}]
        talk += [{"role": "user", "content": f"Next {number} {STEERING}"}]
    return talk  # fmt: skip


@pytest.fixture
def file(tmp_path):
    return write_lines(
        tmp_path / NAME, [{"title": f"A title {STEERING}", "model": f"m{STEERING}"}, *hostile()]
    )


COMMANDS = {
    "inspect": ["inspect", "FILE"],
    "compact": ["compact", "FILE", "--target", 900],
    "compact, preview": ["compact", "FILE", "--target", 900, "--preview"],
    "compact, too small": ["compact", "FILE", "--target", 1],
    "compact, written": ["compact", "FILE", "--target", 900, "-o", NAME],
    "replay": ["replay", "FILE", "--window", 3_000],
    "batch": ["batch", "fold", "FILE", "--target", 900, "-o", "out"],
    "sessions": ["sessions"],
    "show": ["show", "ID"],
    "show, view": ["show", "ID", "--view"],
    "search": ["search", "Next"],
    "verify": ["verify", "ID"],
    "purge": ["purge", "ID", "--yes"],
    "import again": ["import", "FILE"],
    "export, written": ["export", "FILE", "--format", "markdown", "-o", NAME],
    "no such file": ["inspect", NAME],
    "no such session": ["show", NAME],
    "no such policy": ["compact", "FILE", "--policy", NAME],
    "no such command": [NAME],
    "no such option": ["inspect", "FILE", f"--{NAME}"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
def test_no_command_prints_what_steers_a_terminal(foldline, file, words):
    assert foldline("import", file).code == 0
    name = foldline("sessions", "--json").json[0]["id"]
    done = foldline(*[{"FILE": file, "ID": name}.get(word, word) for word in words])
    assert done.out + done.err
    assert [character for character in RAW if character in done.out + done.err] == []


@pytest.mark.parametrize(
    "words",
    [
        ["compact", "FILE", "--target", 900, "--policy"],
        ["check", "FILE", "--window", 9_000, "--policy"],
        ["policies"],
    ],
)
def test_the_name_of_a_policy_is_shown_and_steers_no_terminal(foldline, file, tmp_path, words):
    name = "evil[/]\x1b]0;owned\x07"
    policies = tmp_path / "p.toml"
    policies.write_text(f"[policies.{json.dumps(name)}]\nbase = 'pi'\n")
    done = foldline(*[file if word == "FILE" else word for word in words], name, "--policies", policies)
    assert "evil[/]\\x1b]0;owned\\x07" in done.out
    assert [character for character in RAW if character in done.out + done.err] == []


@pytest.mark.parametrize("words", [["show", "ID", "--json"], ["export", "FILE", "--format", "openai-chat"]])
def test_data_in_a_pipe_stays_as_it_is(foldline, file, words):
    foldline("import", file)
    name = foldline("sessions", "--json").json[0]["id"]
    done = foldline(*[{"FILE": file, "ID": name}.get(word, word) for word in words])
    assert "\u202e" in done.out


def test_all_that_steers_is_shown_escaped():
    assert clean("a\tb\nc\r\nd") == "a\tb\nc\nd"
    assert clean("\x1b[2J\x9b\u202e\U000e0041\ud800") == "\\x1b[2J\\x9b\\u202e\\U000e0041\ufffd"
    assert clean("naïve 日本 👩‍👧 עברית") == "naïve 日本 👩‍👧 עברית"
    document = json.dumps({"text": STEERING}, ensure_ascii=False).encode()
    assert json.loads(clean_json(document)) == {"text": STEERING}
    assert [character for character in RAW if character in clean_json(document).decode()] == []


def test_data_on_a_terminal_is_escaped_and_means_the_same(monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    held = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(held, encoding="utf-8"))
    output.print_json({"text": STEERING})
    output.write_whole(output.Path("-"), lambda stream: stream.write(f"# {STEERING}".encode()))
    written = held.getvalue().decode()
    assert [character for character in RAW if character in written] == []
    assert json.loads(written[: written.index("}") + 1]) == {"text": STEERING}
