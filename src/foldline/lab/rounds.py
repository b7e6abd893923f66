"""Decay: fold a growing session repeatedly, and measure after each fold what survived.

Rules and settings are planted in the session; the settings change later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

import msgspec

from foldline.catalogue import ModelInfo
from foldline.core.decide.policy import Policy
from foldline.core.lab.entities import Entity, Reading
from foldline.core.lab.retention import (
    ScoredMessage,
    cut_at,
    demand,
    names_in_calls,
    score,
    scored_message,
)
from foldline.core.log.entries import Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Floor, Window
from foldline.core.view import ViewState
from foldline.errors import FloorExceeded, InputError
from foldline.folding import FoldOptions, fold_now
from foldline.lab.report import shares
from foldline.lab.scored_cuts import common_names, view_text
from foldline.loading import as_recorded, from_entries
from foldline.transcripts import MessageRecord

SHARE = 0.1  # a fold's target, as a share of the session so far
LEAST_TARGET = 2_000  # tokens; standing rules may take a tenth
CHANGE_AT = 2  # the round in which the settings are replaced
MIN_MESSAGES = 2  # in a piece

RULES = (
    "Never push to the branch release/frozen.",
    "Always write dates as day-month-year in the reports.",
    "No file under ledger/archive may be deleted.",
    "All error messages must name the account they are about.",
    "Don't call the payment sandbox from the tests.",
    "Every new table needs an owner column.",
)


class PlantedSetting(NamedTuple):
    """A rule with a setting, and the rule that replaces it."""

    old: str
    new: str


SETTINGS = (
    PlantedSetting("Always use port 7171 for the demo server.", "Always use port 7272 for the demo server."),
    PlantedSetting("Batches must never exceed 250 rows.", "Batches must never exceed 900 rows."),
    PlantedSetting("Only use yarn in the admin folder.", "Only use bun in the admin folder."),
    PlantedSetting("The session timeout must be 15 minutes.", "The session timeout must be 40 minutes."),
)


class GrowingSession(msgspec.Struct, frozen=True):
    """A session in pieces, with planted messages; `names` are the names in calls of the first piece."""

    pieces: list[list[Said]]
    names: frozenset[Entity]


def decay(
    entries: Sequence[Said],
    policies: Iterable[Policy],
    window: Window,
    *,
    overhead: Floor,
    count: int,
) -> dict[str, list[dict[str, Any]]]:
    """Fold a growing session `count` times under each policy, to a tenth of its size (at least 2,000 tokens).

    Returns the measurements of each round, by policy. Raises InputError if the session is too short.
    """
    growing = _plant(entries, count)
    return {policy.name: _rounds(growing, policy, window, overhead) for policy in policies}


def _plant(entries: Sequence[Said], count: int) -> GrowingSession:
    """Cut a session into pieces, not between a call and its result, and plant rules and settings."""
    messages = [scored_message(entry.message) for entry in entries]
    places = [cut_at(messages, step / count) for step in range(1, count)]
    bounds = [0, *sorted({place for place in places if place}), len(entries)]
    if len(bounds) != count + 1 or any(b - a < MIN_MESSAGES for a, b in pairwise(bounds)):
        raise InputError(f"the session is too short for {count} rounds: it has {len(entries):,} messages")
    lead = next(
        (i for i, entry in enumerate(entries) if entry.message.role not in ("system", "developer")), 0
    )
    pieces: list[list[Message]] = [[entry.message for entry in entries[a:b]] for a, b in pairwise(bounds)]
    pieces[0][lead:lead] = _exchange(
        "Some rules for all of this work:",
        [*RULES, *(rule.old for rule in SETTINGS)],
        "Understood, I keep to these rules.",
    )
    if count >= CHANGE_AT:
        pieces[CHANGE_AT - 1] += _exchange(
            "Some of that changes from now on:", [rule.new for rule in SETTINGS], "Understood, changed."
        )
    calls = [call for message in pieces[0] for call in message.calls]
    common = common_names()
    names = (
        name for name, addressed in names_in_calls(calls).items() if addressed and name.key not in common
    )
    return GrowingSession(_as_entries(pieces), frozenset(names))


def _exchange(head: str, lines: list[str], answer: str) -> list[Message]:
    prompt = "\n".join([head, *(f"- {line}" for line in lines)])
    return [Message("user", (Text(prompt),)), Message("assistant", (Text(answer),))]


def _as_entries(pieces: Sequence[Sequence[Message]]) -> list[list[Said]]:
    bare = (msgspec.structs.replace(message, usage=None) for piece in pieces for message in piece)
    entries = iter(as_recorded(map(MessageRecord, bare), OFFLINE))
    return [list(islice(entries, len(piece))) for piece in pieces]


def _rounds(growing: GrowingSession, policy: Policy, window: Window, overhead: Floor) -> list[dict[str, Any]]:
    state = ViewState(counter=OFFLINE)
    past: list[ScoredMessage] = []
    rows: list[dict[str, Any]] = []
    total = overhead.total
    for number, piece in enumerate(growing.pieces, 1):
        for entry in piece:
            state.push(entry)
            past.append(scored_message(entry.message))
            total += entry.tokens
        target = max(int(total * SHARE), LEAST_TARGET)
        info = ModelInfo(None, window)
        options = FoldOptions(
            policy, info, target=target, counter=OFFLINE, overhead=overhead, number=number, recall=True
        )
        state, problem = _fold(state, options)
        future = [scored_message(entry.message) for later in growing.pieces[number:] for entry in later]
        text = view_text(state)
        row = {
            "round": number,
            "said_tokens": total,
            "target": target,
            "view_tokens": overhead.total + state.tokens,
            **({"problem": problem} if problem else {}),
            **_planted(text, changed=number >= CHANGE_AT),
            "first_names": _share(growing.names, text),
        }
        rows.append({**row, "retention": _retention(past, future, text)})
    return rows


def _fold(state: ViewState, options: FoldOptions) -> tuple[ViewState, str]:
    """Return the view after a compaction and "", or the same view and the reason for no compaction."""
    try:
        boundary = fold_now(from_entries(state.entries()), options).boundary
    except (FloorExceeded, InputError) as error:
        return state, str(error)
    if boundary is None:
        return state, "fits"
    return state.with_boundary(chained(boundary, state.entries()[-1].id)), ""


def _planted(text: str, *, changed: bool) -> dict[str, Any]:
    """Count the rules and settings that the view has word for word, and the settings that are stale."""
    current = [rule.new if changed else rule.old for rule in SETTINGS]
    stale = [rule for rule in SETTINGS if changed and rule.old in text and rule.new not in text]
    return {
        "rules": sum(rule in text for rule in RULES),
        "rules_planted": len(RULES),
        "settings": sum(sentence in text for sentence in current),
        "settings_planted": len(SETTINGS),
        "stale": len(stale),
    }


def _share(names: frozenset[Entity], text: str) -> float | None:
    reading = Reading(text, common_names())
    return round(sum(reading.names(name) for name in names) / len(names), 4) if names else None


def _retention(
    past: Sequence[ScoredMessage], future: Sequence[ScoredMessage], text: str
) -> dict[str, float | None] | None:
    """Score the view by the names that the rest of the session needs; None if these are too few."""
    needed = demand(past, future, common_names()) if future else None
    return shares(score(needed, text)) if needed is not None and needed.telling else None
