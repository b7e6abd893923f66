"""What calls took out of files and put in its place: pairs of old and new text, however they were given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from foldline.core.ledger.facts.calls import Use, arguments, as_list, by_plain_key, plain, rejected, strings
from foldline.core.ledger.facts.commands import command_in, folder_of
from foldline.core.ledger.facts.files import NEW, OLD, WHOLE, paths_in, status_of
from foldline.core.ledger.facts.patches import is_patch
from foldline.core.ledger.text import names, shell

LONGEST = 100_000  # characters of one text that are read

_VALUES = ("number", "id", "url")
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)|\+\+\+ (?:b/)?([^\t\n]+)|--- (?:a/)?([^\t\n]+)")
_SUBSTITUTION = re.compile(r"(?:^|[;\s])s([/#|,@!])((?:\\.|(?!\1).)+)\1((?:\\.|(?!\1).)*)\1")
_SPECIAL = re.compile(r"(?<!\\)[*\[\]^$]|\\[(){}+?|<>bwsd1-9]")


class FileEdit(msgspec.Struct, frozen=True):
    """One replacement: `old` stood in the file at `path` (its key) and `new` does now, lines as written.

    `whole` means that all of the file was replaced by `new`, whatever stood in it. `shown` means that a
    result showed the change, whoever made it. `old` of a whole file is what it was written with, or "".
    """

    path: str
    old: str
    new: str
    entry: str
    whole: bool = False
    shown: bool = False


def edits(calls: Iterable[Use]) -> tuple[FileEdit, ...]:
    """Take the replacements from calls that worked, in order."""
    found: list[FileEdit] = []
    known: dict[str, str] = {}  # what is known to stand in a file that was written whole
    for use in calls:
        if use.result is None or use.passed is False or rejected(use.result):
            continue
        for path, old, new, whole in _made(use):
            key = names.path_key(path)
            before = known.get(key, "")
            found.append(FileEdit(key, before if whole else old[:LONGEST], new[:LONGEST], use.entry, whole))
            if whole or before:
                known[key] = new[:LONGEST] if whole else before.replace(old, new)[:LONGEST]
        text = use.result.text
        if "\n@@ -" in text and "\n+++ " in text:
            for path, old, new, _ in _patched(text[:LONGEST]):
                found.append(FileEdit(names.path_key(path), old, new, use.answered_in, shown=True))
    return tuple(edit for edit in found if edit.whole or edit.old != edit.new)


def _made(use: Use) -> Iterator[tuple[str, str, str, bool]]:
    """Yield (path, old, new, whole file) of one call."""
    args = arguments(use.call)
    patch = next((text for text in strings(args) if is_patch(text)), None)
    command = command_in(use)
    if patch is not None:
        yield from _patched(patch[:LONGEST])
    elif command is not None:
        for step in shell.steps(command, folder_of(use.call)):
            yield from _stepped(step)
    else:
        yield from _shaped(plain(use.call.name), args)


def _patched(patch: str) -> Iterator[tuple[str, str, str, bool]]:
    """Yield what a patch does to each file: the lines that it takes out and those that it puts in."""
    path, old, new = "", list[str](), list[str]()
    for line in patch.split("\n"):
        header = _FILE.match(line)
        if header:
            if old and path:
                yield path, "\n".join(old), "\n".join(new), False
            old, new = [], []
            path = next((part for part in header.groups()[1:] if part and part != "/dev/null"), path).strip()
            if header.group(1) == "Delete":
                yield path, "", "", True
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
    if old and path:
        yield path, "\n".join(old), "\n".join(new), False


def _stepped(step: shell.ShellStep) -> Iterator[tuple[str, str, str, bool]]:
    """Yield what one shell command does: files that are gone, and literal substitutions in place."""
    words = shell.bare(step.words)
    changed = [effect for effect in shell.effects(step) if effect.status in ("modified", "deleted")]
    if words and words[0].rsplit("/", 1)[-1] in ("sed", "gsed", "perl"):
        pairs = [pair for word in words[1:] for pair in _substitutions(word)]
        for effect in changed:
            for old, new in pairs:
                yield effect.path, old, new, False
        return
    for effect in changed:
        if effect.status == "deleted":
            yield effect.path, "", "", True


def _substitutions(script: str) -> Iterator[tuple[str, str]]:
    """Yield the (old, new) of substitutions whose pattern is plain text."""
    for _, old, new in _SUBSTITUTION.findall(script):
        if not _SPECIAL.search(old) and not re.search(r"(?<!\\)&|\\[0-9n]", new):
            yield re.sub(r"\\(.)", r"\1", old), re.sub(r"\\(.)", r"\1", new)


def _shaped(name: str, args: Mapping[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield what a call does that names its files in its arguments."""
    status = status_of(name, dict(args))
    pairs = [_pair(args)]
    for value in args.values():
        rows = as_list(value)[:100]
        pairs.extend(_pair(by_plain_key(row)) for row in rows if isinstance(row, dict))
    content = next((value for key in WHOLE if isinstance(value := args.get(key), str)), "")
    for path in paths_in(dict(args)) if status in ("modified", "created", "deleted") else ():
        yield from ((path, old, new, False) for old, new in pairs if old)
        if status == "deleted" or (status == "created" and content):
            yield path, "", content, True


def _pair(args: Mapping[str, Any]) -> tuple[str, str]:
    """Return the old and the new text that arguments give."""
    old = next((value for key in OLD if isinstance(value := args.get(key), str)), "")
    new = next((value for key in (*NEW, "new") if isinstance(value := args.get(key), str)), "")
    return old, new


def replaced_values(edits: Sequence[FileEdit]) -> frozenset[str]:
    """Return ids, URLs and numbers that edits took out and none put back."""
    gone: set[str] = set()
    for edit in edits:
        before, now = _values(edit.old), _values(edit.new)
        gone = (gone | (before - now)) - now
    return frozenset(gone)


def introduced_values(edits: Sequence[FileEdit]) -> frozenset[str]:
    """Return ids, URLs and numbers that took another's place in an edit."""
    found: set[str] = set()
    for edit in edits:
        if not edit.whole:
            before, now = _values(edit.old), _values(edit.new)
            found |= now - before if before - now else set()
    return frozenset(found)


def _values(text: str) -> set[str]:
    return {name.text for name in names.find(text) if name.kind in _VALUES}
