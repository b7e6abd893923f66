"""The floor that is named is the least target that can be met, over generated logs."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.support.log import Log
from tests.support.logs import DIALECTS, arguments, as_messages, ask_for, chain, decode, logs, texts, view_of

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import Outcome, plan
from foldline.core.cut.edits import tokens_of
from foldline.core.decide.ask import Nothing
from foldline.core.decide.presets import PRESETS
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem
from foldline.errors import FloorExceeded
from foldline.executor import execute, run_sync
from foldline.summarizers.offline import OfflineSummarizer

policies = st.sampled_from(sorted(PRESETS))
large_or_late = st.one_of(
    st.tuples(
        st.sampled_from(["late result", "orphan result", "results", "one result", "mixed", "same id twice"]),
        st.one_of(texts(), texts(400)),
    ),
    st.tuples(st.sampled_from(["user", "assistant", "system"]), texts(200)),
    st.tuples(st.just("calls"), st.lists(arguments(), min_size=1, max_size=3)),
    st.tuples(st.just("image"), texts(5)),
)


@st.composite
def mended_logs(draw: st.DrawFn) -> Log:
    """Logs of messages that no provider takes as they are: the view leaves parts out and adds notes."""
    dialect = draw(st.sampled_from(DIALECTS))
    script = draw(st.lists(large_or_late, min_size=2, max_size=24))
    return chain(decode(dialect, as_messages(dialect, script)))


def asked(log: Log, policy: str, target: int) -> Outcome | FloorExceeded:
    ask = ask_for(policy, reason="target", target=target)
    try:
        return run_sync(execute(plan(CompactionInput(view_of(log), ask, OFFLINE)), OfflineSummarizer()))
    except FloorExceeded as error:
        return error


def check_floor(log: Log, policy: str) -> None:
    refused = asked(log, policy, 1)
    if not isinstance(refused, FloorExceeded):  # nothing is left of the view
        assert view_of(log).tokens <= 1
        return
    assert refused.floor == sum(refused.breakdown.values())
    below = asked(log, policy, refused.floor - 1)
    assert isinstance(below, FloorExceeded)
    assert below.floor == refused.floor
    made = asked(log, policy, refused.floor)
    if isinstance(made, Nothing):
        assert made.why == "fits"
        return
    assert not isinstance(made, FloorExceeded), made
    after = ViewState([*log.path(), msgspec.structs.replace(made, id="b")], counter=OFFLINE)
    assert made.receipt.tokens_after == after.tokens <= refused.floor


@given(logs(), policies)
def test_a_target_at_the_floor_is_met_and_one_below_names_it(made, policy):
    check_floor(made[1], policy)


@given(mended_logs(), policies)
def test_the_floor_counts_what_a_view_leaves_out_and_the_notes_it_adds(log, policy):
    check_floor(log, policy)


@given(mended_logs())
def test_the_sizes_that_a_cut_reckons_with_are_those_of_the_view(log):
    fold = view_of(log)
    said = [*fold.leading, *fold.kept]
    assert tokens_of(said, fold.edits, fold.view_repairs()) + fold.open_call_tokens == fold.tokens


def test_a_late_result_is_counted_as_the_note_that_quotes_it():
    late = "".join(f"row {i} of the table that came too late\n" for i in range(75))
    script = [
        ("calls", [{"path": "a.py"}]),
        ("user", "Never mind."),
        ("assistant", "Then not."),
        ("same id twice", "b.py"),
        ("results", "both"),
        ("late result", late),
        ("user", "Go on."),
    ]
    log = chain(decode("openai-chat", as_messages("openai-chat", script), singly=True))
    assert any(isinstance(item, AddedItem) and item.kind == "late" for item in view_of(log).view())
    refused = asked(log, "foldline", 450)
    assert isinstance(refused, FloorExceeded)
    assert refused.breakdown["unanswered"] > 500, "the note is 2,000 characters"
    check_floor(log, "foldline")
