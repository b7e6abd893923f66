"""What a call does to files, derived from the shape of its arguments; the tool's name is only a hint."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from foldline.core.ledger.facts.commands import (
    Step,
    Touch,
    as_list,
    command_in,
    effects,
    join,
    plain,
    rows_of,
    strings,
)
from foldline.core.ledger.text.sentences import word_set
from foldline.core.log.messages import ToolCall

SCANNED = 400_000  # characters of a patch that are read

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
_FROM = ("source", "sourcepath", "from", "oldpath", "src", "path", "filepath")
_TO = ("destination", "destinationpath", "to", "newpath", "dest", "dst", "target", "targetpath", "newname")
_SOUGHT = word_set("pattern query regex glob searchpattern includepattern globpattern")
_MOVES = re.compile(r"move|rename|copy|^mv$|^cp$")
_VERBS = (
    (re.compile(r"delete|remove|^rm$|unlink|trash"), "deleted"),
    (re.compile(r"append|insert|edit|update|patch|replace"), "modified"),
    (re.compile(r"grep|glob|search|find|list|^ls$|tree|directory|folder|mkdir|upload|test|lint|diagnos"), ""),
    (re.compile(r"^(?:create|write|touch|new)"), "created"),
    (re.compile(r"^(?:view|read|open)"), "read"),
)


def touches(call: ToolCall, args: dict[str, Any], steps: Iterable[Step]) -> Iterator[Touch]:
    """Yield what one call does to files; `steps` are the simple commands that it runs."""
    if (patch := patch_in(args)) is not None:
        yield from patched(patch)
    elif command_in(call, args) is not None:
        yield from chain.from_iterable(map(effects, steps))
    else:
        yield from _by_shape(plain(call.name), args)


def _by_shape(name: str, args: dict[str, Any]) -> Iterator[Touch]:
    """Yield the touches of a call that names files in its arguments, or in rows among them."""
    ends = (next((path for key in keys for path in _paths(args.get(key))), "") for keys in (_FROM, _TO))
    if _MOVES.search(name) and all(moved := tuple(ends)):
        if not name.startswith(("copy", "cp")):
            yield Touch(moved[0], "deleted", moved[1])
        yield Touch(moved[1], "created")
        return
    rows = [args] if paths_in(args) else [row for value in args.values() for row in rows_of(value, 50)]
    for row in rows:
        if status := _status(name, row):
            yield from (Touch(path, status) for path in paths_in(row))


def paths_in(args: dict[str, Any]) -> list[str]:
    """Return the paths that arguments name."""
    return next(filter(None, (_paths(args[key]) for key in _PATH_KEYS if key in args)), list[str]())


def _paths(value: Any) -> list[str]:
    given = [one.strip() for one in (as_list(value) or [value])[:50] if isinstance(one, str)]
    found = [path.removeprefix("file://").removeprefix("@") for path in given if _is_path(path)]
    return [join("", path) for path in found]


def _is_path(text: str) -> bool:
    return (
        0 < len(text) <= 400
        and not re.search(r"[\n*?<>|\"{}]|^(?!file:)[a-zA-Z][\w+.-]+://", text)
        and any(letter.isalnum() for letter in text)
    )


def _status(name: str, args: dict[str, Any]) -> str:
    """Say what a call with these arguments does to the files it names; "" where it does nothing to them."""
    given = (args[key] for key in ("command", "action", "operation", "mode") if key in args)
    verb = next((said for word in given if isinstance(word, str) and (said := _said(plain(word)))), None)
    if verb is not None:
        return verb
    said, keys = _said(name), args.keys()
    if said == "deleted":
        return said
    if keys & OLD or keys & NEW:
        return "modified"
    if any(isinstance(args.get(key), str) for key in WHOLE):
        return "modified" if said == "modified" else "created"
    return "" if keys & _SOUGHT else said if said in ("", "created") else "read"


def _said(word: str) -> str | None:
    """Say what a verb does to files; None for any other word."""
    return next((status for form, status in _VERBS if form.search(word)), None)


# ---- patches: the `*** Begin Patch` form and unified diffs

_HEADER = re.compile(
    r"^\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>[^\n]{1,400})$"
    r"|^\*\*\* Move to: (?P<moved>[^\n]{1,400})$"
    r"|^--- (?:a/)?(?P<old>[^\t\n]{1,400})(?:\t[^\n]*)?\n\+\+\+ (?:b/)?(?P<new>[^\t\n]{1,400})",
    re.MULTILINE,
)
_BECOMES = {"Add": "created", "Update": "modified", "Delete": "deleted"}


def patch_in(args: dict[str, Any]) -> str | None:
    """Return the patch that arguments carry."""
    found = (text for text in strings(args) if "\n+++ " in text or " File: " in text)
    return next((text for text in found if _HEADER.search(text[:SCANNED])), None)


def patched(text: str) -> Iterator[Touch]:
    """Yield each file of a patch, with what becomes of it."""
    found: list[Touch] = []
    for match in _HEADER.finditer(text[:SCANNED]):
        if match["moved"] is not None:
            moved = [Touch(match["moved"].strip(), "created")] if found else []
            found[-1:] = [*(Touch(touch.path, "deleted") for touch in found[-1:]), *moved]
        elif match["verb"] is not None:
            found.append(Touch(match["path"].strip(), _BECOMES[match["verb"]]))
        elif match["new"].strip() == "/dev/null":
            found.append(Touch(match["old"].strip(), "deleted"))
        else:
            made = match["old"].strip() == "/dev/null"
            found.append(Touch(match["new"].strip(), "created" if made else "modified"))
    yield from found


# ---- the folder of the work

SHARED = 0.9  # share of a project's paths that lie in a folder from which it is the folder of the work
NEAR_ROOT, MOST = (
    4,
    0.5,
)  # slashes up to which a folder may hold several projects: that of most paths is meant


def common_folder(paths: Iterable[str]) -> str:
    """Return the folder of the work, with its last slash: the deepest with its absolute paths.

    "" for none. Paths of another tree (a scratch folder, a second checkout) do not count.
    """
    found = Counter(path for path in paths if path.startswith("/"))
    best, held = "/", found.total()
    while True:
        below: Counter[str] = Counter()
        for path, times in found.items():
            if path.startswith(best):
                name, slash, _ = path[len(best) :].partition("/")
                if slash:
                    below[f"{best}{name}/"] += times
        folder, times = next(iter(below.most_common(1)), ("", 0))
        near = best.count("/") < NEAR_ROOT
        if not folder or times < held * (MOST if near else SHARED):
            return best if best.count("/") > 2 else ""
        best, held = folder, times if near else held


def folder_of_work(known: str, paths: Iterable[str]) -> str:
    """Return the folder of the work; one `known` stays while it lies around that of the paths, or inside it.

    What was folded earlier is told from there on.
    """
    found = common_folder(paths)
    return known if known and (known.startswith(found) or found.startswith(known)) else found


def elsewhere(path: str, base: str) -> bool:
    """Whether an absolute path lies in another project than the folder of the work."""
    project = "/".join(base.rstrip("/").split("/")[: NEAR_ROOT + 1]) + "/"
    return bool(base) and path.startswith(("/", "~", "$")) and not f"{path}/".startswith(project)


def folders(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def relative(path: str, base: str) -> str:
    """Spell a path from the folder of the work (`base`, with its last slash) on, where it lies below."""
    if base and path.startswith(base) and len(path) > len(base):
        return path[len(base) :]
    path = path.removeprefix("./")
    head = path.partition("/")[0]
    at = base.rfind(f"/{head}/") if head and not path.startswith("/") else -1
    tail = base[at + 1 :] if at >= 0 else ""
    return path[len(tail) :] if tail.count("/") > 1 and path.startswith(tail) and path != tail else path
