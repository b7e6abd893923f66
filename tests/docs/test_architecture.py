"""ARCHITECTURE.md is the code: its rooms and their order are those that import-linter holds, and those on the disk."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.docs.test_parity import names_in

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "foldline"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]
INVARIANTS = tomllib.loads((ROOT / "tests" / "data" / "invariants.toml").read_text(encoding="utf-8"))[
    "invariant"
]
PICTURES = dict(re.findall(r"<!-- rooms: ([a-z.]+) -->\n\n((?:    .+\n)+)", PAGE))
STEPS = ("__init__", "__main__")  # every package has them; they are no rooms


def layers(lines, container):
    """A list of layers as sets of rooms, the highest first."""
    return [
        {room.strip(" ()").removeprefix(f"{container}.") for room in re.split(r"[|:]", line)}
        for line in lines
    ]


def folder(container):
    return PACKAGE.joinpath(*container.split(".")[1:])


def on_disk(container):
    """The packages and modules in a package."""
    found = {
        path.stem
        for path in folder(container).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    return found.difference(STEPS)


def contracted(container):
    """The layers that import-linter holds in a package, without rooms that are to come."""
    for contract in CONTRACTS:
        whole = contract["type"] == "layers" and "containers" not in contract and container == "foldline"
        if whole or container in contract.get("containers", ()):
            found = [layer & on_disk(container) for layer in layers(contract["layers"], container)]
            return [layer for layer in found if layer]
    return []


@pytest.mark.parametrize("container", PICTURES)
def test_the_picture_is_what_the_import_contracts_hold(container):
    lines = [re.split(r"\s{2,}", line.strip())[0] for line in PICTURES[container].splitlines()]
    assert layers(lines, container) == contracted(container)


@pytest.mark.parametrize("container", PICTURES)
def test_every_room_on_the_disk_is_in_the_picture(container):
    assert set().union(*contracted(container)) == on_disk(container)


@pytest.mark.parametrize("container", PICTURES)
def test_every_line_of_the_picture_says_what_is_there(container):
    assert all(len(re.split(r"\s{2,}", line.strip())) == 2 for line in PICTURES[container].splitlines())


def test_what_the_page_names_exists():
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.[a-z]+)?|[a-z_]+\.py)`", PAGE))
    places = (ROOT, PACKAGE, PACKAGE / "core", PACKAGE / "core" / "ledger" / "facts")

    assert len(named) > 20
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_the_page_draws_the_rooms_that_a_reader_needs():
    assert list(PICTURES) == [
        "foldline",
        "foldline.core",
        "foldline.core.ledger",
        "foldline.core.checkpoint",
        "foldline.session",
        "foldline.service",
    ]


def test_the_page_lists_the_invariants_that_the_tests_know():
    listed = re.findall(r"^(\d+)\. \*\*(.+?)\.\*\* ", PAGE, re.MULTILINE)
    assert listed == [(str(each["number"]), each["name"]) for each in INVARIANTS]
    assert [each["number"] for each in INVARIANTS] == list(range(1, 11))


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda each: each["name"])
def test_an_invariant_has_its_code_and_its_properties(invariant):
    assert invariant["held_in"]
    assert [path for path in invariant["held_in"] if not (PACKAGE / path).exists()] == []
    named = [name.split("::") for name in invariant["properties"]]
    assert named
    assert [name for path, name in named if name not in names_in(path)] == []
