"""The settings that a folder's file may contain: the folder may have been downloaded from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

Table = dict[str, Any]

_AMOUNTS = "enabled reserve keep prune_minimum prune_protect"
_POLICY = f"""{_AMOUNTS} base summary enable_pruning enable_compaction on_overflow check_at soft hard limits
    estimator trigger_on min_messages quote_user_tokens cut_rule walk_back cross_boundary min_gain
    prune_exempt prune_notes reread images image_size image_bytes summary_prompt summary_role summary_position
    summary_tokens summary_share result_cap thinking_in_transcript versions background idle
    provider_compaction warn_each"""
_TABLES: Final = {
    "": "policy window",
    "agent.": "deny",
    "compaction.": f"{_AMOUNTS} pruning reserved_output",
    "models.*.": "context input output price",
    "policies.*.": _POLICY,
    "policies.*.per_model.*.": _POLICY,
}
FOLDER_KEYS: Final = frozenset(
    tuple(f"{table}{key}".split(".")) for table, keys in _TABLES.items() for key in keys.split()
)
"""The keys that a folder may set (`*`: any name): amounts and switches. None of them sends data anywhere,
allows an action, or holds text that a model takes for the user's. Others count only in the user's file."""


def merge_folder_settings(own: Table, folder: Table) -> tuple[Table, list[str]]:
    """Return the user's own settings overridden by a folder's, and the names of the keys it may not set.

    Tables are merged; of the user's policy of the same name, a folder's policy keeps only the fields that a
    folder may not set. Deny rules are added.
    """
    allowed, refused = _split(folder, ())
    if ".toml" in str(allowed.get("policy")):
        refused["policy"] = allowed.pop("policy")  # the file could set anything
    if "agent" in allowed:
        own_rules = own.get("agent", {}).get("deny", ())
        allowed["agent"]["deny"] = [*own_rules, *allowed["agent"].get("deny", ())]
    for name, fields in allowed.get("policies", {}).items():
        kept = _split(own.get("policies", {}).get(name, {}), ("policies", "*"))[1]
        allowed["policies"][name] = _merged(kept, fields)
    if "models" in allowed:
        allowed["models"] = _merged(own.get("models", {}), allowed["models"])
    tables: Table = {
        key: {**own.get(key, {}), **value} for key, value in allowed.items() if isinstance(value, dict)
    }
    return {**own, **allowed, **tables}, list(_names(refused, ()))


def _merged(base: Table, changes: Table) -> Table:
    """Return a table with changes; tables in both are merged the same way."""
    both = [
        key for key, value in changes.items() if isinstance(value, dict) and isinstance(base.get(key), dict)
    ]
    return {**base, **changes, **{key: _merged(base[key], changes[key]) for key in both}}


def _split(table: Table, above: tuple[str, ...]) -> tuple[Table, Table]:
    """Return the parts of a table that a folder may set, and those it may not; `above` is its pattern."""
    allowed, refused = Table(), Table()
    for key, value in table.items():
        pattern = _pattern(above, key)
        if pattern in FOLDER_KEYS:
            allowed[key] = value
        elif pattern is None or not isinstance(value, dict):
            refused[key] = value
        else:
            inner, inner_refused = _split(cast("Table", value), pattern)
            if inner or not value:
                allowed[key] = inner
            if inner_refused:
                refused[key] = inner_refused
    return allowed, refused


def _pattern(above: tuple[str, ...], key: str) -> tuple[str, ...] | None:
    """Return the pattern in `FOLDER_KEYS` that a key matches, or the beginning of one; None without."""
    for pattern in ((*above, key), (*above, "*")):
        if any(known[: len(pattern)] == pattern for known in FOLDER_KEYS):
            return pattern
    return None


def _names(refused: Table, above: tuple[str, ...], prefix: str = "") -> Iterator[str]:
    for key, value in refused.items():
        pattern = _pattern(above, key)
        if pattern is None or pattern in FOLDER_KEYS or not isinstance(value, dict):
            yield f"{prefix}{key}"
        else:
            yield from _names(cast("Table", value), pattern, f"{prefix}{key}.")
