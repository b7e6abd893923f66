"""What a call does to files, told by the shape of its arguments, whatever the tool is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from foldline.core.ledger.facts import shell
from foldline.core.ledger.facts.calls import Use, arguments, as_list, by_plain_key, plain, strings
from foldline.core.ledger.facts.commands import command_in, folder_of
from foldline.core.ledger.facts.patches import is_patch, patched
from foldline.core.ledger.text.sentences import word_set

_PATH_KEYS = (
    "filepath", "path", "file", "filename", "targetfile", "notebookpath", "absolutepath", "relativepath",
    "relativeworkspacepath", "uri", "documentpath", "filepaths", "paths", "files",
)  # fmt: skip
OLD = word_set("old oldstring oldtext oldstr oldcontent search searchtext find oldlines originaltext")
NEW = word_set(
    "newstring newtext newstr replace replacement replacewith newsource codeedit newlines inserttext "
    "replacementtext diff patch edits insertline changes"
)
WHOLE = word_set("content contents filetext text data body code newcontent filecontent codecontent lines")
_SEARCH = word_set("pattern query regex glob searchpattern includepattern globpattern")
_LISTERS = re.compile(r"grep|glob|search|find|list|^ls$|tree|directory|folder|mkdir|upload|test|lint|diagnos")
_REMOVERS = re.compile(r"delete|remove|^rm$|unlink|trash")
_MOVERS = re.compile(r"move|rename|^mv$|copy|^cp$")
_MOVE_FROM = ("source", "sourcepath", "from", "oldpath", "src", "path", "filepath")
_MOVE_TO = (
    "destination",
    "destinationpath",
    "to",
    "newpath",
    "dest",
    "dst",
    "target",
    "targetpath",
    "newname",
)
_EDITOR_VERBS = {
    "view": "read", "read": "read", "open": "read", "create": "created", "write": "created",
    "strreplace": "modified", "insert": "modified", "replace": "modified", "edit": "modified",
    "undoedit": "modified", "append": "modified", "delete": "deleted", "remove": "deleted",
}  # fmt: skip


class Touch(msgspec.Struct, frozen=True):
    """One thing done to one file by one call."""

    path: str
    status: str
    source: str = ""


def touches(use: Use) -> tuple[Touch, ...]:
    """Return what one call does to files, from the shape of its arguments first, its name as a hint."""
    if "touches" not in use.known:
        use.known["touches"] = tuple(_touches(use))
    return use.known["touches"]


def _touches(use: Use) -> Iterator[Touch]:
    args = arguments(use.call)
    patch = next((text for text in strings(args) if is_patch(text)), None)
    if patch is not None:
        for effect in patched(patch):
            yield Touch(effect.path, effect.status, effect.source)
        return
    command = command_in(use)
    if command is not None:
        for step in shell.steps(command, folder_of(use.call)):
            for effect in shell.effects(step):
                yield Touch(effect.path, effect.status, effect.source)
        return
    yield from _by_shape(plain(use.call.name), args)


def _by_shape(name: str, args: dict[str, Any]) -> Iterator[Touch]:
    """Yield the touches of a call that names files in its arguments."""
    moved = _move(name, args)
    if moved:
        if not re.search(r"copy|^cp$", name):
            yield Touch(moved[0], "deleted")
        yield Touch(moved[1], "created", moved[0])
        return
    paths = paths_in(args)
    status = status_of(name, args)
    if status:
        for path in paths:
            yield Touch(path, status)
    if not paths:
        for value in args.values():
            for inner in as_list(value)[:50]:
                if isinstance(inner, dict):
                    inner_args = by_plain_key(inner)
                    status = status_of(name, inner_args)
                    for path in paths_in(inner_args) if status else ():
                        yield Touch(path, status)


def paths_in(args: dict[str, Any]) -> list[str]:
    """Return the paths that the arguments name."""
    for key in _PATH_KEYS:
        value = args.get(key)
        values = as_list(value) or [value]
        found = [_clean(item) for item in values[:50] if isinstance(item, str) and _is_path(item)]
        if found:
            return found
    return []


def _clean(path: str) -> str:
    path = path.strip()
    return shell.join("", path.removeprefix("file://").removeprefix("@")) if len(path) > 1 else path


def _is_path(text: str) -> bool:
    text = text.strip()
    return (
        0 < len(text) <= 400
        and "\n" not in text
        and not re.match(r"[a-zA-Z][\w+.-]+://(?<!file://)", text)
        and not re.search(r"[*?<>|\"{}]", text)
        and any(letter.isalnum() for letter in text)
    )


def status_of(name: str, args: dict[str, Any]) -> str:
    """Say what a call with these arguments does to the files it names; "" where it does nothing to them."""
    keys = args.keys()
    verb = args.get("command", args.get("action", args.get("operation", args.get("mode"))))
    if isinstance(verb, str) and plain(verb) in _EDITOR_VERBS:
        return _EDITOR_VERBS[plain(verb)]
    if _REMOVERS.search(name):
        return "deleted"
    if keys & OLD or keys & NEW:
        return "modified"
    if any(isinstance(args.get(key), str) for key in WHOLE):
        return "modified" if re.search(r"append|insert|edit|update|patch|replace", name) else "created"
    if keys & _SEARCH or _LISTERS.search(name):
        return ""
    return "created" if re.search(r"^(?:create|write|touch|new)", name) else "read"


def _move(name: str, args: dict[str, Any]) -> tuple[str, str] | None:
    """Return the two paths of a move or copy, if the call is one."""
    if not _MOVERS.search(name):
        return None
    ends = [
        next((value for key in keys if isinstance(value := args.get(key), str) and _is_path(value)), None)
        for keys in (_MOVE_FROM, _MOVE_TO)
    ]
    return (_clean(ends[0]), _clean(ends[1])) if ends[0] and ends[1] else None
