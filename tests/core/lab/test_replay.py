from __future__ import annotations

import msgspec
import pytest
from tests.support.talk import assistant, call, entries, reminder, signed, system, tool, user

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import plan
from foldline.core.compact.room import LEAVES
from foldline.core.decide.policy import Keep, Policy
from foldline.core.decide.presets import PRESETS, preset
from foldline.core.decide.triggers import thresholds
from foldline.core.lab.replay import Replay
from foldline.core.lab.tally import UNSEEN_MOST, Learner, Scale
from foldline.core.log.messages import Usage
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.core.measure.window import Amount, Floor, Window
from foldline.errors import FloorExceeded
from foldline.executor import execute, run_sync
from foldline.summarizers.offline import OfflineSummarizer

NONE = Policy(name="none", enabled=False)
LONG = "The parser reads every line of the config and keeps what it cannot name. "


def run(messages, policy=NONE, context=20_000, scale=None, times=(), **more):
    """Replay messages as the shell does; `times` is the time of each. Return the replay."""
    replay = Replay(policy, Window(context=context, output=1_000), OFFLINE, **more)
    if scale is not None:
        replay.scale = scale
    said = entries(*messages, tokens=[message_tokens(message) for message in messages])
    if times:
        said = [msgspec.structs.replace(entry, at=at) for entry, at in zip(said, times, strict=True)]
    for entry in said:
        while (ask := replay.due(entry.message, entry.at)) is not None:
            try:
                outcome = run_sync(
                    execute(plan(CompactionInput(replay.state, ask, OFFLINE)), OfflineSummarizer())
                )
            except FloorExceeded:
                outcome = None
            replay.settle(outcome, 0.5)
        replay.say(entry)
    return replay


def turn(n, steps=2, words=60):
    """A turn with some reads: 2 + 2 x steps messages."""
    talk = [user(f"Please mend module{n}.py. {LONG}")]
    for step in range(steps):
        made = f"c{n}_{step}"
        talk += [
            assistant(f"I read part {step}.", call(made, path=f"src/module{n}.py", offset=step)),
            tool(made, f"part {step} of module{n}: " + LONG * words),
        ]
    return [*talk, assistant(f"module{n}.py is mended.")]


def session(turns=8, **more):
    return [message for n in range(turns) for message in turn(n, **more)]


def test_every_run_of_replies_is_a_call_and_every_prompt_a_turn():
    talk = [
        user("one"),
        assistant("a"),
        assistant("", call("c1")),
        tool("c1"),
        assistant("b"),
        user("two"),
        assistant("c"),
    ]
    replay = run(talk)
    assert [(t.turn, t.calls) for t in replay.turns] == [(1, 2), (2, 1)]
    assert replay.sums.calls == 3


def test_reminders_and_repeated_prompts_begin_no_turn():
    replay = run([user("one"), user("and this"), assistant("a"), reminder(), assistant("b")])
    assert [(t.turn, t.calls) for t in replay.turns] == [(1, 2)]
    assert [t.calls for t in run([assistant("I begin")]).turns] == [1]
    assert run([]).turns == []


def test_a_call_sends_everything_before_it():
    talk = turn(1)
    replay = run(talk, overhead=Floor(system=100, tools=20))
    sizes = [message_tokens(message) for message in talk]
    sent = [120 + sum(sizes[:at]) for at in (1, 3, 5)]
    only = replay.turns[0]
    assert (only.baseline, only.input_tokens, only.peak) == (sent[0], sum(sent), sent[-1])
    assert only.cache_read == sent[0] + sent[1]  # each request begins with the one before
    assert only.output_tokens == sum(sizes[at] for at in (1, 3, 5))
    assert replay.sums.input_tokens == sum(sent)


def test_without_a_policy_nothing_is_folded_and_what_does_not_fit_is_counted():
    replay = run(session(), NONE, context=5_000)
    assert replay.sums.compactions == replay.sums.prunes == 0
    too_large = sum(t.overflows for t in replay.turns)
    assert replay.sums.overflows == too_large > 0
    assert replay.sums.peak > 5_000
    assert not replay.fits
    assert replay.state.messages == 0  # a view that can never be sent is dropped
    roomy = run(session(), NONE, context=500_000)
    assert replay.sums.input_tokens == roomy.sums.input_tokens
    assert roomy.sums.overflows == 0
    assert roomy.fits


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "amp"])
def test_every_preset_stays_inside_the_window(name):
    replay = run(session(12), preset(name), context=20_000)
    assert replay.sums.compactions + replay.sums.prunes > 0
    assert replay.size <= 20_000
    assert replay.sums.input_tokens < run(session(12)).sums.input_tokens
    assert [mark for t in replay.turns for mark in t.boundaries]
    assert replay.sums.seconds >= 0.5


def test_amp_does_nothing_by_itself():
    replay = run(session(12), preset("amp"), context=20_000)
    assert replay.sums.compactions == 0
    assert replay.sums.overflows > 0


def test_a_boundary_says_where_it_was_made_and_what_it_did():
    replay = run(session(12), preset("foldline"), context=20_000)
    marks = [mark for t in replay.turns for mark in t.boundaries]
    assert len(marks) == replay.sums.compactions + replay.sums.prunes
    for t in replay.turns:
        assert all(1 <= mark.call <= t.calls for mark in t.boundaries)
    for mark in marks:
        assert mark.kind in ("compacted", "pruned")
        assert mark.reason in ("threshold", "overflow")
        assert mark.tokens_after < mark.tokens_before


@pytest.mark.parametrize(
    "talk", [session(12, steps=1), session(12, steps=1)[:-1], [*session(12), user("One more.")]]
)
def test_every_boundary_is_before_a_call_of_its_turn_or_behind_the_last_of_all(talk):
    for name in ("foldline", "pi"):
        replay = run(talk, preset(name), context=9_000)
        marks = [mark for t in replay.turns for mark in t.boundaries]
        assert len(marks) == replay.sums.compactions + replay.sums.prunes > 0
        for t in replay.turns:
            most = t.calls + (t is replay.turns[-1] or t.turn == replay.turns[-1].turn)
            assert all(1 <= mark.call <= most for mark in t.boundaries)


def test_the_sizes_of_boundaries_and_summaries_are_those_of_requests():
    talk = session(12)
    for ratio in (1.0, 2.0):
        replay = run(talk, preset("pi"), context=30_000, scale=Scale(ratio=ratio))
        hard = thresholds(preset("pi"), replay.window).hard
        first = next(mark for t in replay.turns for mark in t.boundaries)
        assert hard < first.tokens_before < hard + 3_000 * ratio
        assert replay.sums.summaries.input > 0.8 * (first.tokens_before - first.tokens_after)


def test_a_boundary_ends_the_cache_where_the_view_changes():
    kept = run(session(12), NONE, context=500_000).sums
    folded = run([system(LONG * 20), *session(12)], preset("foldline"), context=20_000)
    assert kept.input_tokens - kept.cache_read == kept.peak  # all is written to the cache once
    sums = folded.sums
    assert sums.input_tokens - sums.cache_read > sums.peak
    first = next(t for t in folded.turns if t.boundaries)
    assert first.cache_read < first.input_tokens


def test_turn_start_alone_overflows_in_a_long_turn_and_is_mended_again_after_a_reply():
    long_turn = turn(1, steps=50)
    coop = msgspec.structs.replace(
        preset("coop"), reserve=Amount(tokens=5_000), keep=Keep(Amount(tokens=3_000))
    )
    replay = run([*turn(0), *long_turn], coop, context=20_000)
    reasons = [mark.reason for t in replay.turns for mark in t.boundaries]
    assert reasons == ["overflow", "overflow"]
    assert replay.sums.overflows == 2  # each is folded away: replies came between them
    both = run([*turn(0), *long_turn], preset("klaude"), context=20_000)
    assert {mark.reason for t in both.turns for mark in t.boundaries} == {"threshold"}
    assert both.sums.overflows == 0


def test_recorded_usage_triggers_nothing():
    loud = [
        msgspec.structs.replace(m, usage=Usage(input=190_000, output=7)) if m.role == "assistant" else m
        for m in session(3)
    ]
    replay = run(loud, preset("foldline"), context=200_000)
    assert replay.sums.compactions == 0
    assert replay.sums.output_tokens == 7 * replay.sums.calls


def test_triggers_see_the_usage_that_the_folded_context_would_have_had():
    replay = run(session(12), preset("coop"), context=45_000)
    assert replay.state.anchor is not None
    usage = replay.state.kept[replay.state.anchor].message.usage
    assert usage.input == 0 or usage.input <= replay.sums.peak


def test_what_cannot_be_folded_is_refused_and_not_tried_at_every_call():
    small = run(turn(1, steps=12, words=3), preset("foldline"), context=20_000, overhead=Floor(tools=20_000))
    assert small.sums.refused > 0
    assert small.sums.refused < small.sums.calls
    assert small.sums.compactions == 0


def test_signed_thinking_waits_for_the_end_of_its_loop():
    talk = [
        user("go"),
        signed("", call("c1")),
        tool("c1", LONG * 20),
        signed("", call("c2")),
        tool("c2", "x"),
        assistant("done"),
    ]
    replay = run([*session(3), *talk], preset("foldline"), context=20_000)
    assert replay.sums.refused == 0


def test_memory_is_that_of_the_view():
    replay = run(session(60), preset("foldline"), context=20_000)
    assert len(replay.state.entries()) < 150
    assert replay.sums.compactions + replay.sums.prunes > 5


def test_what_fills_the_window_is_told_at_the_first_call_of_a_turn():
    replay = run(session(12), preset("pi"), context=20_000, fills=True, overhead=Floor(tools=50))
    last = replay.turns[-1].fills
    assert last["system prompt and tools"] == 50
    assert last["checkpoint"] > 0
    assert sum(last.values()) == replay.turns[-1].baseline
    assert run(session(2)).turns[0].fills == {}


# ---- from our count to the model's


def test_the_first_request_tells_what_no_file_holds():
    learner = Learner(Floor(system=100))
    learner.hear(user(LONG), 400)
    learner.hear(assistant("a", usage=Usage(input=20, cache_read=5_000, output=9)), 10)
    assert learner.scale.overhead == Floor(system=100, tools=5_020 - 500)
    assert learner.scale.ratio == pytest.approx(1.0)
    learner.hear(user(LONG), 1_000)
    learner.hear(assistant("b", usage=Usage(input=8_000)), 10)
    assert learner.scale.ratio > 1
    assert learner.scale.of(1_000) > 1_000


def test_nothing_is_learnt_behind_a_compaction_of_the_recording():
    learner = Learner(Floor())
    learner.folded()
    learner.hear(assistant("a", usage=Usage(input=9_000)), 10)
    assert learner.scale == Scale()


def test_a_request_far_larger_than_its_messages_is_history_not_tools():
    learner = Learner(Floor())
    learner.hear(assistant("a", usage=Usage(input=190_000)), 10)
    assert learner.scale.overhead_tokens == UNSEEN_MOST


def test_the_scale_enters_every_size():
    talk = turn(1)
    plain = run(talk).sums.input_tokens
    assert run(talk, scale=Scale(ratio=1.5)).sums.input_tokens == pytest.approx(1.5 * plain, abs=6)
    assert run(talk, scale=Scale(overhead=Floor(tools=100))).sums.input_tokens == plain + 300


@pytest.mark.parametrize(
    ("name", "before"), [("pi", "user"), ("gencode", "assistant"), ("klaude", "assistant")]
)
def test_a_fold_is_due_behind_the_message_at_which_the_policy_looks(name, before):
    policy = msgspec.structs.replace(
        preset(name),
        reserve=Amount(tokens=2_000),
        keep=Keep(amount=Amount(tokens=1_000)),
        estimator="foldline",
    )
    talk = [
        m
        for n in range(12)
        for m in (user(f"Question {n}. {LONG * 20}"), assistant(f"Answer {n}. {LONG * 20}"))
    ]
    replay, due = Replay(policy, Window(context=6_000, output=500), OFFLINE), []
    for entry in entries(*talk, tokens=[message_tokens(message) for message in talk]):
        while (ask := replay.due(entry.message)) is not None:
            due.append(entry.message.role)
            replay.settle(
                run_sync(execute(plan(CompactionInput(replay.state, ask, OFFLINE)), OfflineSummarizer()))
            )
        replay.say(entry)
    assert before in due
    assert name == "gencode" or set(due) == {before}


# ---- what requests cost


SOFT, HARD = 11_900, 17_000  # tokens, of a window of 20,000
DRAFTS = msgspec.structs.replace(
    preset("foldline"),
    enable_pruning=False,
    hard=Amount(fraction=1.0, of="usable"),
    idle=270,
)


def paused(talk, seconds):
    """The time of each message: one a second, except for a pause before the last turn."""
    last = max(at for at, message in enumerate(talk) if message.is_prompt)
    return [float(at) + (seconds if at >= last else 0) for at in range(len(talk))]


def drafted_talk():
    """A session whose last turn but one ends between the triggers of `DRAFTS`, and a last turn."""
    talk = session(8)
    assert SOFT < run(talk, NONE).size < HARD
    return [*talk, user("And now?"), assistant("Done.")]


def test_a_draft_is_committed_where_the_recording_tells_of_a_pause():
    talk = drafted_talk()
    assert run(talk, DRAFTS, times=paused(talk, 200)).sums.compactions == 0
    idle = run(talk, DRAFTS, times=paused(talk, 280))
    assert idle.sums.compactions == 1
    assert len(idle.turns[-1].boundaries) == 1
    assert idle.turns[-1].baseline < SOFT, "in front of the turn that comes after the pause"


def test_without_times_or_without_the_field_no_pause_is_seen():
    talk = drafted_talk()
    assert run(talk, DRAFTS).sums.compactions == 0
    never = msgspec.structs.replace(DRAFTS, idle=None)
    assert run(talk, never, times=paused(talk, 10_000)).sums.compactions == 0


@pytest.mark.parametrize("name", ["coop", "klaude", "pi", "foldline"])
def test_a_fold_by_itself_leaves_room_below_the_hard_trigger(name):
    policy = msgspec.structs.replace(
        PRESETS[name], reserve=Amount(fraction=0.5), keep=Keep(Amount(tokens=9_000))
    )
    marks = [mark for turn in run(session(16), policy).turns for mark in turn.boundaries]
    hard = thresholds(policy, Window(context=20_000, output=1_000)).hard
    assert marks
    for mark in marks:
        if mark.reason == "threshold" and mark.kind == "compacted":
            assert mark.tokens_after <= LEAVES * hard
