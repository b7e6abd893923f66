"""How paths are spelled: from a base directory on, and many of them shortly."""

from __future__ import annotations

from collections.abc import Iterable


def relative(path: str, base: str) -> str:
    """Spell a path from the working directory `base` (with its last slash) on, where it lies below."""
    if base and path.startswith(base) and len(path) > len(base):
        return path[len(base) :]
    return path.removeprefix("./")


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
