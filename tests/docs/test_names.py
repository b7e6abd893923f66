"""A name means one thing in the whole package."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import foldline

SOURCES = sorted(Path(foldline.__file__).parent.rglob("*.py"))


def test_no_public_class_name_stands_twice():
    names = Counter(
        node.name
        for source in SOURCES
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(names) > 200
    assert [name for name, times in names.items() if times > 1] == []
