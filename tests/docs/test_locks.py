"""What is installed: the lists that `make` installs from, and the licences of what users get."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def pins(name):
    """The lines of a lock, with what platform or Python they are for."""
    return set((ROOT / name).read_text(encoding="utf-8").splitlines())


def test_what_running_needs_is_what_the_tests_run():
    assert pins("requirements-run.lock") < pins("requirements.lock")


def test_running_needs_the_dependencies_and_the_build_backend():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["run"]]
    pinned = {line.partition("==")[0] for line in pins("requirements-run.lock")}
    assert {re.split(r"[<>=\[]", each)[0] for each in wanted} <= pinned


EXTRAS = (
    "tokens",
    "plots",
    "testing",
    "images",
    "otel",
    "openai",
    "anthropic",
    "chat",
    "mcp",
    "serve",
    "postgres",
    "parquet",
)
PERMISSIVE = re.compile(r"MIT|BSD|Apache|PSF|ISC|HPND|Python Software|Unlicense|0BSD")
WEAK_COPYLEFT = {"psycopg", "psycopg-binary", "psycopg-pool"}  # LGPL, with the extra `postgres` alone


def needed(name: str, extras: tuple[str, ...], seen: set[str]) -> Iterator[str]:
    """What a package needs, here and with these extras, and what that needs."""
    for each in metadata.distribution(name).requires or ():
        wanted = Requirement(each)
        if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        if f"{wanted.name}[{wanted.extras}]" not in seen:
            seen.add(f"{wanted.name}[{wanted.extras}]")
            yield wanted.name.lower()
            yield from needed(wanted.name, tuple(wanted.extras), seen)


def licence(name: str) -> str:
    about = metadata.metadata(name)
    named = [one for one in about.get_all("Classifier", []) if one.startswith("License")]
    return about.get("License-Expression") or "; ".join(named) or about.get("License") or ""


def test_what_users_get_has_a_permissive_licence():
    packages = set(needed("foldline", EXTRAS, set()))
    assert len(packages) > 40
    refused = {name: licence(name) for name in packages if not PERMISSIVE.search(licence(name))}
    assert refused.keys() == WEAK_COPYLEFT, refused
