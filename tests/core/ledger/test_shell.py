"""The shell reader: splitting, folders, effects, and junk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.core.ledger.facts import commands
from foldline.core.ledger.facts.uses import Use
from foldline.core.log.messages import ToolCall


def effects(command: str, cwd: str = "") -> list[tuple[str, str]]:
    return [
        (effect.path, effect.status)
        for step in commands.steps(command, cwd)
        for effect in commands.effects(step)
    ]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rm -rf build 'my file.txt' *.log $X", [("build", "deleted"), ("my file.txt", "deleted")]),
        ("mv a b", [("a", "deleted"), ("b", "created")]),
        ("mv a b c d/", [("a", "deleted"), ("d/a", "created"), ("b", "deleted"), ("d/b", "created"), ("c", "deleted"), ("d/c", "created")]),
        ("git mv src/a.py src/b.py", [("src/a.py", "deleted"), ("src/b.py", "created")]),
        ("git rm --cached a.py", []),
        ("git -C x status", []),
        ("git restore a.py", [("a.py", "modified")]),
        ("git checkout main", []),
        ("cp a.py b.py", [("b.py", "created")]),
        ("touch x.txt", [("x.txt", "created")]),
        ("make 2>&1 | tee -a build.log", [("build.log", "modified")]),
        ("sed -i 's/a/b/' x.py y.py", [("x.py", "modified"), ("y.py", "modified")]),
        ("sed -i '' 's/a/b/' x.py", [("x.py", "modified")]),
        ("sed -i.bak -e 's/a/b/' x.py", [("x.py", "modified")]),
        ("sed -n '1,20p' x.py", [("x.py", "read")]),
        ("perl -pi -e 's/a/b/' x.py", [("x.py", "modified")]),
        ("perl -ne 'print' x.py", []),
        ("head -n 20 x.py; tail -5 y.py", [("x.py", "read"), ("y.py", "read")]),
        ("grep -rn foo src", []),
        ("echo hi > a.txt 2>/dev/null", [("a.txt", "created")]),
        ("echo hi >> a.txt", [("a.txt", "modified")]),
        ("wc -l < a.txt", [("a.txt", "read")]),
        ("cat <<EOF > a.txt\nrm b.txt\nEOF\nrm c.txt", [("a.txt", "created"), ("c.txt", "deleted")]),
        ("cat <<EOF > a.txt\nnever closed", [("a.txt", "created")]),
        ("git commit -m \"$(cat <<'EOF'\nSay \"new <file>\" not > \"old\"\nEOF\n)\" && rm x", [("x", "deleted")]),
        ("cd a && cd b && cat x", [("a/b/x", "read")]),
        ("cd a/b && cat ../x ./y /z ~/w", [("a/x", "read"), ("a/b/y", "read"), ("/z", "read"), ("~/w", "read")]),
        ("cd - && cat x", [("x", "read")]),
        ("FOO=1 sudo env BAR=2 rm x", [("x", "deleted")]),
        ("timeout 30 rm x", [("x", "deleted")]),
        ("rm -- -x", []),
        ("cat x # rm y", [("x", "read")]),
        ("(cd a; cat x)", [("a/x", "read")]),
        ("echo $(cat x) `cat y`", [("x", "read"), ("y", "read")]),
        ("cat \\\n  x", [("x", "read")]),
        ("mv a", []),
        ("mv *.py old/ && mv x .", [("x", "deleted"), ("x", "created")]),
        ("echo oops >&2", []),
        ("sudo", []),
        ("perl -i.bak -e 's/a/b/' x.py", [("x.py", "modified")]),
        ("", []),
        (">", []),
        ("|| && ;;", []),
    ],
)  # fmt: skip
def test_effects(command: str, expected: list[tuple[str, str]]) -> None:
    assert effects(command) == expected


def test_a_folder_given_beside_the_command() -> None:
    assert effects("cat x /y", "/p") == [("/p/x", "read"), ("/y", "read")]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"command": ["bash", "-lc", "ls -la"]}, "ls -la"),
        ({"cmd": ["/bin/zsh", "-c", "x"]}, "x"),
        ({"command": ["git", "status"]}, "git status"),
        ({"input": " make "}, "make"),
        ({"command": "str_replace", "path": "a.py"}, None),
        ({"command": []}, None),
    ],
)
def test_the_line_that_a_call_runs(arguments: dict[str, object], line: str | None) -> None:
    assert Use("e", ToolCall("c", "bash", arguments)).command == line


@pytest.mark.parametrize(
    ("command", "notable"),
    [
        ("ls -la | grep x", False),
        ("cd src && git status && cat a.py", False),
        ("git -C x commit -m y", True),
        ("for f in *.py; do cat $f; done", False),
        ("CI=1 make test", True),
        ("sed -i s/a/b/ x.py", True),
        ("sed -n 1,9p x.py", False),
        ("echo done >> log.txt", True),
    ],
)
def test_what_does_more_than_look_around(command: str, notable: bool) -> None:
    assert commands.is_notable(command) is notable


@pytest.mark.parametrize(
    "junk", ["'" * 20_000, '"' * 20_001, "$(" * 10_000, "`" * 20_001, "\\" * 20_001, "a'" * 10_000, "<" * 20_000,
             "(" * 20_000, "a" * 1_000_000, "<<A\n" * 5_000, "$(cat <<A\n" * 2_000, '"a\\"' * 5_000, "${" * 9_000, " " * 1_000_000]
)  # fmt: skip
def test_junk_comes_to_an_end(junk: str) -> None:
    assert effects(junk) is not None


@given(st.text(alphabet="ab/ '\"\\$()`{}<>|&;\n-.~=*#!EOF"))
def test_never_raises(text: str) -> None:
    assert effects(text) is not None
    assert effects(text, "/p/q") is not None
