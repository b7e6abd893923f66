"""Packages of rows: from PyPI, or from npm if the name starts with `npm:`."""

from __future__ import annotations

import json
import os
import shutil
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Final

NPM: Final = "npm:"
VARIABLE: Final = "FOLDLINE_NODE_MODULES"
FOLDER: Final = "node_modules"


def node_modules() -> Path:
    """Return the folder of npm packages."""
    folder = Path(os.environ.get(VARIABLE) or ".").absolute()
    return folder if folder.name == FOLDER else folder / FOLDER


def installed(package: str) -> str | None:
    """Return the version of a package; None if it, or Node.js for npm, is not installed."""
    try:
        if not package.startswith(NPM):
            return version_of(package)
        manifest = node_modules() / package.removeprefix(NPM) / "package.json"
        return json.loads(manifest.read_bytes())["version"] if shutil.which("node") else None
    except (PackageNotFoundError, OSError, ValueError, KeyError):
        return None


def how_to_install(package: str) -> str:
    """Return the command that installs a package, or what to install first."""
    if not package.startswith(NPM):
        return f"pip install {package}"
    if not shutil.which("node"):
        return "install Node.js first"
    return f"npm install {package.removeprefix(NPM)}, in this folder or the folder in {VARIABLE}"
