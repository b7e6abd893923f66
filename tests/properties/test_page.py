"""What an offline checkpoint tells of a conversation: the user's words, in order, and true counts of the rest."""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.logs import CARRIED, any_messages, ask_for, chain, compact_log, decode, logs

from foldline.core.checkpoint import conversation, conversation_lines
from foldline.core.checkpoint.page import compose, parse
from foldline.core.ledger.facts.kinds import SPOKEN, Ledger
from foldline.core.ledger.table import bounded, collect, current, merge
from foldline.core.ledger.text.origin import UserSpeech, shown
from foldline.core.log.entries import Compacted, Said
from foldline.core.log.messages import Text
from foldline.core.measure.tokens import OFFLINE

budgets = st.integers(60, 6_000)


def own_words(entries: list[Said]) -> list[str]:
    """What the user said in entries, a message each; a picture alone says nothing."""
    speech = UserSpeech(shown)
    return [text for entry in entries if (text := "\n".join(speech.own(entry)).strip())]


def told(ledger: Ledger) -> list[str]:
    """The user's words of a ledger, without the names of pictures."""
    words = [re.sub(r"\n?\[image\]\Z", "", item.text) for item in ledger.items if item.kind == "user"]
    return [text for text in words if text]


def path_of(made) -> list[Said]:
    dialect, payloads = made
    return [entry for entry in chain(decode(dialect, payloads)).path() if isinstance(entry, Said)]


@given(made=any_messages, budget=budgets)
def test_the_users_words_that_fit_stand_on_the_page_in_order(made, budget):
    entries = path_of(made)
    ledger = collect(entries)
    text = compose(ledger, budget, OFFLINE.count).text
    assert OFFLINE.count(text) <= budget
    words = own_words(entries)
    sizes = [OFFLINE.count(one) + 4 for one in words]
    assume(sum(sizes) * 3 + 300 <= budget)
    assume(max(sizes, default=0) < conversation.CAP_LEAST)
    assume(not any(later.startswith(one) for one, later in pairwise(words)))  # sent again: told once
    assert told(parse(text)) == words


@given(made=any_messages, budget=budgets, folds=st.integers(2, 6))
def test_many_folds_tell_the_users_words_as_one_does(made, budget, folds):
    entries = path_of(made)
    ledger = Ledger()
    size = -(-len(entries) // folds)
    for start in range(0, len(entries), size):
        ledger = bounded(current(merge(ledger, collect(entries[start : start + size])), ()))
    assert told(ledger) == told(collect(entries))
    assert ledger.messages == len(entries)


@given(made=any_messages, budget=budgets)
def test_a_gap_says_truly_what_it_leaves_out(made, budget):
    ledger = collect(path_of(made))
    shown = conversation.fill(ledger.items, budget // 4, OFFLINE.count)
    missing = [item for index, item in enumerate(ledger.items) if index not in shown]
    lines = "\n".join(conversation_lines.write(ledger.items, shown))
    gaps = [item for item in conversation_lines.read(lines) if item.kind == "gap"]
    assert sum(gap.messages for gap in gaps) == sum(
        item.kind in SPOKEN and item.kind != "aside" for item in missing
    )
    assert sum(gap.calls for gap in gaps) == sum(item.calls for item in missing)


@given(made=logs())
def test_a_session_carries_the_users_words_over_every_fold(made):
    """Whatever was folded, lifted, pinned or rewound before."""
    _, log = made
    outcome = compact_log(log, ask_for(context=3_000))
    assume(isinstance(outcome, Compacted))
    said = [entry for entry in log.path() if isinstance(entry, Said)]
    ids = [entry.id for entry in said]
    folded = said[: ids.index(outcome.first_kept)] if outcome.first_kept else said
    words = told(msgspec.convert(outcome.ledger, Ledger))
    assert [one for one in words if one not in CARRIED] == [
        one for one in own_words(folded) if one not in CARRIED
    ]


@given(made=logs())
def test_every_item_stands_in_the_entry_that_it_cites(made):
    _, log = made
    outcome = compact_log(log, ask_for("claude-code", context=3_000))
    assume(isinstance(outcome, Compacted))
    by_id = {entry.id: entry.message for entry in log.entries() if isinstance(entry, Said)}
    items = [item for item in msgspec.convert(outcome.ledger, Ledger).items if item.kind != "gap"]
    for item in items:
        message = by_id[item.entry]
        if item.kind in ("user", "said", "aside"):
            words = "\n".join(part.text for part in message.parts if isinstance(part, Text))
            assert message.role == ("user" if item.kind == "user" else "assistant")
            assert all(row in words for row in item.text.split("\n") if row != "[image]")
        else:
            assert message.role == "assistant"
