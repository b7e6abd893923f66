"""What calls are given: arguments, whatever a tool names them, and the command lines that they run.

Of a command: its simple commands, and what they do to files. Tolerant: no input makes it raise. What is not
understood does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from foldline.core.ledger.text.sentences import word_set
from foldline.core.log.messages import ToolCall


@lru_cache(maxsize=4_096)
def plain(key: str) -> str:
    """Reduce an argument's or a tool's name to its letters and digits, lower case."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def arguments(call: ToolCall) -> dict[str, Any]:
    """Return the call's arguments by plain key; a call that carries bare text has it under "input"."""
    if isinstance(call.arguments, str):
        return {"input": call.arguments}
    return by_plain_key(call.arguments)


def by_plain_key(row: Any) -> dict[str, Any]:
    """Return a JSON object with its keys made plain."""
    return {plain(str(key)): value for key, value in row.items()}


def as_list(value: Any) -> list[Any]:
    """Return a JSON list as it is, and of anything else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def rows_of(value: Any, most: int = 200) -> list[dict[str, Any]]:
    """Return the objects in a JSON list with their keys made plain, the first `most` of them."""
    return [by_plain_key(row) for row in as_list(value)[:most] if isinstance(row, dict)]


def strings(value: Any, depth: int = 4) -> Iterator[str]:
    """Yield the strings in a JSON value, to a depth."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]  JSON has no narrower type
            yield from strings(inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from strings(inner, depth - 1)


# ---- a command line


HEREDOC = 100  # characters of a heredoc by which two runs are compared
CUT = 400  # characters at the end of a command in which a pipe that cuts its output is looked for
SCANNED = 20_000  # characters of one command that are read; a longer one is data

_KEYS = ("command", "cmd", "commandline", "shellcommand", "script", "bashcommand", "argv", "commands")
_SHELL_NAME = re.compile(r"bash|shell|terminal|exec|^run|command|console|process")
_FOLDER_KEYS = ("workdir", "cwd", "workingdirectory", "dirpath", "directory", "workingdir")
_EDITOR = word_set("view create strreplace insert undoedit read write edit delete append replace")


class Touch(msgspec.Struct, frozen=True):
    """One thing done to one file by one call: it was read, created, modified or deleted (or `moved` to)."""

    path: str
    status: str
    moved: str = ""


class Step(msgspec.Struct, frozen=True):
    """One simple command: its words from the program's name on, files it writes, the folder it runs in."""

    words: tuple[str, ...]
    into: tuple[Touch, ...] = ()
    cwd: str = ""

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.words[0].rpartition("/")[2] if self.words else ""


def command_in(call: ToolCall, args: dict[str, Any]) -> str | None:
    """Return the command line that a call runs in a shell; None where it runs none."""
    named = _SHELL_NAME.search(plain(call.name))
    for key in _KEYS:
        text = _line(args.get(key)).strip()
        if text and plain(text) not in _EDITOR and (key != "commands" or named):
            return text
    alone = _line(args.get("input")).strip() if named and len(args) == 1 else ""
    return alone or None


def _line(value: Any) -> str:
    """Return a command line from a string or an argument list: of the latter the text after `bash -lc`."""
    if isinstance(value, str):
        return value
    words = [word for word in as_list(value) if isinstance(word, str)]
    return words[2] if len(words) > 2 and re.fullmatch(r"-\w*c", words[1]) else " ".join(words)


def folder_beside(args: dict[str, Any]) -> str:
    """Return the folder argument of a command; "" for none."""
    return next((value for key in _FOLDER_KEYS if isinstance(value := args.get(key), str)), "").rstrip("/")


def changes_files(step: Step) -> bool:
    """Whether a step changes a file; redirected output does not count."""
    written = step.into if step.name in ("cat", "echo", "printf") else ()
    done = () if step.name in ("tee", "touch") else _by_name(step)
    return any(
        touch.status != "read" and _is_file(touch.path) and not touch.path.startswith("/tmp/")  # noqa: S108
        for touch in (*done, *written)
    )


# ---- a line into simple commands

_QUOTED = r"'[^']*+'|\"(?:\\.|[^\"\\])*+\""
_HEREDOC = re.compile(
    r"<<-?[ ]*(['\"]?)(\w+)\1([^\n]*)(?:\n(.*?)(?:^[ \t]*\2\b|\Z)|\Z)", re.DOTALL | re.MULTILINE
)
_TOKEN = re.compile(
    rf"(?P<skip>(?<![^\s;&|(])\#[^\n]*|\\\n|\d?>&\d?|<)|(?P<into>[\d&]?>>?\|?)|(?P<cut>[;&|()`\n]+)"
    rf"|(?P<word>(?:{_QUOTED}|\\.|[^\s;&|<>()`'\"\\])+)",
    re.DOTALL,
)
_BEFORE = re.compile(
    r"[A-Za-z_]\w*=.*|sudo|time|nohup|command|exec|env|nice|rtk|xargs|builtin|then|do|else|if|while|!|\{|\d+|timeout",
    re.DOTALL,
)  # words before a program's name


@lru_cache(maxsize=256)
def steps(line: str, cwd: str = "") -> tuple[Step, ...]:
    """Split a command line into its simple commands, `cd` followed."""
    found: list[Step] = []
    words: list[str] = []
    into: list[Touch] = []
    writes = ""
    for token in (*_TOKEN.finditer(_HEREDOC.sub(r"\3 ", line[:SCANNED])), None):
        kind, text = (token.lastgroup, token.group()) if token is not None else ("cut", "")
        if kind == "into":
            writes = "modified" if ">>" in text else "created"
        elif kind == "word":
            word = re.sub(r"\\(.)|['\"]", r"\1", text)
            if writes:
                into.append(Touch(word, writes))
            elif words or not _BEFORE.fullmatch(word):
                words.append(word)
            writes = ""
        elif kind == "cut":
            if words or into:
                found.append(Step(tuple(words), tuple(into), cwd))
            if words[1:] and words[0] in ("cd", "pushd") and not re.search(r"[$*-]\Z|\$", words[-1]):
                cwd = join(cwd, words[-1])
            words, into, writes = [], [], ""
    return tuple(found)


def join(cwd: str, path: str) -> str:
    """Join a path to the folder that it is relative to, dots resolved."""
    absolute = not cwd or path.startswith(("/", "~")) or path[1:2] == ":"
    parts: list[str] = []
    for part in (path if absolute else f"{cwd}/{path}").split("/"):
        if part == ".." and parts and parts[-1] not in ("", "..", "~"):
            parts.pop()
        elif part not in (".", "") or not (part or parts):
            parts.append(part)
    return "/".join(parts) or path


# ---- what simple commands do

_DOES = {
    **dict.fromkeys(("cat", "head", "tail", "less", "more", "bat", "nl", "wc", "tac", "sed"), "read"),
    **dict.fromkeys(("rm", "unlink", "trash"), "deleted"),
    **dict.fromkeys(("touch", "tee"), "created"),
    **dict.fromkeys(("cp", "mv", "restore", "checkout"), "modified"),
}
_TRIVIAL = word_set(
    "ls ll la pwd cat head tail less more bat nl wc which whoami date true clear type file stat tree find fd "
    "grep rg ag ack egrep fgrep zgrep jq echo printf sleep read history env printenv id uname sed awk cut "
    "sort uniq tr diff cmp dirname basename realpath readlink man test [ : exit export set cd pushd popd "
    "source . column xxd od strings du df ps top lsof kill pkill wait local for done fi }"
)
_TRIVIAL_GIT = word_set(
    "status log diff show branch blame rev-parse ls-files remote config describe grep reflog"
)


def git_verb(step: Step) -> str:
    """Return the git subcommand; "" for another program."""
    words = step.words[1:] if step.name == "git" else ()
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in ("-C", "-c") else 1 :]
    return words[0] if words else ""


def is_notable(command: str) -> bool:
    """Whether a command does more than look around."""
    return any(
        (git_verb(step) or "status") not in _TRIVIAL_GIT
        or (step.name not in _TRIVIAL and step.name not in ("", "git"))
        or any(touch.status not in ("read", "created") for touch in effects(step))
        for step in steps(command)
    )


def effects(step: Step) -> Iterator[Touch]:
    """Yield what a step does to files, by the programs that name them."""
    for touch in (*_by_name(step), *step.into):
        if _is_file(touch.path):
            moved = join(step.cwd, touch.moved) if touch.moved else ""
            yield Touch(join(step.cwd, touch.path), touch.status, moved)


def _by_name(step: Step) -> Iterator[Touch]:
    verb = git_verb(step)
    name = verb or step.name
    words = step.words[step.words.index(verb) + 1 :] if verb else step.words[1:]
    if verb == "checkout":  # of files only: any other word is a branch
        words = words[words.index("--") + 1 :] if "--" in words else ()
    files = [word for word in words if _is_file(word)]
    in_place = name in ("sed", "perl") and any(re.match(r"-\w*i", word) for word in words)
    if in_place or (name == "tee" and "-a" in words):
        yield from (Touch(path, "modified") for path in files)
    elif name in ("mv", "cp"):
        yield from _carried(files, words[-1:], moved=name == "mv")
    elif name in _DOES and not {"--cached", "--staged"} & {*words}:
        yield from (Touch(path, _DOES[name]) for path in files)


def _carried(files: list[str], last: Sequence[str], *, moved: bool) -> Iterator[Touch]:
    """Yield what a move or a copy to the last word does."""
    target = "".join(last)
    sources = [path for path in files if path != target]
    folder = len(sources) > 1 or target.endswith(("/", "."))
    for source in sources:
        name = source.rstrip("/").rpartition("/")[2]
        place = f"{target.rstrip('/')}/{name}" if folder else target
        if moved:
            yield Touch(source, "deleted", place)
        yield Touch(place, "created")


_NO_FILE = re.compile(
    r"[$*?`\n\"'|<>{}\\=(),;!]|^[-&]|^\d+\w?$|://|\s{2}|^\s|\s$|^s([/#|]).*\1.*\1\w*$|^/(?:dev|proc)/"
)


def _is_file(word: str) -> bool:
    """Whether a word can be the name of one file: no flag, variable, pattern, number, device or code."""
    return 1 <= len(word) <= 300 and not _NO_FILE.search(word) and any(letter.isalnum() for letter in word)


# ---- two runs of one command

_LEADING_FOLDER = re.compile(r"cd\s+('[^']*'|\"[^\"]*\"|[^\s;&|'\"]+)\s*(?:&&|;|\n)\s*")
_OUTPUT_CUT = re.compile(
    r" ?(?:2>&1)? ?(?:\| ?(?:head|tail|grep|rg|less|cat)\b(?:[^|;&'\"]|'[^']*'|\"[^\"]*\")*)?\Z"
)


@lru_cache(maxsize=1_024)
def normal(command: str, cwd: str = "") -> tuple[str, str]:
    """Return the folder a command runs in, and the command as two runs of it are equal.

    `cwd` is its folder argument; a leading `cd` is followed. A pipe that cuts its output is left
    out, and of a heredoc its two ends stay.
    """
    short = command[:SCANNED].replace("\\\n", " ").strip()
    while (moved := _LEADING_FOLDER.match(short)) is not None:
        cwd, short = join(cwd, moved[1].strip("'\"")), short[moved.end() :]
    short = " ".join(_HEREDOC.sub(_heredoc, short).split())
    for _ in range(3):
        short = short[:-CUT] + _OUTPUT_CUT.sub("", short[-CUT:])
    return "" if cwd == "." else cwd.rstrip("/"), short.strip()


def _heredoc(found: re.Match[str]) -> str:
    return f"<<…{found[3]} {middle_out(' '.join((found[4] or '').split()), HEREDOC)}\n"


def middle_out(text: str, most: int) -> str:
    """Return the two ends of a text that is longer than `most` characters, in whole lines or words."""
    text = text.strip()
    if len(text) <= most:
        return text
    head, tail = text[: most * 2 // 3], text[-most // 3 :]
    if "\n" in head and "\n" in tail:
        return f"{head.rpartition(chr(10))[0].rstrip()}\n[…]\n{tail.partition(chr(10))[2]}"
    head, tail = head.rpartition(" ")[0] or head, tail.partition(" ")[2] or tail
    return f"{head.rstrip()} … {tail.lstrip()}"
