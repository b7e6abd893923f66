"""What is measured: a measure is a table, with what it is about, its columns, and who takes the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from foldline.bench.measuring import (
    ARGUMENT_BUDGETS,
    BUDGETS,
    FULL_SIZES,
    KIT_BUDGETS,
    PLACES,
    BenchSetup,
    Figures,
    arguments,
    costs,
    kept_canaries,
    retention,
    rules,
    valid,
)
from foldline.bench.public import BFCL, KIT
from foldline.bench.system import System


class Column(msgspec.Struct, frozen=True):
    """A figure of a measure: its key and title, which is better, and how it is shown."""

    key: str
    title: str
    better: Literal["more", "less", ""] = ""
    form: Literal["share", "count", "number", "text"] = "count"


class Measure(msgspec.Struct, frozen=True):
    """One table. `reads` says that words count: it is left out for summaries that a script would write."""

    name: str
    about: str
    columns: tuple[Column, ...]
    take: Callable[[System, BenchSetup], Figures]
    reads: bool = False
    needs: str = ""  # a package


OF_FOLDS = (
    Column("view", "view / budget", form="share"),
    Column("over", "over budget"),  # folds whose view is larger than asked for
    Column("raised", "raised"),
)


def _by_budget(title: str, key: str, budgets: tuple[float, ...] = BUDGETS) -> tuple[Column, ...]:
    return tuple(Column(f"{key}_{share}", f"{title}, {share:.0%}", "more", "share") for share in budgets)


def _places(name: str, title: str) -> tuple[Column, ...]:
    return tuple(one for where in PLACES for one in _by_budget(f"{title} {where}", f"{name}_{where}"))


MEASURES: Mapping[str, Measure] = {
    one.name: one
    for one in (
        Measure(
            "valid",
            "A dirty log, said message by message: calls cut short, several at once, late and doubled "
            "results, ids that come again. Invalid: views that a strict provider refuses, and why. "
            "History left: the share of user messages and results that can still be read at the end; "
            "empty where the caller keeps them.",
            (
                Column("requests", "requests"),
                Column("invalid", "invalid", "less"),
                Column("overflows", "overflows", "less"),
                Column("raised", "raised", "less"),
                Column("left", "history left", "more", "share"),
                Column("broken", "why invalid", form="text"),
            ),
            valid,
        ),
        Measure(
            "rules",
            "15 rules of a user, each in a message of its own at the top or in the middle of a session, "
            "which is folded to a tenth or a twentieth: the share that the view has word for word. "
            "Public: COMPINT's constraints, where its package `conpact` is installed.",
            (*_places("own", "ours,"), *_places("public", "public,"), *OF_FOLDS),
            rules,
            reads=True,
        ),
        Measure(
            "retention",
            "Sessions are cut at a half and at three quarters, and folded to a tenth or a twentieth: "
            "the share of the names that later calls use and only the past had told, which the view "
            "has. Far: those last named long ago.",
            (
                *_by_budget("needed", "handle"),
                *_by_budget("far", "far"),
                Column("cuts", "cuts"),
                *OF_FOLDS,
            ),
            retention,
            reads=True,
        ),
        Measure(
            "canaries",
            "compaction-conformance-kit: its session of some 2,000 tokens with 20 things to keep, "
            "folded to its own budgets; its probe says what is left.",
            (*_by_budget("kept", "kept", KIT_BUDGETS), *OF_FOLDS),
            kept_canaries,
            reads=True,
            needs=KIT,
        ),
        Measure(
            "arguments",
            "BFCL v4, multi_turn_long_context: the first halves of 20 tasks make a session, which is "
            "folded to a fifth or a tenth: the share of those arguments of the other halves' gold calls "
            "which only the first had told, that the view has.",
            (*_by_budget("kept", "kept", ARGUMENT_BUDGETS), Column("arguments", "arguments"), *OF_FOLDS),
            arguments,
            reads=True,
            needs=BFCL,
        ),
        Measure(
            "cost",
            "Milliseconds of the processor for a turn in a session of so many messages; seconds of one "
            "fold; the tokens that a whole session sends, how many of them a provider's cache has, and "
            "their price at those of claude-sonnet-4-5.",
            (
                *(Column(f"turn_{n}", f"ms a turn, {n:,}", "less", "number") for n in FULL_SIZES),
                Column("fold", "s a fold", "less", "number"),
                Column("tokens", "M tokens", form="number"),
                Column("cached", "cached", "more", "share"),
                Column("usd", "USD", "less", "number"),
                Column("overflows", "overflows"),
            ),
            costs,
        ),
    )
}
