"""What the user takes out of the context: valid views, no later fold tells of it, and an undo brings it back."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.support.log import Log
from tests.support.logs import (
    CONSTRAINTS,
    DIALECTS,
    ask_for,
    chain,
    compact_log,
    decode,
    fold_of,
    problems,
    put,
    rendered,
    say,
    steps,
    stored_calls_answered,
    texts,
    write,
)

from foldline.core.compact.chosen_range import folded_since
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.exclude import exclude
from foldline.core.cut.exclude import excluded, left_of
from foldline.core.decide.presets import PRESETS
from foldline.core.log.codec import encode
from foldline.core.log.entries import Compacted, Lifted, Pruned, Said
from foldline.core.log.log import undone
from foldline.core.measure.tokens import OFFLINE
from foldline.errors import InputError
from foldline.executor import execute, run_sync
from foldline.summarizers.offline import OfflineSummarizer

MARK = re.compile(r"mark\d+x")
LONG = "the server keeps failing when the cache of the user is read again " * 6
SPOKEN = ("user", "assistant", "image", "results", "one result", "late result", "mixed", "half mixed")
operations = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(4, 24)),
        st.tuples(st.just("compact"), st.sampled_from([*PRESETS])),
        st.tuples(st.just("target"), st.integers(200, 1_500)),
        st.tuples(st.just("exclude"), st.integers(0, 30)),
        st.tuples(st.just("exclude"), st.integers(0, 30)),
        st.tuples(st.just("exclude part"), st.integers(0, 30)),
        st.tuples(st.just("since"), st.integers(0, 30)),
        st.tuples(st.just("undo"), st.none()),
    ),
    min_size=3,
    max_size=12,
)


def marked(place: int, kind: str, value):
    """Put a word into a text that stands nowhere else."""
    if kind not in SPOKEN:
        return kind, value
    mark = f"mark{place}x"
    return kind, value.replace(".", f" {mark}.", 1) if value in CONSTRAINTS else f"{value} {mark}"


def marks_in(value: object) -> set[str]:
    return set(MARK.findall(encode(value).decode()))


def gone_from(log: Log) -> set[str]:
    """Return the words that stand in what was taken out alone."""
    path = log.path()
    said = [entry for entry in path if isinstance(entry, Said)]
    out = excluded(path)
    left = [one for entry in said if (one := left_of(entry, out)) is not None]
    return marks_in([entry.message.parts for entry in said]) - marks_in([one.message.parts for one in left])


def counting(log: Log) -> list[Compacted | Pruned]:
    out = undone(log.path())
    return [one for one in log.path() if isinstance(one, Compacted | Pruned) and one.id not in out]


def fold(log: Log, kind: str, value):
    if kind == "since":
        return since(log, value)
    if kind == "target":
        return compact_log(log, ask_for(reason="target", target=value))
    return compact_log(log, ask_for(value, context=3_000))


def since(log: Log, number: int) -> Pruned | None:
    """Fold what stands since a message, where that can be done."""
    kept = fold_of(log).kept
    if not kept:
        return None
    job = CompactionInput(fold_of(log), ask_for(context=3_000), OFFLINE)
    try:
        made = run_sync(execute(folded_since(job, kept[number % len(kept)].id), OfflineSummarizer()))
    except InputError:
        return None
    return put(log, made) if isinstance(made, Pruned) else None  # pyright: ignore


def try_exclude(log: Log, number: int, *, part: bool) -> Pruned | None:
    state = fold_of(log)
    said = [*state.leading, *state.quoted, *state.kept]
    if not said:
        return None
    entry = said[number % len(said)]
    try:
        job = CompactionInput(state, ask_for(context=3_000), OFFLINE)
        made = exclude(job, entry.id, number % max(len(entry.message.parts), 1) if part else None)
    except InputError:
        return None
    return put(log, made)  # pyright: ignore


@given(
    dialect=st.sampled_from(DIALECTS),
    script=steps,
    more=st.lists(st.tuples(st.just("user"), texts()), min_size=1, max_size=4),
    half=st.integers(0, 60),
    doing=operations,
)
def test_what_is_taken_out_stays_out_until_an_undo(dialect, script, more, half, doing):
    said = [step for step in (*script, *more) if step[0] != "same id twice"]
    longer = [one for step in said for one in (step, ("assistant", LONG), ("user", LONG))]
    script = [marked(place, kind, value) for place, (kind, value) in enumerate(longer)]
    messages = decode(dialect, write(dialect, script))
    log, messages = chain(messages[:half]), messages[half:]
    for kind, value in doing:
        before = fold_of(log).view()
        if kind == "say":
            for message in messages[:value]:
                say(log, message)
            messages = messages[value:]
        elif kind in ("compact", "target", "since"):
            gone = gone_from(log)
            made = fold(log, kind, value)
            if isinstance(made, Compacted | Pruned):
                assert not gone & marks_in(made), "a fold tells of it"
        elif kind == "undo":
            if standing := counting(log):
                put(log, Lifted("", None, standing[-1].id, lifted=True))
        else:
            made = try_exclude(log, value, part=kind == "exclude part")
            if made is not None:
                assert made.receipt.notes[-1].startswith("taken out of the context by the user: ")
                after = log.leaf
                put(log, Lifted("", None, made.id, lifted=True))
                assert fold_of(log).view() == before, "an undo brings it back"
                log.move(after)
        _check(log)


def _check(log: Log) -> None:
    if not stored_calls_answered(log.path()):
        return
    state = fold_of(log)
    items, gone = state.view(), gone_from(log)
    assert state.tokens >= 0
    for dialect in DIALECTS if items else ():
        assert problems(items, dialect) == []
    for dialect in ("openai-chat", "anthropic"):
        assert not gone & set(MARK.findall(json.dumps(rendered(items, dialect)))), "the view shows it"
