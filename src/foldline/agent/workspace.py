"""The folder that tools work in and may leave only where allowed; it records the files they touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal

from foldline import files
from foldline.errors import InputError

Touched = Literal["read", "created", "modified"]
SKIPPED = frozenset(
    (".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".tox")
)
"""Folders that searches skip."""
MAX_FILE = 50_000_000  # bytes of a file that is read into memory


class Workspace:
    """A folder, `others` that are allowed too, and the files touched since the last `take`.

    `outputs` is where full outputs of commands are stored; tools may read it.
    """

    def __init__(
        self, root: Path | str, *, others: Iterable[Path | str] = (), outputs: Path | None = None
    ) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InputError(f"{self.root}: no such folder to work in")
        self.others = tuple(files.expanded(str(other)).resolve() for other in others)
        self.outputs = outputs.resolve() if outputs is not None else None
        self._touched: dict[Touched, dict[str, None]] = {}

    def apart(self) -> Workspace:
        """Return the same folders with a record of their own, for a sub-agent."""
        return Workspace(self.root, others=self.others, outputs=self.outputs)

    def resolve(self, path: str, *, writing: bool = False) -> Path:
        """Return an absolute path with links resolved; raises InputError if it leaves the folder."""
        if not path or "\0" in path:
            raise InputError("the path is empty" if not path else "a path cannot hold a NUL character")
        try:
            resolved = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError) as error:
            raise InputError(f"{path}: {error}") from error
        allowed = [self.root, *self.others]
        if self.outputs is not None and not writing:
            allowed.append(self.outputs)
        if not any(resolved.is_relative_to(folder) for folder in allowed):
            raise InputError(
                f"{path} is outside {self.root}; the user can allow its folder with --allow-folder"
            )
        return resolved

    def open(self, path: Path) -> BinaryIO:
        """Open a resolved path; raises OSError, and InputError for a pipe, socket or device."""
        return files.opened(path, inside=self._inside(path))

    def content(self, path: Path) -> bytes:
        """Return the content of a file; raises as `open` does, InputError above MAX_FILE bytes."""
        return files.content(path, MAX_FILE, inside=self._inside(path))

    def put(self, path: Path, text: str) -> None:
        """Write a file atomically, and make its folders; raises InputError if that fails."""
        try:
            with files.written(path, inside=self._inside(path)) as file:
                file.write(text.encode("utf-8"))
        except (OSError, UnicodeEncodeError) as error:
            raise InputError(f"{path} cannot be written: {error}") from error

    def _inside(self, path: Path) -> Path | None:
        """Return the allowed folder that a path is in; None for such a folder itself."""
        folders = (self.root, *self.others, *([self.outputs] if self.outputs is not None else []))
        folder = next((folder for folder in folders if path.is_relative_to(folder)), None)
        if folder is None:
            raise InputError(f"{path} is outside {self.root}")
        return None if folder == path else folder

    def shown(self, path: Path) -> str:
        """Return a path for display: relative if it is inside the folder."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def path_argument(self, arguments: Mapping[str, Any]) -> str:
        """Return the path of a call for display (default: the folder); raises as `resolve` does."""
        return self.shown(self.resolve(arguments.get("path") or "."))

    def touch(self, how: Touched, path: Path) -> None:
        """Record what was done to a file."""
        self._touched.setdefault(how, {})[self.shown(path)] = None

    def take(self) -> dict[Touched, tuple[str, ...]]:
        """Return the files touched since the last call."""
        touched, self._touched = self._touched, {}
        return {how: tuple(paths) for how, paths in touched.items()}
