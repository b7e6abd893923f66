"""Live state and standings over generated logs: views stay valid, frozen, and self-contained."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs import DIALECTS, add_entry, ask_for, compact_log, logs, problems, texts, view_of

from foldline.core.checkpoint.checkpoint import recognise
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.fold_request import continuation_of
from foldline.core.compact.handoff import handoff, opening, start_of
from foldline.core.decide.ask import Nothing
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Compacted, Live, Noted
from foldline.core.log.log import verify
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.errors import FloorExceeded
from foldline.executor import execute, run_sync
from foldline.session.hooks import known_live
from foldline.summarizers.offline import OfflineSummarizer

lives = st.dictionaries(st.sampled_from(["todos", "open files", "plan/now"]), texts(), max_size=3).map(
    lambda made: tuple(Live(name, text) for name, text in made.items())
)


@given(st.sampled_from(sorted(PRESETS)), logs(), lives)
def test_a_view_with_live_state_is_valid_in_every_dialect_and_found_again_in_a_list(policy, made, live):
    _, log = made
    ask = msgspec.structs.replace(ask_for(policy), live=live, continuation=continuation_of(view_of(log)))
    if not isinstance(compact_log(log, ask), Compacted):
        return
    fold = view_of(log)
    for dialect in DIALECTS:
        assert problems(fold.view(), dialect) == []
    assert fold.boundary is not None
    found = recognise([message for message, _ in native_items(fold.view())])
    assert found is not None
    assert found.checkpoint.text == fold.boundary.checkpoint.text
    assert [one.name for one in found.checkpoint.live] == [one.name for one in fold.boundary.checkpoint.live]
    assert known_live(fold) == {one.name: one.text for one in fold.boundary.checkpoint.live}


@given(logs(), lives, lives)
def test_live_state_noted_between_boundaries_changes_no_view(made, live, later):
    _, log = made
    compact_log(log, msgspec.structs.replace(ask_for("foldline"), live=live))
    before = view_of(log).view()
    add_entry(log, Noted("", None, "live_state", {one.name: one.text for one in later}))
    assert view_of(log).view() == before


@given(logs(), lives)
def test_a_hand_off_of_any_session_begins_one_that_is_whole_and_valid(made, live):
    _, log = made
    fold = view_of(log)
    start = start_of(fold, Noted("", None, "link", {"session": "s", "how": "handoff", "way": "from"}))
    ask = msgspec.structs.replace(ask_for("foldline"), live=live, goal="Go on with src/app.py")
    try:
        done = run_sync(execute(handoff(CompactionInput(fold, ask, OFFLINE), start), OfflineSummarizer()))
    except FloorExceeded:
        return
    if isinstance(done, Nothing):
        assert not fold.kept
        return
    assert isinstance(done, Compacted)
    entries = opening(start, done)
    assert verify(entries) == []
    fresh = ViewState(entries, counter=OFFLINE)
    assert fresh.tokens <= ask.usable
    for dialect in DIALECTS:
        assert problems(fresh.view(), dialect) == []
