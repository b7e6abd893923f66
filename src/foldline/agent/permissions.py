"""What tools may do without asking: rules that allow, rules that deny, and somebody to ask.

A rule names a tool, or a tool and what it may be used for: `write`, `write:docs/*`, `bash:git status*`, `*`.
Deny goes before allow. A rule for `bash` that names a command allows a line only where each command of it is
allowed, and never one that substitutes or redirects.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

Answer = Literal["once", "always", "no"]
ALONE = frozenset((";", "&", "&&", "|", "||", ";;", "|&"))
UNSURE = ("$(", "`", "<(", ">(", "\n", "\r")


class PermissionRequest(msgspec.Struct, frozen=True):
    """What a tool wants to do: the tool, its command or path, and what would change, as a diff."""

    tool: str
    detail: str
    change: str = ""


Ask = Callable[[PermissionRequest], Awaitable[Answer]]


class Permissions:
    """Decides whether a tool may do something; with nobody to `ask`, what no rule allows is refused."""

    def __init__(
        self, *, allow: Sequence[str] = (), deny: Sequence[str] = (), ask: Ask | None = None
    ) -> None:
        self.allow = list(allow)
        self.deny = list(deny)
        self.ask = ask

    async def refused(self, request: PermissionRequest) -> str | None:
        """Return why it may not be done, in words for the model; None where it may."""
        if any(self._hits(rule, request) for rule in self.deny):
            return f"The user's settings deny {request.tool} of {request.detail!r}."
        if any(self._covers(rule, request) for rule in self.allow):
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

    def _covers(self, rule: str, request: PermissionRequest) -> bool:
        tool, pattern = _parts(rule)
        if not fnmatchcase(request.tool, tool):
            return False
        if pattern == "*":
            return True
        if request.tool != "bash":
            return fnmatchcase(request.detail, pattern)
        parts = commands(request.detail)
        return parts is not None and all(fnmatchcase(part, pattern) for part in parts)

    def _hits(self, rule: str, request: PermissionRequest) -> bool:
        tool, pattern = _parts(rule)
        if not fnmatchcase(request.tool, tool):
            return False
        parts = commands(request.detail) if request.tool == "bash" else None
        return any(fnmatchcase(part, pattern) for part in (request.detail, *(parts or ())))


def rule_for(request: PermissionRequest) -> str:
    """Return the rule that allows it from now on: this very command, or the tool on any file."""
    return f"bash:{literal(request.detail)}" if request.tool == "bash" else request.tool


def literal(text: str) -> str:
    """Return a pattern that matches this text alone."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in text)


def commands(line: str) -> list[str] | None:
    """Return the commands of a shell line; None where it cannot be told what would run."""
    if any(mark in line for mark in UNSURE):
        return None
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word in ALONE:
                found.append([])
            elif set(word) <= set("<>&|;()"):
                return None
            else:
                found[-1].append(word)
    except ValueError:
        return None
    return [line] if len(found) == 1 else [" ".join(words) for words in found if words]


def _parts(rule: str) -> tuple[str, str]:
    tool, colon, pattern = rule.partition(":")
    return tool, pattern if colon else "*"
