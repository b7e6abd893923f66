"""Invariants 1, 2, 3 and 9 over generated logs: what a view holds, whatever happened before."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.dialects.ui_samples import STEP, answered, tool, ui
from tests.support.log import Log
from tests.support.logs import (
    CONSTRAINTS,
    DIALECTS,
    add,
    any_messages,
    as_messages,
    ask_for,
    chain,
    compact_log,
    decode,
    logs,
    problems,
    rendered,
    steps,
    stored_calls_answered,
    view_of,
)

from foldline.core.decide.presets import PRESETS
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.text.origin import own
from foldline.core.log.codec import decode as decode_json
from foldline.core.log.codec import whole_escapes
from foldline.core.log.entries import Compacted, Lifted, Pinned, Pruned, Said
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem, MessageItem, native_items


@given(logs())
def test_a_view_passes_the_strict_validator_of_every_dialect(made):
    _, log = made
    assume(stored_calls_answered(log.path()))
    items = view_of(log).view()
    for dialect in DIALECTS:
        assert problems(items, dialect) == []


@given(logs(), st.data())
def test_a_view_at_any_entry_is_valid(made, data):
    _, log = made
    path = log.path()
    at = data.draw(st.integers(0, len(path)))
    assume(stored_calls_answered(path[:at]))
    for dialect in DIALECTS:
        assert problems(ViewState(path[:at], counter=OFFLINE).view(), dialect) == []


CALLS = [tool(), answered(output="the answer"), tool(state="input-streaming")]


@pytest.mark.parametrize("after", [[], [ui("user", "and now?")], [ui("assistant", answered())]])
@pytest.mark.parametrize("between", [[], [STEP], ["text"]])
@pytest.mark.parametrize("calls", list(product(CALLS, repeat=2)) + list(product(CALLS[:2], repeat=3)))
def test_calls_of_one_id_in_a_ui_message_give_a_valid_view(calls, between, after):
    parts = [part for call in calls for part in (call, *between)]
    messages = [ui("user", "go"), ui("assistant", *parts[: len(parts) - len(between)])]
    items = view_of(chain(decode("ui-message", [*messages, *after], singly=True))).view()
    for dialect in DIALECTS:
        assert problems(items, dialect) == []
        assert ("the answer" in str(rendered(items, dialect))) == (CALLS[1] in calls)


@given(logs())
def test_every_message_not_yet_answered_is_in_the_view(made):
    _, log = made
    path = log.path()
    spoken = [e for e in path if isinstance(e, Said)]
    last = max((i for i, e in enumerate(spoken) if e.message.role == "assistant"), default=-1)
    shown = {item.entry.id for item in view_of(log).view() if isinstance(item, MessageItem)}
    for entry in spoken[last + 1 :]:
        if entry.message.role == "user" and not entry.message.results and entry.message.text.strip():
            assert entry.id in shown


@given(st.sampled_from(DIALECTS), st.sampled_from(DIALECTS), steps)
def test_what_a_tool_said_is_never_read_back_as_the_users(written, read, script):
    """A result that comes too late, or whose call its provider keeps, is told in a user's message."""
    marked = [
        (kind, f"printed {value}" if kind.endswith(("result", "results", "stored calls")) else value)
        for kind, value in script
    ]
    items = view_of(chain(decode(written, as_messages(written, marked), singly=True))).view()
    again = decode(read, rendered(items, read)[0])
    assert not any("printed" in words for message in again for words in own(message))


@given(logs())
def test_between_boundaries_a_view_only_grows(made):
    _, log = made
    before, fold = None, ViewState(counter=OFFLINE)
    for entry in log.path():
        fold.push(entry)
        if isinstance(entry, Compacted | Pruned | Lifted) or fold.server is entry:
            before = None
        if fold.open_calls:
            continue
        items = fold.view()
        if before is not None:
            assert items[: len(before)] == before
        before = items


@given(logs())
def test_pushing_entries_one_by_one_is_folding_them_at_once(made):
    _, log = made
    fold = ViewState(counter=OFFLINE)
    for entry in log.path():
        fold.push(entry)
    whole = view_of(log)
    assert fold.view() == whole.view()
    assert fold.tokens == whole.tokens
    assert fold.anchor == whole.anchor
    assert fold.fresh_from == whole.fresh_from


@given(logs())
def test_a_view_needs_no_more_than_the_entries_that_its_boundary_names(made):
    """What a store hands out as active folds to the same view as the whole path."""
    _, log = made
    path = log.path()
    fold = view_of(log)
    boundary = fold.boundary
    if boundary is None:
        return
    ids = {entry.id for entry in path}
    assert {*boundary.leading, *boundary.quoted} <= ids
    at = next(i for i, e in enumerate(path) if e.id == (boundary.first_kept or boundary.id))
    head = [e for e in path[:at] if e.id in {*boundary.leading, *boundary.quoted}]
    active = ViewState([*head, *path[at:]], counter=OFFLINE)
    assert active.view() == fold.view()
    assert set(active.pins) == set(fold.pins)


@given(logs())
def test_kept_messages_are_as_received_but_for_the_listed_edits(made):
    dialect, log = made
    for item in view_of(log).view():
        if isinstance(item, MessageItem) and not item.edits and item.entry.message.native is not None:
            messages, _ = rendered([item], dialect)
            received = decode_json(whole_escapes(item.entry.message.native.raw))
            if dialect == "openai-responses":  # a reply is a list of items; reasoning needs what follows it
                items = received if isinstance(received, list) else [received]
                left = [item for item in items if item not in messages]
                assert messages == [item for item in items if item not in left]
                assert all(item.get("type") == "reasoning" or _says_nothing(item) for item in left), left
            elif messages and messages[0]["role"] == item.entry.message.role:
                assert messages[-1] == received or _only_mended(messages[-1], received)


def _says_nothing(item) -> bool:
    """No provider takes a message without a word in it."""
    content = item.get("content") or ()
    texts = [content] if isinstance(content, str) else [part.get("text", "said") for part in content]
    return item.get("type", "message") == "message" and not "".join(texts).strip()


def _only_mended(sent, received) -> bool:
    """A dialect may drop what no provider takes (empty text blocks, trailing blanks at the end)."""
    squeezed = lambda m: "".join(str(m).split())  # noqa: E731
    return len(squeezed(sent)) <= len(squeezed(received)) + 60


@given(logs())
def test_tokens_are_what_the_items_add_up_to(made):
    _, log = made
    fold = view_of(log)
    assert fold.tokens >= 0
    assert fold.tokens == sum(
        item.tokens
        if isinstance(item, AddedItem)
        else max(0, item.entry.tokens - sum(e.saved for e in item.edits))
        for item in fold.view()
    )


@pytest.mark.parametrize("policy", PRESETS)
@given(made=any_messages, target=st.integers(700, 1500))
def test_pins_and_standing_constraints_are_in_every_later_view_word_for_word(policy, made, target):
    dialect, payloads = made
    log = Log()
    rule = add(log, Message("user", (Text(f"Fix the login page. {CONSTRAINTS[0]}"),)))
    pinned = add(log, Message("user", (Text("The customer number is 48151623, \nkeep it at hand."),)))
    log.append([_pin(log, pinned)], seen=log.leaf)
    add(log, Message("assistant", (Text("I will keep that in mind."),)))
    chain(decode(dialect, payloads), log)
    add(log, Message("user", (Text("go on"),)))
    for _ in range(3):
        outcome = compact_log(log, ask_for(policy, reason="target", target=target, context=3_000))
        assume(not isinstance(outcome, Exception))
        text = "\n".join(message.text for message, _ in native_items(view_of(log).view()))
        assert CONSTRAINTS[0] in text
        assert "The customer number is 48151623, \nkeep it at hand." in text
        for i in range(8):
            add(log, Message("assistant", (Text(f"step {i} " + "went on with the page " * 30),)))
            add(log, Message("user", (Text("next"),)))
    assert rule.id != pinned.id


def _pin(log, entry):
    from foldline.core.log.log import chained

    return chained(Pinned("", None, entry.id, on=True, text=entry.message.text), log.leaf)


@given(made=any_messages, rounds=st.integers(2, 4))
def test_a_later_compaction_folds_from_what_the_one_before_kept(made, rounds):
    dialect, payloads = made
    log = chain(decode(dialect, payloads))
    folded_before: set[str] = set()
    for _ in range(rounds):
        fold = view_of(log)
        outcome = compact_log(log, ask_for(reason="target", target=max(fold.tokens * 3 // 4, 300)))
        if isinstance(outcome, Compacted):
            path = log.path()
            spoken = [e.id for e in path if isinstance(e, Said)]
            at = spoken.index(outcome.first_kept) if outcome.first_kept else len(spoken)
            before = {e.id for e in (*fold.past, *fold.kept)} | folded_before
            assert set(spoken[:at]) <= before | {e.id for e in fold.leading}
            assert folded_before <= set(spoken[:at]) | set(outcome.quoted) | set(outcome.leading)
            folded_before = set(spoken[:at])
            old = msgspec.convert(fold.boundary.ledger, Ledger) if fold.boundary else Ledger()
            new = msgspec.convert(outcome.ledger, Ledger)
            assert new.messages >= old.messages
        add(log, Message("assistant", (Text("went on " * 60),)))
        add(log, Message("user", (Text("and now?"),)))
