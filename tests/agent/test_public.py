"""The loop is the reference for building on the library: short, and on the public API alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import foldline
from foldline.agent import events, loop, replies
from foldline.session.events import KINDS, Event

PUBLIC = {"foldline", *(f"foldline.{name}" for name in foldline._MODULES), "foldline.session.events"}


def test_the_loop_is_under_200_lines():
    assert len(Path(loop.__file__).read_text().splitlines()) < 200


@pytest.mark.parametrize("module", [loop, replies])
def test_the_loop_imports_public_names_alone(module):
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    own = {name for name in imported if name.startswith("foldline") and not name.startswith("foldline.agent")}
    assert own <= PUBLIC


def test_no_event_of_the_agent_has_the_name_of_one_of_the_session():
    own = [kind for kind in Event.__subclasses__() if kind.__module__ == events.__name__]
    assert len({kind.name for kind in own}) == len(own) > 8
    assert not {kind.name for kind in own} & set(KINDS)
