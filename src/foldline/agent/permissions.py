"""What tools may do without asking: rules that allow, rules that deny, and somebody to ask.

A rule names a tool, or a tool and what it may be used for: `write`, `write:docs/*`, `bash:git status*`, `*`.
Deny goes before allow, and holds for tools that need no permission, too.

A pattern for `bash` is compared with commands, and only a line of plain words is known to be commands: words
without a character that a shell reads otherwise, or in quotes, with `;`, `&&`, `||` and `|` between them. It
allows a line where each of its commands is allowed. A line that is not plain, or in which the words of a
denied command stand anywhere, is asked for. What a program or a script does then is not looked into.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

Answer = Literal["once", "always", "no"]
SHOWN: Final = 500  # characters of what a tool is used for that a refusal names

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
    """Decides whether a tool may do something; with nobody to `ask`, what no rule allows is refused."""

    def __init__(
        self, *, allow: Sequence[str] = (), deny: Sequence[str] = (), ask: FoldRequest | None = None
    ) -> None:
        self.allow = list(allow)
        self.deny = list(deny)
        self.ask = ask

    async def refused(self, request: PermissionRequest) -> str | None:
        """Return why it may not be done, in words for the model; None where it may."""
        if (why := self.denied(request)) is not None:
            return why
        line = _line_of(request)
        unsure = line is not None and any(map(line.may_hold, _patterns(self.deny, request)))
        allowed = _patterns(self.allow, request)
        if not unsure and _is_allowed(allowed, request.detail, line):
            return None
        if self.ask is None:
            return (
                f"Permission denied: nobody is there to be asked for {request.tool}. "
                f"The user can allow it with --allow {shlex.quote(rule_for(request))}."
            )
        answer = await self.ask(request)
        if answer == "always":
            self.allow.append(rule_for(request))
        return (
            "The user said no to this. Ask what to do instead, or go another way." if answer == "no" else None
        )

    def denied(self, request: PermissionRequest) -> str | None:
        """Return why a rule denies it, in words for the model; None where none does."""
        line = _line_of(request)
        if not any(_is_denied(one, request.detail, line) for one in _patterns(self.deny, request)):
            return None
        of = f" of {request.detail[:SHOWN]!r}" if request.detail else ""
        return f"The user's settings deny {request.tool}{of}."

    def may_read(self, path: str) -> bool:
        """Return whether no rule denies reading a file; `path` is as tools show it."""
        return self.denied(PermissionRequest("read", path)) is None


class _Line:
    """A shell line, and its commands where it is plain, each as its words; None where it is not."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.commands = commands(text)

    def is_all(self, patterns: Sequence[str]) -> bool:
        """Whether each command of a plain line fits one of the patterns, and is no assignment or keyword."""
        return self.commands is not None and all(
            "=" not in words[0]
            and words[0] not in _KEYWORDS
            and any(fnmatchcase(_spelt(words), pattern) for pattern in patterns)
            for words in self.commands
        )

    def is_any(self, pattern: str) -> bool:
        """Whether a command fits the pattern, assignments before it left out."""
        return any(
            fnmatchcase(" ".join(words[at:]), pattern)
            for words in self.commands or ()
            for at in range(_assigned(words) + 1)
        )

    def may_hold(self, pattern: str) -> bool:
        """Whether a line may run what a pattern names: it is not plain, or has all of its words."""
        if self.commands is None:
            return True
        return _holds(pattern, [word for words in self.commands for one in words for word in one.split()])


def _line_of(request: PermissionRequest) -> _Line | None:
    return _Line(request.detail) if request.tool == "bash" else None


def _patterns(rules: Iterable[str], request: PermissionRequest) -> list[str]:
    """Return what rules for a tool say of its use."""
    return [pattern for tool, pattern in map(_parts, rules) if fnmatchcase(request.tool, tool)]


def _is_denied(pattern: str, detail: str, line: _Line | None) -> bool:
    return fnmatchcase(detail, pattern) or (line is not None and line.is_any(pattern))


def _is_allowed(patterns: Sequence[str], detail: str, line: _Line | None) -> bool:
    if line is None:
        return any(fnmatchcase(detail, pattern) for pattern in patterns)
    return "*" in patterns or literal(detail) in patterns or line.is_all(patterns)


def _spelt(words: Iterable[str]) -> str:
    """Spell a command in one way: a word with a blank or a quote in it, or an empty one, in quotes."""
    return " ".join(word if re.fullmatch(r"[^\s'\"]+", word) else shlex.quote(word) for word in words)


def _assigned(words: Sequence[str]) -> int:
    """Count the assignments before a command."""
    return next((at for at, word in enumerate(words) if not re.match(r"\w+\+?=", word)), len(words))


def _holds(pattern: str, words: Sequence[str]) -> bool:
    """Whether each word of a pattern stands somewhere among words: `echo push | xargs git` pushes, too."""
    bare = {*words, *(word.rpartition("/")[2] for word in words)}
    return all(any(fnmatchcase(word, one) for word in bare) for one in pattern.split())


def rule_for(request: PermissionRequest) -> str:
    """Return the rule that allows it from now on: this very command, or the tool on any file."""
    return f"bash:{literal(request.detail)}" if request.tool == "bash" else request.tool


def literal(text: str) -> str:
    """Return a pattern that matches this text alone."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in text)


def commands(line: str) -> list[list[str]] | None:
    """Return the commands of a plain line, each as its words; None where a shell could read more into it."""
    if not line.replace("\t", " ").isprintable():
        return None
    found: list[list[str]] = [[]]
    at, end = 0, len(line.rstrip(" \t"))
    while at < end:
        token = _TOKEN.match(line, at)
        if token is None:
            return None
        if token["cut"]:
            found.append([])
        else:
            found[-1].append(re.sub(r"'([^']*)'|\"([^\"]*)\"", r"\1\2", token["word"]))
        at = token.end()
    return found if all(found) else None


def _parts(rule: str) -> tuple[str, str]:
    tool, colon, pattern = rule.partition(":")
    return tool, pattern if colon else "*"
