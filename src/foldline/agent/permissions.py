"""What tools may do: rules that allow, rules that deny, and a callback that asks the user.

A rule names a tool, optionally with a pattern for its use: `write`, `write:docs/*`, `bash:git status*`, `*`.
Deny goes before allow, and also applies to tools that need no permission.

A pattern for `bash` is compared with commands, and only a plain line can be split into commands: words
without characters that are special to a shell, or quoted words, joined by `;`, `&&`, `||` and `|`. A line is
allowed if each of its commands is. The user is asked about a line that is not plain, or that holds the words
of a denied command anywhere. What a program or a script does is not checked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

Answer = Literal["once", "always", "no"]
SHOWN: Final = 500  # characters of the detail in a refusal

_QUOTED = r"""'[^'$`\\]*'|"[^"$`\\!]*\""""
_BARE = r"""[^\s'"\\$`;&|<>()\[\]{}*?!#~]|(?<=[\w@^])[~#]"""
_TOKEN = re.compile(rf"[ \t]*(?:(?P<cut>&&|\|\||[;|])|(?P<word>(?:{_BARE}|{_QUOTED})+))")
_KEYWORDS = {
    *("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select"),
    *("function", "time", "coproc", "in", "[[", "]]"),
}


class PermissionRequest(msgspec.Struct, frozen=True):
    """What a tool wants to do: the tool, its command or path, and what would change, as a diff."""

    tool: str
    detail: str
    change: str = ""


FoldRequest = Callable[[PermissionRequest], Awaitable[Answer]]


class Permissions:
    """Decides whether a tool may do something; without `ask`, whatever no rule allows is refused."""

    def __init__(
        self, *, allow: Sequence[str] = (), deny: Sequence[str] = (), ask: FoldRequest | None = None
    ) -> None:
        self.allow = list(allow)
        self.deny = list(deny)
        self.ask = ask

    async def refused(self, request: PermissionRequest) -> str | None:
        """Return why a request is refused, as text for the model; None if it is allowed."""
        if (why := self.denied(request)) is not None:
            return why
        patterns, line = _patterns(self.allow, request), _line_of(request)
        if line is None:
            allowed = any(fnmatchcase(request.detail, pattern) for pattern in patterns)
        elif any(map(line.may_run, _patterns(self.deny, request))):
            allowed = False
        else:
            allowed = "*" in patterns or literal(request.detail) in patterns or line.all_match(patterns)
        if allowed:
            return None
        if self.ask is None:
            return (
                f"Permission denied: there is no user to ask about {request.tool}. "
                f"The user can allow it with --allow {shlex.quote(rule_for(request))}."
            )
        answer = await self.ask(request)
        if answer == "always":
            self.allow.append(rule_for(request))
        return (
            "The user refused this. Ask what to do instead, or try another way." if answer == "no" else None
        )

    def denied(self, request: PermissionRequest) -> str | None:
        """Return which rule denies a request, as text for the model; None if none does."""
        line = _line_of(request)
        if not any(
            fnmatchcase(request.detail, pattern) or (line is not None and line.any_matches(pattern))
            for pattern in _patterns(self.deny, request)
        ):
            return None
        of = f" of {request.detail[:SHOWN]!r}" if request.detail else ""
        return f"The user's settings deny {request.tool}{of}."

    def may_read(self, path: str) -> bool:
        """Return whether no rule denies reading a file; `path` is as tools show it."""
        return self.denied(PermissionRequest("read", path)) is None


class _Line:
    """A shell line and its commands, each a list of words; None if the line is not plain."""

    def __init__(self, text: str) -> None:
        self.commands = commands(text)

    def all_match(self, patterns: Sequence[str]) -> bool:
        """Return whether each command of a plain line matches a pattern and is no assignment or keyword."""
        return self.commands is not None and all(
            "=" not in words[0]
            and words[0] not in _KEYWORDS
            and any(fnmatchcase(_join(words), pattern) for pattern in patterns)
            for words in self.commands
        )

    def any_matches(self, pattern: str) -> bool:
        """Return whether a command matches the pattern, with or without its leading assignments."""
        return any(
            fnmatchcase(" ".join(words[start:]), pattern)
            for words in self.commands or ()
            for start in range(_assignments(words) + 1)
        )

    def may_run(self, pattern: str) -> bool:
        """Return whether a line may run what a pattern denies: `echo push | xargs git` pushes, too.

        It may if it is not plain, or has all words of the pattern, anywhere.
        """
        if self.commands is None:
            return True
        words = {word for command in self.commands for part in command for word in part.split()}
        words |= {word.rpartition("/")[2] for word in words}
        return all(any(fnmatchcase(word, part) for word in words) for part in pattern.split())


def _line_of(request: PermissionRequest) -> _Line | None:
    return _Line(request.detail) if request.tool == "bash" else None


def _patterns(rules: Iterable[str], request: PermissionRequest) -> list[str]:
    """Return the patterns of the rules for the tool of a request."""
    parts = (rule.partition(":") for rule in rules)
    return [pattern if colon else "*" for tool, colon, pattern in parts if fnmatchcase(request.tool, tool)]


def _join(words: Iterable[str]) -> str:
    """Join the words of a command, with quotes around those that are empty or hold a blank or a quote."""
    return " ".join(word if re.fullmatch(r"[^\s'\"]+", word) else shlex.quote(word) for word in words)


def _assignments(words: Sequence[str]) -> int:
    return next((n for n, word in enumerate(words) if not re.match(r"\w+\+?=", word)), len(words))


def rule_for(request: PermissionRequest) -> str:
    """Return a rule that always allows a request: this exact command, or the tool for any file."""
    return f"bash:{literal(request.detail)}" if request.tool == "bash" else request.tool


def literal(text: str) -> str:
    """Return a pattern that matches only this text."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in text)


def commands(line: str) -> list[list[str]] | None:
    """Return the commands of a plain line, each a list of words; None if the line is not plain."""
    if not line.replace("\t", " ").isprintable():
        return None
    found: list[list[str]] = [[]]
    position, end = 0, len(line.rstrip(" \t"))
    while position < end:
        token = _TOKEN.match(line, position)
        if token is None:
            return None
        if token["cut"]:
            found.append([])
        else:
            found[-1].append(re.sub(r"'([^']*)'|\"([^\"]*)\"", r"\1\2", token["word"]))
        position = token.end()
    return found if all(found) else None
