"""Rules for `bash`: whatever a real shell makes of a line, it does no more than the rules allow."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.agent.working import host_on

from foldline.agent.permissions import PermissionRequest, Permissions, commands, rule_for
from foldline.testing import call, calls

GROUPS = tomllib.loads((Path(__file__).parents[1] / "data" / "shell_lines.toml").read_text("utf-8"))
LINES = [line for group in GROUPS.values() for line in group]
STUBS = ("git", "touch", "rm", "curl", "make", "tee", "push.sh", "not")
REAL = ("bash", "sh", "env", "xargs", "timeout", "nohup", "find", "cat", "cp")


class Shell:
    """A bash in a folder of its own, in which the programs of STUBS do nothing but note that they ran."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs, self.log = folder / "work", folder / "bin", folder / "log"
        self.programs.mkdir()
        for name in STUBS:
            stub = self.programs / name
            stub.write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/} $*" >> "$LOG"\n')
            stub.chmod(0o755)
        for name in REAL:
            if (found := shutil.which(name)) is not None:
                (self.programs / name).symlink_to(found)

    def ran(self, line: str) -> tuple[list[str], list[str]]:
        """Run a line; return the programs that ran, each with its arguments, and the files that it made."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        (self.folder / "a.txt").write_text("push\n")
        (self.folder / "push.sh").write_text("git push\n")
        self.log.write_text("")
        there = {one.name for one in self.folder.iterdir()}
        subprocess.run(
            [self.programs / "bash", "-c", line.encode("utf-8", "surrogateescape")],
            cwd=self.folder,
            env={
                "PATH": str(self.programs),
                "LOG": str(self.log),
                "HOME": str(self.folder),
                "LC_ALL": "C.UTF-8",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        return self.log.read_text().splitlines(), sorted({one.name for one in self.folder.iterdir()} - there)


@pytest.fixture
def shell(tmp_path):
    if shutil.which("bash") is None:
        pytest.skip("there is no bash: install one")
    return Shell(tmp_path)


async def may(line, *, allow=(), deny=()):
    return await Permissions(allow=allow, deny=deny).refused(PermissionRequest("bash", line)) is None


def test_the_lines_are_many_and_of_all_kinds():
    assert len(set(LINES)) == len(LINES) >= 300
    assert list(GROUPS) == ["plain", "quoted", "substituted", "nested", "redirected", "broken"]


@pytest.mark.slow
async def test_an_allowed_line_does_no_more_than_its_rules_say(shell):
    allow = ["bash:git status*", "bash:git log*", "bash:cat"]
    allowed = [line for line in LINES if await may(line, allow=allow)]
    wrong = {}
    for line in allowed:
        programs, made = shell.ran(line)
        if made or not all(one.startswith(("git status", "git log")) for one in programs):
            wrong[line] = programs, made
    assert wrong == {}
    assert len(allowed) >= 40  # and most of the harmless ones are


@pytest.mark.slow
async def test_no_line_that_is_let_through_runs_what_is_denied(shell):
    passed = [line for line in LINES if await may(line, allow=["bash"], deny=["bash:git push*"])]
    wrong = {}
    for line in passed:
        programs, _ = shell.ran(line)
        if any(one.startswith("git") and "push" in one.split() for one in programs):
            wrong[line] = programs
    assert wrong == {". ./push.sh": ["git push"]}  # what a script does is not looked into
    assert len(passed) >= 60


@pytest.mark.slow
async def test_the_lines_do_harm_where_everything_is_allowed(shell):
    harm = 0
    for line in LINES:
        programs, made = shell.ran(line)
        harm += bool(made) or any(one.startswith(("git push", "touch", "tee")) for one in programs)
    assert harm >= 100


@pytest.mark.parametrize("group", ["substituted", "redirected"])
def test_what_a_shell_could_read_otherwise_is_not_plain(group):
    plain = {"git log ^a^b", "git status | tee X"}
    assert {line for line in GROUPS[group] if commands(line) is not None} <= plain


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("git  status\t-s", [["git", "status", "-s"]]),
        ("git log --format='%h %s' | cat", [["git", "log", "--format=%h %s"], ["cat"]]),
        ("a 'b'\"c\"d '' HEAD~1", [["a", "bcd", "", "HEAD~1"]]),
        ("a;b&&c||d", [["a"], ["b"], ["c"], ["d"]]),
        ("a &", None),
        ("a\nb", None),
        ("a 'b", None),
        ("", None),
    ],
)
def test_a_plain_line_is_its_commands(line, found):
    assert commands(line) == found


@pytest.mark.parametrize(
    ("line", "rule", "allowed"),
    [
        ("git status && git log", "bash:git status*", False),
        ("git push 'x --dry-run'", "bash:git * --dry-run", False),
        ("git push x --dry-run", "bash:git * --dry-run", True),
        ("'git status' x", "bash:git status*", False),
        ("A=1 git status", "bash:*git status*", False),
        ("pytest -q 'tests/a b.py'", "bash:pytest *", True),
        ("pytest -q > out", "bash", True),
        ("pytest -q > out", "bash:*", True),
        ("pytest -q > out", "*", True),
        ("pytest -q", "write", False),
    ],
)
async def test_what_a_rule_allows(line, rule, allowed):
    assert await may(line, allow=[rule]) is allowed


async def test_a_line_of_two_commands_may_be_allowed_by_two_rules():
    assert await may("git status && git log", allow=["bash:git status*", "bash:git log*"])


@pytest.mark.parametrize("line", ["git push", "git  push -f", "A=1 git push", "true; 'git' push"])
async def test_what_is_denied_is_refused_with_the_reason(line):
    found = await Permissions(allow=["*"], deny=["bash:git push*"]).refused(PermissionRequest("bash", line))
    assert found is not None
    assert found.startswith("The user's settings deny bash")


async def test_what_may_run_a_denied_command_is_asked_for():
    asked = []

    async def ask(request):
        asked.append(request.detail)
        return "once"

    rules = Permissions(allow=["*"], deny=["bash:git push*"], ask=ask)
    for line in ("(git push)", "sh -c 'git push'", "git -C . push", "make build"):
        assert await rules.refused(PermissionRequest("bash", line)) is None
    assert asked == ["(git push)", "sh -c 'git push'", "git -C . push"]


async def test_a_line_that_was_always_allowed_is_allowed_word_for_word_alone():
    line = "for f in *.py; do echo $f; done"
    rules = Permissions(allow=[rule_for(PermissionRequest("bash", line))])
    assert await rules.refused(PermissionRequest("bash", line)) is None
    assert await rules.refused(PermissionRequest("bash", line.replace("echo", "rm"))) is not None


async def test_rules_for_other_tools_are_patterns_of_what_they_are_used_for():
    rules = Permissions(allow=["write:docs/*"], deny=["write:docs/secret*"])
    assert await rules.refused(PermissionRequest("write", "docs/a.md")) is None
    assert await rules.refused(PermissionRequest("write", "docs/secret.md")) is not None
    assert await rules.refused(PermissionRequest("write", "src/a.py")) is not None


async def test_a_search_shows_no_line_of_a_file_that_may_not_be_read(tmp_path):
    searches = [call("grep", pattern="KEY"), call("grep", pattern="KEY", path="src/.env")]
    async with host_on(tmp_path, [calls(*searches), "Done."], deny=("read:*.env", "read:.env?*")) as host:
        (tmp_path / "work/src").mkdir()
        for name in (".env", "src/.env", ".env\nnotes", "notes", "src/a: KEY.txt"):
            (tmp_path / "work" / name).write_text(f"KEY of {name}\n")
        await host.prompt("Go.")
        in_file, in_folder = sorted((event.text for event in host.heard.named("result")), key=len)
        assert "notes:1:KEY of notes\n" in in_folder
        assert "src/a: KEY.txt:1:KEY of src/a: KEY.txt\n" in in_folder
        assert ".env" not in in_folder
        assert in_folder.endswith("[3 files that the user's settings deny are left out]")
        assert in_file == "No line matches.\n[1 file that the user's settings deny is left out]"


@pytest.mark.parametrize(
    ("rule", "denied"),
    [
        ("*", {"read", "grep", "find", "task", "todo"}),
        ("read", {"read"}),
        ("read:.env", {"read"}),
        ("read:src/*", set()),
        ("grep:.", {"grep"}),
        ("task:look*", {"task"}),
        ("todo", {"todo"}),
    ],
)
async def test_what_is_denied_is_refused_where_a_tool_does_not_ask(tmp_path, rule, denied):
    uses = [
        *(call("read", path="src/../.env"), call("grep", pattern="KEY"), call("find")),
        *(call("todo", items=[]), call("task", goal="look into it")),
    ]
    async with host_on(tmp_path, [calls(*uses), *["Done."] * 2], allow=(), deny=(rule,)) as host:
        (tmp_path / "work/src").mkdir()
        (tmp_path / "work/.env").write_text("KEY=1234\n")
        await host.prompt("Go.")
        results = host.heard.named("result")
        assert {
            event.tool for event in results if event.text.startswith("The user's settings deny")
        } == denied
