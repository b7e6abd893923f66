"""Foldline as its users get it: a wheel of this checkout, in an environment with what it depends on and no more."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    """Build the wheel, with the backend that the project names."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path, *more: str) -> Path:
    """Make an environment with the wheel, its dependencies and `more` packages; returns its programs' folder.

    The dependencies are copied from the environment of the tests, so that nothing is downloaded.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    bin_folder = folder / "bin"
    packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    words = [sys.executable, "-m", "pip", "--python", str(bin_folder / "python"), "install", "--quiet"]
    subprocess.run([*words, "--no-deps", "--no-index", str(wheel)], check=True)
    for name in _needed(["foldline", *more]) - {"foldline"}:
        _copy(name, Path(packages))
    return bin_folder


def _needed(names: list[str]) -> set[str]:
    """Return packages and all that they depend on, without extras."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            asked = map(Requirement, distribution(name).requires or ())
            names += [one.name for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def _copy(name: str, packages: Path) -> None:
    for file in distribution(name).files or ():
        if ".." not in file.parts:  # no programs
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), target)
