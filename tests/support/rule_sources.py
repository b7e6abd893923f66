"""The rules of each dialect's validator and where they are from, out of tests/data/dialect_rules.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "dialect_rules.toml"


def sourced_rules(dialect):
    """The names of the rules that have a source."""
    rules = tomllib.loads(DATA.read_text(encoding="utf-8"))[dialect]["rules"]
    assert all(rule["broken"] and rule["source"] for rule in rules.values())
    return rules
