"""Lists in the pages that the code knows too: events, commands, kinds of facts."""

from __future__ import annotations

import re
from pathlib import Path

import click

import foldline
from foldline.cli.app import cli
from foldline.config import ServeSettings
from foldline.core.ledger.table import KINDS
from foldline.service.api.api import OPERATIONS
from foldline.service.api.turns import NAMES
from foldline.session import events

DOCS = Path(__file__).parents[2] / "docs"


def section(page, heading):
    """The text of a page between a heading and the next of its level."""
    return (DOCS / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_event_has_its_row():
    listed = re.findall(
        r"`([a-z_]+)`", "".join(re.findall(r"^\| (`.*?) \|", section("live.md", "Events"), re.MULTILINE))
    )
    kinds = [
        kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)
    ]
    assert sorted(listed) == sorted(kind.name for kind in kinds if kind.name)


def test_every_command_is_in_the_table():
    text = (DOCS / "cli.md").read_text(encoding="utf-8").split("\n## ")[0]
    listed = re.findall(r"`([a-z]+)[^`]*`", "".join(re.findall(r"^\| (.*?) \|", text, re.MULTILINE)))
    assert isinstance(cli, click.Group)
    assert sorted(set(listed)) == sorted(cli.list_commands(click.Context(cli)))


def test_every_method_of_a_session_is_told_of():
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("library.md", "live.md"))
    public = [name for name in vars(foldline.Session) if not name.startswith("_")]
    assert len(public) > 30
    assert [
        name for name in public if not re.search(rf"`(await |session\.)?{name}\b|session\.{name}\b", text)
    ] == []


def test_every_operation_of_the_service_is_in_the_table():
    page = (DOCS / "service.md").read_text(encoding="utf-8")
    listed = re.findall(r"`([A-Z]+) (\S+)`", page.split("<!-- operations -->")[1].split("<!-- end -->")[0])
    assert sorted((method, path.replace("…", "/sessions/{session}")) for method, path in listed) == sorted(
        (one.method, one.path) for one in OPERATIONS
    )


def test_every_event_of_a_turn_is_in_the_table():
    text = (DOCS / "service.md").read_text(encoding="utf-8").split("## Turns")[1].split("\n## ")[0]
    told = {name for name, _ in NAMES.values()} | {"usage"}
    assert [name for name in told if f"`{name}`" not in text] == []


def test_every_setting_of_the_service_is_told_of():
    text = (DOCS / "service.md").read_text(encoding="utf-8") + (DOCS / "gateway.md").read_text(
        encoding="utf-8"
    )
    names = [field for field in ServeSettings.__struct_fields__ if field != "open_sessions"]
    assert [name for name in names if name not in text and name.replace("_", "-") not in text] == []


def test_every_kind_of_fact_is_in_the_row_of_the_ledger():
    row = next(
        line
        for line in (DOCS / "library.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `ledger` |")
    )
    assert sorted({*re.findall(r"`(\w+)`", row)} - {"ledger", "requests"}) == sorted(KINDS)
