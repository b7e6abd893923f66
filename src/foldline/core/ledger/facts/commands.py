"""Shell commands: which line a call runs, in which folder, and whether it does more than look around."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from foldline.core.ledger.facts import shell
from foldline.core.ledger.facts.calls import Use, arguments, as_list, plain
from foldline.core.ledger.text.sentences import word_set
from foldline.core.log.messages import ToolCall

COMMAND = 400  # characters of a command by which two runs of it are compared
AT_HOME = 0.4  # share of the commands that run in a directory from which it is the home of all

_COMMAND_KEYS = ("command", "cmd", "commandline", "shellcommand", "script", "bashcommand", "argv", "commands")
_SHELL_NAME = re.compile(r"bash|shell|terminal|exec|^run|command|powershell|console|process")
_FOLDER_KEYS = ("workdir", "cwd", "workingdirectory", "dirpath", "directory", "workingdir")
_NOT_SHELL = word_set("view create strreplace insert undoedit read write edit delete append replace")
_TRIVIAL = word_set(
    "ls ll la pwd cat head tail less more bat nl wc which whoami date true clear type file stat tree find "
    "fd grep "
    "rg ag ack egrep fgrep zgrep jq echo printf sleep read history env printenv id uname sed awk cut sort "
    "uniq tr "
    "diff cmp dirname basename realpath readlink man Get-Content Get-ChildItem Select-String test [ : exit "
    "export "
    "set cd pushd popd source . column xxd od strings du df ps top lsof kill pkill wait local"
)
_TRIVIAL_GIT = word_set(
    "status log diff show branch blame rev-parse ls-files remote config describe grep reflog"
)
_LEADING_FOLDER = re.compile(r"^cd\s+(?:'[^']*'|\"[^\"]*\"|[^\s;&|]+)\s*(?:&&|;|\n)\s*")
_HOME = re.compile(r"cd\s+(?:'([^']*)'|\"([^\"]*)\"|([^\s;&|]+))\s*&&")
_OUTPUT_CUT = re.compile(
    r"\s*(?:2>&1)?\s*(?:\|\s*(?:head|tail|grep|rg|less|cat)\b(?:[^|;&'\"]|'[^']*'|\"[^\"]*\")*)?\Z"
)


def _text_of(value: Any) -> str | None:
    """Return a command line from a string or an argument list."""
    if isinstance(value, str):
        return value
    items = as_list(value)
    if items and all(isinstance(item, str) for item in items):
        return shell.script(items)
    return None


def command_of(call: ToolCall) -> str | None:
    """Return the command line that a call runs in a shell, or None where it runs none."""
    name = plain(call.name)
    args = arguments(call)
    for key in _COMMAND_KEYS:
        text = _text_of(args.get(key))
        if not text or not text.strip() or plain(text) in _NOT_SHELL:
            continue
        if key != "commands" or _SHELL_NAME.search(name):
            return text.strip()
    if _SHELL_NAME.search(name) and isinstance(args.get("input"), str) and len(args) == 1:
        return str(args["input"]).strip() or None
    return None


def command_in(use: Use) -> str | None:
    """Return the command line of a use, worked out once."""
    if "command" not in use.known:
        use.known["command"] = command_of(use.call)
    return use.known["command"]


def folder_of(call: ToolCall) -> str:
    """Return the folder that the call says it runs in, or ""."""
    args = arguments(call)
    return next((value for key in _FOLDER_KEYS if isinstance(value := args.get(key), str)), "").rstrip("/")


def is_notable(command: str) -> bool:
    """Whether a command does more than look around."""
    for step in shell.steps(command):
        words = shell.bare(step.words)
        if not words:
            continue
        name = words[0].rsplit("/", 1)[-1]
        if name == "git":
            if not _TRIVIAL_GIT.issuperset(shell.git_words(words)[:1]):
                return True
        elif name not in _TRIVIAL or any(
            effect.status not in ("read", "created") for effect in shell.effects(step)
        ):
            return True
    return False


def home(calls: Iterable[Use]) -> str:
    """Return the directory in which most commands ran, with its last slash; "" where there is none."""
    found: Counter[str] = Counter()
    total = 0
    for use in calls:
        command = command_in(use)
        if command is None:
            continue
        match = _HOME.match(command)
        folder = "".join(filter(None, match.groups())) if match else folder_of(use.call)
        total += 1
        found[folder.rstrip("/")] += 1
    place, times = next(
        ((place, times) for place, times in found.most_common(2) if place.startswith("/")), ("", 0)
    )
    return f"{place}/" if times >= AT_HOME * max(1, total) else ""


@lru_cache(maxsize=1_024)
def normal(command: str) -> str:
    """Return a command as two runs of it are equal: no `cd` before it, no pipe that cuts its output."""
    short = _LEADING_FOLDER.sub("", command[:COMMAND].strip())
    for _ in range(3):
        short = _OUTPUT_CUT.sub("", short)
    return " ".join(short.split())
