"""The state machine of compactions: it receives events and returns the action that is due."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.talk import assistant, call, entries, reminder, tool, user

from foldline.core.decide.breaker import COOLDOWN, NEW_MESSAGES, STRIKES, breaker_state
from foldline.core.decide.overflow import mended_already
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS, preset
from foldline.core.decide.triggers import GROWTH, Compact, Refuse, StartDraft, Stay
from foldline.core.decide.watch import CommitDraft, Wait, Watch, WatchLimits
from foldline.core.log.entries import Checkpoint, Compacted, Noted, Receipt
from foldline.core.log.messages import Usage
from foldline.core.measure.window import Amount, Floor, Window

WINDOW = Window(100_000, output=8_000)
PLAIN = Policy(name="plain", reserve=Amount(tokens=10_000), hard=Amount(fraction=0.9, of="usable"))
SOFT = msgspec.structs.replace(PLAIN, soft=Amount(fraction=0.5, of="usable"), background=True)
USABLE, HARD = 90_000, 81_000
LOW, MIDDLE, HIGH, FULL = 40_000, 60_000, 85_000, 95_000  # below soft, above it, above hard, above usable


class View(msgspec.Struct):
    """A view with the given sizes."""

    tokens: int
    messages: int = 50
    new_messages: int = 5
    path: list = []
    now: float = 0.0
    least: int = 1_000

    @property
    def size(self):
        return self.tokens

    @property
    def context(self):
        return self.tokens

    def floor(self):
        return Floor(pins=self.least)

    def breaker(self):
        return breaker_state(self.path, self.now)

    def mended(self):
        return mended_already(self.path)


def watch(policy=SOFT, *said, **more) -> Watch:
    """A machine after its first two checks and these events."""
    made = Watch(WatchLimits(policy, WINDOW, **more))
    made.mark_checked()
    for message in said or (user(),):
        made.said([message])
    return made


def boundary(reason="threshold"):
    return Compacted("c", None, Checkpoint("t", "s"), Receipt(reason))


# ---- moments


def test_nothing_is_due_without_a_moment():
    idle = watch()
    idle.mark_checked()
    assert idle.due(View(FULL)) is None
    idle.said([user()])
    assert idle.due(View(FULL)) == Compact("threshold", "turn_start", FULL, USABLE, HARD)


@pytest.mark.parametrize(
    ("message", "moment"),
    [
        (user(), "turn_start"),
        (assistant("done"), "after_reply"),
        (tool("c1"), "after_tools"),
        (reminder(), None),
    ],
)
def test_a_message_brings_about_its_moment(message, moment):
    for one in ("turn_start", "after_reply", "after_tools"):
        due = watch(msgspec.structs.replace(PLAIN, check_at=(one,)), message).due(View(FULL))
        assert (due is not None) == (one == moment), one


def test_of_messages_said_at_once_the_last_makes_the_moment():
    batch = watch(msgspec.structs.replace(PLAIN, check_at=("after_reply",)), reminder())
    batch.said([assistant("", call("c1")), tool("c1")])
    assert batch.due(View(FULL)) is None
    batch.said([tool("c1"), assistant("done")])
    assert isinstance(batch.due(View(FULL)), Compact)


def test_a_session_goes_on_with_another_model_by_looking_at_its_window():
    begun = Watch(WatchLimits(SOFT, WINDOW))
    assert begun.due(View(FULL)) is None
    small = Window(50_000, output=8_000)
    begun.use(WatchLimits(SOFT, small))
    assert begun.due(View(HIGH)) is None
    begun.use(WatchLimits(SOFT, small), switched=True)
    assert begun.due(View(HIGH)).reason == "model_switch"


def test_an_overflow_that_came_as_a_reply_counts_before_a_threshold():
    loud = watch()
    loud.said([assistant("x", usage=Usage(input=WINDOW.context + 1))])
    assert loud.due(View(LOW)).reason == "overflow"
    guessed = watch(known=False)
    guessed.said([assistant("x", usage=Usage(input=WINDOW.context + 1))])
    assert guessed.due(View(LOW)) is None


def test_an_undo_stands_until_something_is_said():
    undone = watch()
    undone.undone(fits=True)
    assert undone.due(View(HIGH)) is None
    undone.undone(fits=False)
    due = undone.due(View(FULL))
    assert isinstance(due, Compact)
    assert due.reason == "threshold"


def looks(policy, *said):
    return watch(policy, *said).checks_at_once(())


def test_right_behind_a_message_only_those_policies_look_that_say_so():
    for message, behind_reply, behind_append in (
        (assistant("done"), True, True),
        (assistant("", call("c1")), False, False),
        (user(), False, True),
        (tool("c1"), False, True),
        (reminder(), False, False),
    ):
        assert looks(preset("pi"), message) == behind_reply, message
        assert looks(preset("foldline"), message) == behind_reply, message
        assert looks(preset("gencode"), message) == behind_append, message
        assert not looks(preset("klaude"), message)
        assert not looks(preset("amp"), message)
    assert not watch(preset("gencode"), tool("c1")).checks_at_once(("c2",)), "c2 waits for its result"


def test_what_was_looked_at_is_not_looked_at_twice_and_what_came_since_is():
    one = watch(PLAIN, assistant("done"))
    seen = one.event_number
    assert isinstance(one.due(View(FULL)), Compact)
    assert not one.has_checked(seen), "it is being seen to"
    one.said([user()])
    one.mark_checked(seen)
    assert one.has_checked(seen)
    assert not one.checks_at_once(())
    assert one.due(View(FULL)).moment == "turn_start"
    one.mark_checked()
    assert one.due(View(FULL)) is None


# ---- drafts


def test_a_draft_is_begun_at_the_soft_trigger_and_committed_at_the_hard_one():
    one = watch()
    assert one.due(View(LOW)) is None
    one.said([user()])
    assert isinstance(one.due(View(MIDDLE)), StartDraft)
    one.draft_begun()
    one.said([user()])
    assert one.due(View(MIDDLE)) is None, "one draft at a time"
    one.draft_made()
    one.said([user()])
    assert one.due(View(MIDDLE)) is None
    one.said([user()])
    assert one.due(View(HIGH)) == CommitDraft("threshold")


def test_a_draft_that_will_not_do_is_dropped_and_a_boundary_made_now():
    one = watch()
    one.draft_made()
    assert isinstance(one.due(View(HIGH)), CommitDraft)
    one.draft_dropped()
    assert isinstance(one.due(View(HIGH)), Compact)


def test_a_view_that_fits_does_not_wait_for_a_draft_in_the_making_one_that_does_not_fit_does():
    one = watch()
    one.draft_begun()
    assert one.due(View(HIGH)) is None
    assert isinstance(one.due(View(FULL)), Wait), "the moment stays until the draft is there"
    one.draft_made()
    assert isinstance(one.due(View(FULL)), CommitDraft)


def test_a_draft_that_pays_at_once_is_committed_above_the_soft_trigger():
    one = watch()
    one.draft_made()
    assert one.due(View(LOW), pays=True) is None
    one.said([user()])
    assert one.due(View(MIDDLE), pays=True) == CommitDraft("threshold")


def test_a_draft_that_fails_is_not_begun_again_before_the_view_has_grown():
    one = watch()
    assert isinstance(one.due(View(MIDDLE)), StartDraft)
    one.draft_begun()
    [strike] = one.ended("threshold", "no_gain", View(MIDDLE), 7.0, drafted=True)
    assert (strike.kind, strike.data, strike.at) == ("strike", {"reason": "threshold", "why": "no_gain"}, 7.0)
    one.said([user()])
    assert one.due(View(MIDDLE + USABLE // GROWTH - 1)) is None
    one.said([user()])
    assert isinstance(one.due(View(MIDDLE + USABLE // GROWTH)), StartDraft)


# ---- failures


def test_a_compaction_that_gains_too_little_waits_for_growth_until_something_was_folded():
    one = watch(PLAIN)
    one.ended("threshold", "no_gain", View(HIGH), 0.0)
    assert one.due(View(HIGH)) is None
    one.said([user()])
    one.folded()
    assert isinstance(one.due(View(HIGH)), Compact)


@pytest.mark.parametrize("reason", ["manual", "agent", "target"])
def test_what_somebody_asked_for_is_told_to_them_and_leaves_nothing(reason):
    one = watch(PLAIN)
    assert one.ended(reason, "error", View(HIGH), 0.0) == ()
    assert one.ended(reason, "no_gain", View(HIGH), 0.0) == ()
    assert isinstance(one.due(View(HIGH)), Compact)


def test_a_compaction_with_nothing_to_do_has_not_failed():
    for why in ("nothing_new", "nothing_to_fold", "disabled", "signed_thinking"):
        assert watch(PLAIN).ended("threshold", why, View(HIGH), 0.0) == ()


def test_errors_cool_down_twice_as_long_each_time():
    path, lengths = [], []
    for _ in range(5):
        strike, pause = watch(PLAIN).ended("threshold", "error", View(HIGH, path=path), 100.0)
        lengths.append(pause.data["until"] - 100.0)
        path += [strike, pause]
    assert lengths == [COOLDOWN, 2 * COOLDOWN, 4 * COOLDOWN, 8 * COOLDOWN, 600.0]
    assert watch(PLAIN).due(View(HIGH, path=path[:2], now=100.0 + COOLDOWN - 1)) is None
    assert watch(PLAIN).due(View(HIGH, path=path[:2], now=100.0 + COOLDOWN)) is not None


def test_three_failures_open_the_breaker_for_thresholds_not_for_an_overflow():
    path = [note for _ in range(STRIKES) for note in watch().ended("threshold", "floor", View(HIGH), 0.0)]
    assert watch(PLAIN).due(View(HIGH, path=path)) is None
    assert isinstance(watch(PLAIN).on_overflow(View(HIGH, path=path)), Compact)
    later = [*path, *entries(*[user()] * NEW_MESSAGES)]
    assert isinstance(watch(PLAIN).due(View(HIGH, path=later)), Compact)


def test_a_floor_above_usable_is_refused_with_its_parts_as_long_as_it_stands():
    one = watch(PLAIN)
    for _ in range(2):
        due = one.due(View(HIGH, least=USABLE + 1))
        assert isinstance(due, Refuse)
        assert due.breakdown == {"pins": USABLE + 1}
    assert isinstance(one.due(View(HIGH)), Compact)


# ---- overflows


def test_an_overflow_is_mended_once_for_a_user_message_and_again_after_a_reply():
    one, path = watch(PLAIN), entries(user())
    assert one.on_overflow(View(FULL, path=path)) == Compact("overflow", "overflow", FULL, USABLE)
    path = [*path, boundary("overflow")]
    assert one.on_overflow(View(FULL, path=path)).why == "mended"
    path = [*path, *entries(tool("c1"), reminder())]
    assert one.on_overflow(View(FULL, path=path)).why == "mended"
    for said in (assistant("x"), user()):
        assert isinstance(one.on_overflow(View(FULL, path=[*path, *entries(said)])), Compact)
    assert isinstance(one.on_overflow(View(FULL, path=[*entries(user()), boundary()])), Compact)


def test_a_policy_may_forbid_to_mend_and_failures_to_mend_do():
    assert watch(preset("amp")).on_overflow(View(FULL)) == Stay("disabled", "overflow", FULL, 100_000)
    path = [n for _ in range(STRIKES) for n in watch().ended("overflow", "no_gain", View(FULL), 0.0)]
    assert watch(PLAIN).on_overflow(View(FULL, path=path)).why == "breaker"
    assert isinstance(watch(PLAIN).on_overflow(View(FULL, least=USABLE + 1)), Refuse)


# ---- whatever happens

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "tool", "reminder", "switch", "undo", "overflow"]),
        st.integers(0, 12_000),  # tokens that the view grows by
        st.sampled_from(["folded", "no_gain", "nothing_new", "error", "floor", "slow"]),
    ),
    min_size=1,
    max_size=60,
)
SAID = {"user": user(), "assistant": assistant("x"), "tool": tool("c1"), "reminder": reminder()}


class Driver:
    """Performs each due action with a chosen outcome, and checks the guarantees of the machine."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.watch = Watch(WatchLimits(policy, WINDOW))
        self.view = View(10_000, path=[])
        self.clock = 0.0

    def take(self, what, grows, outcome):
        self.clock += 30.0
        self.view = msgspec.structs.replace(self.view, tokens=self.view.tokens + grows, now=self.clock)
        if what in SAID:
            self.view.path += entries(SAID[what])
            self.watch.said([SAID[what]])
        elif what == "switch":
            self.watch.use(self.watch.limits, switched=True)
        elif what == "undo":
            self.watch.folded()
            self.watch.undone(fits=self.view.tokens <= USABLE)
        else:
            found = self.watch.on_overflow(self.view)
            if isinstance(found, Compact):
                assert not self.view.mended()
                assert not self.view.breaker().open_on_overflow
                self.end("overflow", outcome)
        self.ask(outcome)

    def ask(self, outcome):
        for _ in range(5):
            state = self.watch.draft
            due = self.watch.due(self.view)
            self.promised(due, state)
            if due is None:
                return
            if isinstance(due, CommitDraft | Wait):
                self.watch.draft_dropped()
                if outcome == "folded":
                    self.fold("threshold")
                    self.watch.mark_checked()
                    return
            elif isinstance(due, StartDraft):
                self.watch.draft_begun()
                if outcome == "folded":
                    self.watch.draft_made()
                elif outcome != "slow":
                    self.end("threshold", outcome, drafted=True)
            else:
                self.end(due.reason, outcome)
                self.watch.mark_checked()
        raise AssertionError("it asks for more and more")

    def promised(self, due, state):
        if isinstance(due, Compact | StartDraft) and due.reason == "threshold":
            assert not self.view.breaker().open
            assert due.size > due.threshold
        if isinstance(due, StartDraft):
            assert state == "none"
        if isinstance(due, CommitDraft):
            assert state == "ready"
        if isinstance(due, Wait):
            assert state == "making"
            assert self.view.tokens > USABLE
        assert due is None or self.policy.enabled

    def end(self, reason, outcome, *, drafted=False):
        if outcome in ("folded", "slow"):
            self.fold(reason)
            return
        self.view.path += self.watch.ended(reason, outcome, self.view, self.clock, drafted=drafted)

    def fold(self, reason):
        self.view.path.append(boundary(reason))
        self.view.tokens //= 3
        self.watch.folded()


@pytest.mark.parametrize("policy", [SOFT, PLAIN, *PRESETS.values()], ids=lambda policy: policy.name)
@given(steps=STEPS)
def test_whatever_happens_it_ends_and_keeps_to_its_promises(policy, steps):
    driver = Driver(policy)
    for step in steps:
        driver.take(*step)


@given(STEPS)
def test_a_machine_that_is_off_asks_for_nothing(steps):
    off = Driver(msgspec.structs.replace(SOFT, enabled=False))
    for what, grows, outcome in steps:
        off.take(what, grows, outcome)
    assert not [e for e in off.view.path if isinstance(e, Compacted | Noted)]
    assert off.watch.draft == "none"
