"""How paths are spelled: from a base directory on, and many of them shortly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

SHARED = 0.7  # share of the absolute paths that lie in a folder from which it is the folder of the work


def common_folder(paths: Iterable[str]) -> str:
    """Return the deepest folder that most absolute paths lie in, with its last slash; "" for none."""
    found = Counter(path for path in paths if path.startswith("/"))
    whole = found.total()
    best = ""
    while True:
        below: Counter[str] = Counter()
        for path, times in found.items():
            if path.startswith(best or "/"):
                name, slash, _ = path[len(best) or 1 :].partition("/")
                if slash:
                    below[f"{best or '/'}{name}/"] += times
        folder, times = next(iter(below.most_common(1)), ("", 0))
        if not folder or times < SHARED * whole:
            return best if best.count("/") > 2 else ""
        best = folder


def relative(path: str, base: str) -> str:
    """Spell a path from the working directory `base` (with its last slash) on, where it lies below."""
    if base and path.startswith(base) and len(path) > len(base):
        return path[len(base) :]
    return _within(path.removeprefix("./"), base)


def _within(path: str, base: str) -> str:
    """Spell a path that begins with the last folders of `base`, two or more, from there on."""
    head = path.partition("/")[0]
    at = base.rfind(f"/{head}/") if head and not path.startswith("/") else -1
    tail = base[at + 1 :] if at >= 0 else ""
    return path[len(tail) :] if tail.count("/") > 1 and path.startswith(tail) and path != tail else path


def by_folder(paths: Iterable[str]) -> list[str]:
    """Write many paths shortly, one line for each folder: `folder/: a.py, b.py`."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name if folder else path)
    return [
        f"{folder}/: {', '.join(found)}" if len(found) > 1 else f"{folder}/{found[0]}"
        for folder, found in folders.items()
        if folder
    ] + folders.get("", [])


def of_folder(line: str) -> list[str]:
    """Read a line of `by_folder` back."""
    folder, several, rest = line.partition("/: ")
    return [f"{folder}/{name}" for name in rest.split(", ")] if several else [line]
