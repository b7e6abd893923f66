"""What a replay found, as a table: one row per policy."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Any, Final

import msgspec

from foldline.core.log.codec import encode_utf8
from foldline.lab.report import MEASURES

NONE: Final = "none"  # the policy that the others are compared with
COUNTS: Final = ("compactions", "prunes", "overflows", "peak", "calls")
PRICES: Final = ("price", "price_cached", "price_summaries")


class ReplayedPolicy(msgspec.Struct, frozen=True):
    """A session under one policy, as `foldline replay --json` writes it; the turns stay as they are."""

    policy: str
    turns: msgspec.Raw
    totals: dict[str, Any]
    retention: dict[str, Any] | None


class ReplayedSession(msgspec.Struct, frozen=True):
    """A session under all policies; `window` in tokens."""

    session: str
    window: int
    policies: list[ReplayedPolicy]


class ReplayDocument(msgspec.Struct, frozen=True):
    """What `foldline replay --json` writes."""

    sessions: list[ReplayedSession]


class ComparedPolicy(msgspec.Struct, frozen=True):
    """A row: input tokens (`less`: the share saved against `none`), prices in USD, counts, retention.

    `retention` has the five shares; `scored` of `cuts` places had a view that could be sent.
    """

    policy: str
    input_tokens: int
    less: float | None
    prices: dict[str, float | None]
    counts: dict[str, int]
    retention: dict[str, float | None]
    scored: int
    cuts: int


def compared(session: ReplayedSession) -> list[ComparedPolicy]:
    """Return the rows of a session."""
    whole = next((one.totals["input_tokens"] for one in session.policies if one.policy == NONE), 0)
    return [_row(one, whole) for one in session.policies]


def _row(one: ReplayedPolicy, whole: int) -> ComparedPolicy:
    sent = one.totals["input_tokens"]
    retention = one.retention or {}
    cuts = retention.get("cuts", [])
    return ComparedPolicy(
        one.policy,
        sent,
        1 - sent / whole if whole and one.policy != NONE else None,
        {name: one.totals[name] for name in PRICES},
        {name: one.totals[name] for name in COUNTS},
        {name: retention.get(name) for name in MEASURES},
        sum(cut["fits"] for cut in cuts),
        len(cuts),
    )


def flat(row: ComparedPolicy) -> dict[str, Any]:
    """Return a row as names and values."""
    less = None if row.less is None else round(row.less, 4)
    return {
        "policy": row.policy,
        "input_tokens": row.input_tokens,
        "less": less,
        **row.prices,
        **row.counts,
        **row.retention,
        "cuts_scored": row.scored,
        "cuts": row.cuts,
    }


def as_csv(rows: Sequence[ComparedPolicy]) -> str:
    """Return rows as CSV; what is unknown is empty."""
    target = StringIO()
    found = [flat(row) for row in rows]
    writer = csv.DictWriter(target, list(found[0]) if found else [])
    writer.writeheader()
    writer.writerows(found)
    return target.getvalue()


def as_list(rows: Sequence[ComparedPolicy]) -> bytes:
    """Return rows as a JSON list."""
    return msgspec.json.format(encode_utf8([flat(row) for row in rows]), indent=2) + b"\n"
