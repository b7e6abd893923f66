"""What the agent reads and writes stays in its folder, is a file, and is never held whole without need."""

from __future__ import annotations

import ast
import asyncio
import os
import socket
import tracemalloc
from pathlib import Path

import pytest
from tests.agent.working import host_on

import foldline.agent
from foldline.agent.attachments import attach_references, text_of
from foldline.agent.prompt import instructions, system_prompt
from foldline.agent.tools import read
from foldline.agent.tools.change import edit, write
from foldline.agent.tools.search import grep
from foldline.agent.workspace import Workspace
from foldline.errors import InputError
from foldline.files import content, written
from foldline.testing import call

SECRET = "what stands elsewhere"


@pytest.fixture
def away(tmp_path):
    folder = tmp_path / "away"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "work").mkdir()
    return Workspace(tmp_path / "work")


def run(tool, **given):
    """Run a tool as the agent does, its request for permission first."""

    async def ran():
        tool.asks(given)
        return await asyncio.wait_for(tool.run(given), 60)

    return asyncio.run(ran())


@pytest.mark.parametrize("name", ["v.txt", "a/b/v.txt", ".hidden"])
@pytest.mark.parametrize("part", [".{}.writing", "{}.writing", ".{}.part", ".{}.tmp", "{}~", ".{}.1.writing"])
def test_no_name_of_a_half_written_file_leads_out(workspace, away, name, part):
    path = workspace.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(part.format(path.name)).symlink_to(away / "secret.txt")
    run(write(workspace), path=name, content="one\n")
    run(edit(workspace), path=name, old="one", new="two")
    assert path.read_text() == "two\n"
    assert (away / "secret.txt").read_text() == SECRET
    assert sorted(one.name for one in path.parent.iterdir()) == sorted((path.name, part.format(path.name)))


def test_a_link_that_is_put_there_meanwhile_leads_nowhere(workspace, away):
    (workspace.root / "a").mkdir()
    (workspace.root / "a/secret.txt").write_text("mine")
    path = workspace.resolve("a/secret.txt")
    (workspace.root / "a").rename(workspace.root / "b")
    (workspace.root / "a").symlink_to(away)
    for work in (lambda: workspace.open(path), lambda: workspace.content(path)):
        with pytest.raises(OSError):
            work()
    for name in ("secret.txt", "new.txt", "new/er.txt"):
        with pytest.raises(InputError, match="cannot be written"):
            workspace.put(workspace.root / "a" / name, "x")
    assert [one.name for one in away.iterdir()] == ["secret.txt"]
    assert (away / "secret.txt").read_text() == SECRET
    (workspace.root / "link.txt").symlink_to(away / "secret.txt")
    with pytest.raises(OSError):
        workspace.open(workspace.root / "link.txt")
    workspace.put(workspace.root / "link.txt", "mine now")  # the link is replaced, not followed
    assert (away / "secret.txt").read_text() == SECRET


def test_a_file_that_is_read_again_at_a_fold_is_in_the_folder_and_a_text(workspace, away):
    (workspace.root / "a.txt").write_text("é" * 70_000)
    (workspace.root / "b.bin").write_bytes(b"\0\1")
    (workspace.root / "link.txt").symlink_to(away / "secret.txt")
    os.mkfifo(workspace.root / "pipe")
    assert text_of("a.txt", workspace) == "é" * read.CHARACTERS
    out = ("b.bin", "link.txt", "pipe", ".", "gone", "", "\0", "../away/secret.txt", str(away / "secret.txt"))
    assert [text_of(name, workspace) for name in out] == [None] * len(out)


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
@pytest.mark.parametrize("to", ["file", "folder"])
def test_instructions_that_lead_out_of_the_folder_are_not_sent(workspace, away, caplog, name, to):
    if to == "file":
        (workspace.root / name).symlink_to(away / "secret.txt")
    else:
        (workspace.root / name).symlink_to("docs/in.md")
        (workspace.root / "docs").symlink_to(away)
        (away / "in.md").write_text(SECRET)
    assert SECRET not in system_prompt(workspace)
    assert f"{name} is skipped" in caplog.text


def test_instructions_are_taken_within_the_folder_and_where_the_user_allows(workspace, away):
    (workspace.root / "docs.md").write_text("Run the tests.")
    (workspace.root / "AGENTS.md").symlink_to("docs.md")
    assert instructions(workspace) == ("AGENTS.md", "Run the tests.")
    (workspace.root / "AGENTS.md").unlink()
    (workspace.root / "CLAUDE.md").symlink_to(away / "secret.txt")
    assert instructions(Workspace(workspace.root, others=[away])) == ("CLAUDE.md", SECRET)
    (workspace.root / "AGENTS.md").write_text("é" * 30_000)
    assert instructions(workspace)[1] == "é" * 20_000 + "\n[… the rest was left out: read AGENTS.md]"


def test_files_behind_an_at_sign_stay_in_the_folder(workspace, away):
    (workspace.root / "link.txt").symlink_to(away / "secret.txt")
    (workspace.root / "folder").symlink_to(away)
    text = "See @link.txt @folder/secret.txt @folder @../away/secret.txt @pipe"
    os.mkfifo(workspace.root / "pipe")
    assert len(asyncio.run(attach_references(text, workspace))) == 1


@pytest.fixture(params=["pipe", "link to a pipe", "socket", "device"])
def special(request, workspace, tmp_path, monkeypatch):
    """Make something with the name of a file that is none; `device` leads to one that never ends."""
    path = workspace.root / "AGENTS.md"
    if "pipe" in request.param:
        made = workspace.root / "pipe" if "link" in request.param else path
        os.mkfifo(made)
        if made != path:
            path.symlink_to(made)
        yield workspace
    elif request.param == "device":
        path.symlink_to("/dev/zero")
        yield Workspace(workspace.root, others=["/dev"])
    else:
        monkeypatch.chdir(workspace.root)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("AGENTS.md")
            yield workspace


def test_what_is_no_file_is_refused_at_once(special):
    for tool, given in (
        (read.make(special), {}),
        (write(special), {"content": "x"}),
        (edit(special), {"old": "a", "new": "b"}),
        (grep(special), {"pattern": "x"}),
    ):
        with pytest.raises(InputError):
            run(tool, path="AGENTS.md", **given)
    assert instructions(special) is None
    assert len(asyncio.run(attach_references("See @AGENTS.md", special))) == 1
    assert not (special.root / "AGENTS.md").is_file()


@pytest.mark.slow
def test_a_part_of_a_file_does_not_load_the_file(workspace):
    with (workspace.root / "large.txt").open("wb") as file:
        for number in range(1, 200_001):
            file.write(b"%07d %s\n" % (number, b"x" * 300))
        file.write(b"y" * 60_000_000)
    tracemalloc.start()
    try:
        first = run(read.make(workspace), path="large.txt", limit=1)
        last = run(read.make(workspace), path="large.txt", offset=200_000)
        said = asyncio.run(attach_references("See @large.txt", workspace))[1]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert first.startswith("     1\t0000001 ")
    assert first.endswith("[200000 more lines: read with offset 2]")
    assert last.split("\n")[0].startswith("200000\t0200000 ")
    assert last.endswith(f"200001\t{'y' * 2_000}… [{60_000_000 - 2_000} more characters]")
    assert said.text.endswith("[… the beginning of 121,800,000 bytes: use read for more]\n</file>")
    assert most < 10_000_000


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\rc\n", ["a", "b", "c"]),
        (b"\n\na\n\n", ["", "", "a", ""]),
        (b"a\x0cb\xe2\x80\xa8c\n", ["a\x0cb\u2028c"]),  # as grep and editors count them
        (b"\xff\n", ["\ufffd"]),
        (b"x" * 65_535 + "é\r\n".encode() + b"z", ["x" * 2_000 + "… [63536 more characters]", "z"]),
    ],
)
def test_lines_are_numbered_as_other_programs_number_them(workspace, raw, lines):
    (workspace.root / "f").write_bytes(raw)
    told = run(read.make(workspace), path="f")
    assert told == "\n".join(f"{place:>6}\t{line}" for place, line in enumerate(lines, 1))


def test_the_end_of_a_file_is_told(workspace):
    (workspace.root / "f").write_text("a\nb\nc\n")
    (workspace.root / "empty").write_text("")
    assert run(read.make(workspace), path="f", offset=3) == "     3\tc"
    assert run(read.make(workspace), path="f", limit=2).endswith("[1 more lines: read with offset 3]")
    assert run(read.make(workspace), path="empty") == "(an empty file)"
    with pytest.raises(InputError, match="only 3 lines"):
        run(read.make(workspace), path="f", offset=4)


def test_a_large_file_is_not_changed_in_memory(workspace):
    (workspace.root / "large").write_bytes(b"x" * 50_000_001)
    with pytest.raises(InputError, match="larger than 50,000,000 bytes"):
        run(edit(workspace), path="large", old="x", new="y", all=True)
    run(write(workspace), path="large", content="small")
    assert (workspace.root / "large").read_text() == "small"


def test_a_file_that_is_replaced_keeps_its_mode(workspace):
    path = workspace.root / "run.sh"
    path.write_text("one")
    path.chmod(0o751)
    run(write(workspace), path="run.sh", content="two")
    assert path.stat().st_mode & 0o7777 == 0o751
    before = os.umask(0o027)
    try:
        run(write(workspace), path="new/file", content="x")
    finally:
        os.umask(before)
    assert (workspace.root / "new/file").stat().st_mode & 0o777 == 0o640


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "f"
    path.write_text("before")

    def halves(file):
        file.write(b"half")
        raise ValueError

    with pytest.raises(ValueError), written(path) as file:
        halves(file)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="larger than 5 bytes"):
        content(path, 5)
    assert content(path, 6) == b"before"


def test_a_search_is_bounded(workspace):
    (workspace.root / "large").write_text(("x" * 99 + "\n") * 100_000)
    told = run(grep(workspace), pattern="x")
    assert told.count("\n") == 200
    assert "more: narrow the search" in told
    assert run(grep(workspace), pattern="y|x{99}", path="large").startswith("1:xxx")
    assert run(grep(workspace), pattern="nobody wrote this", glob="*") == "No line matches."
    with pytest.raises(InputError, match=r"\S"):
        run(grep(workspace), pattern="(")


def test_files_of_the_folder_are_opened_by_the_workspace_alone():
    """A new reader in the agent goes through `Workspace`, which knows what may be read."""
    allowed = {"demo.py"}  # makes a folder of its own
    direct = {"read_text", "read_bytes", "write_text", "write_bytes"}
    found = []
    for path in sorted(Path(foldline.agent.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in direct
            ):
                found.append(path.name)
    assert set(found) <= allowed


@pytest.mark.parametrize(
    ("before", "after", "size"),
    [("", "new\n" * 20_000, 20_003), ("old\n" * 9_000, "new\n" * 9_000, 18_003), ("", "x" * 1_000_000, 4)],
)
def test_a_change_that_is_asked_for_is_bounded_and_says_how_much_is_left_out(workspace, before, after, size):
    (workspace.root / "f").write_text(before)
    change = write(workspace).asks({"path": "f", "content": after}).change
    assert len(change) < 100_000
    shown = change.splitlines()
    assert shown[0] == "--- a/f"
    if size > 1_000:
        assert len(shown) == 1_001
        assert shown[-1] == f"[… {size - 1_000:,} more lines of the change are not shown]"
    else:
        assert shown[-1].endswith("… [999,501 more characters]")


async def test_what_an_edit_tells_is_bounded(tmp_path):
    async with host_on(
        tmp_path, [call("edit", path="big.csv", old="foo", new="bar", all=True), "Done."]
    ) as host:
        (tmp_path / "work/big.csv").write_text("".join(f"{line},foo\n" for line in range(20_000)))
        await host.prompt("Go.")
        [result] = host.heard.named("result")
        assert result.text.startswith("Changed big.csv")
        assert "characters left out" in result.text
        assert len(result.text) < 65_000
