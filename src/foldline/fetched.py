"""What the settings of a folder may set: it may have been fetched from anywhere."""

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
FROM_A_FOLDER: Final = frozenset(
    tuple(f"{table}{key}".split(".")) for table, keys in _TABLES.items() for key in keys.split()
)
"""The keys that a folder may set, `*` any name: amounts and switches. They name nobody who reads, allow
nothing, and hold no words that a model takes for the user's. Any other key counts in the user's own file."""


def with_fetched(own: Table, fetched: Table) -> tuple[Table, list[str]]:
    """Return the user's own settings with a folder's over them, and the names of what it may not set.

    Its policies keep what the user's own of that name set beyond that, its models what it does not set; its
    deny rules are further ones.
    """
    taken, refused = _split(fetched, ())
    if ".toml" in str(taken.get("policy")):
        refused["policy"] = taken.pop("policy")  # a file may hold anything
    if "agent" in taken:
        own_rules = own.get("agent", {}).get("deny", ())
        taken["agent"]["deny"] = [*own_rules, *taken["agent"].get("deny", ())]
    for name, fields in taken.get("policies", {}).items():
        kept = _split(own.get("policies", {}).get(name, {}), ("policies", "*"))[1]
        taken["policies"][name] = _over(kept, fields)
    if "models" in taken:
        taken["models"] = _over(own.get("models", {}), taken["models"])
    tables: Table = {key: {**own.get(key, {}), **one} for key, one in taken.items() if isinstance(one, dict)}
    return {**own, **taken, **tables}, list(_names(refused, ()))


def _over(below: Table, above: Table) -> Table:
    """Return a table over another one, and their tables so too."""
    both = [key for key, one in above.items() if isinstance(one, dict) and isinstance(below.get(key), dict)]
    return {**below, **above, **{key: _over(below[key], above[key]) for key in both}}


def _split(table: Table, place: tuple[str, ...]) -> tuple[Table, Table]:
    """Return what a folder may set of a table, and what it may not."""
    taken, refused = Table(), Table()
    for key, value in table.items():
        at = _known(place, key)
        if at in FROM_A_FOLDER:
            taken[key] = value
        elif at is None or not isinstance(value, dict):
            refused[key] = value
        else:
            inner, left = _split(cast("Table", value), at)
            if inner or not value:
                taken[key] = inner
            if left:
                refused[key] = left
    return taken, refused


def _known(place: tuple[str, ...], key: str) -> tuple[str, ...] | None:
    """Return where a key stands in `FROM_A_FOLDER`, as a whole or as a beginning."""
    for at in ((*place, key), (*place, "*")):
        if any(known[: len(at)] == at for known in FROM_A_FOLDER):
            return at
    return None


def _names(refused: Table, place: tuple[str, ...], above: str = "") -> Iterator[str]:
    for key, value in refused.items():
        at = _known(place, key)
        if at is None or at in FROM_A_FOLDER or not isinstance(value, dict):
            yield f"{above}{key}"
        else:
            yield from _names(cast("Table", value), at, f"{above}{key}.")
