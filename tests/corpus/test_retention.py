"""Our retention against the reference script on recorded sessions: another implementation of one definition."""

from __future__ import annotations

import gzip
import importlib.util
import json
import random

import pytest
from tests.support import corpus

from foldline.core.lab.retention import cut_at, demand, score, scored_message
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult

REFERENCE = corpus.ROOT.parent / "checks" / "recall_metric.py"
CUTS = (0.5, 0.75)
NEAR = 0.01

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not REFERENCE.exists(), reason="no reference script beside the checkout (../shared/data)"
    ),
]


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("recall_metric", REFERENCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    common = (REFERENCE.parent / "common.txt").read_text(encoding="utf8")
    module.COMMON.update(common.split("\n"))
    module.load = rows  # its own leaves files open, which is an error here
    return module


def rows(path):
    with gzip.open(path, "rt", encoding="utf8") as stream:
        found = [json.loads(line) for line in stream]
    return found[0]["meta"], found[1:]


def message(row):
    if row["role"] == "tool":
        return Message("tool", (ToolResult(row.get("call_id") or "", (Text(row["text"]),)),))
    text = (Text(row["text"]),) if row["text"] else ()
    calls = tuple(ToolCall(c["id"] or "", c["name"], c["args"]) for c in row.get("calls") or [])
    return Message("user" if row["role"] == "summary" else row["role"], (*text, *calls))


def theirs(reference, past, future, views):
    need = reference.needed(past, future)
    handles = {e for e, d in need.items() if d["channel"] == "handle"}
    far = {e for e in handles if need[e]["age"] > 0.1 * reference.total(past)}
    rare = {e for e in far if need[e]["mentions"] <= 2}
    bound = reference.bindings(far, past, future)
    return [
        [
            reference.recall(handles, view),
            reference.recall(far, view),
            reference.bound_recall(bound, view),
            reference.recall(rare, view),
            reference.call_cover(need, view),
        ]
        for view in views
    ]


def ours(past, future, views, common):
    wanted = demand(
        [scored_message(message(row)) for row in past],
        [scored_message(message(row)) for row in future],
        common,
    )
    found = [score(wanted, view) for view in views]
    return [[s.handle, s.far, s.far_bound, s.far_rare, s.steps] for s in found]


def compared(reference, paths, most=10**9):
    """Compare all cases whose past has at most so many tokens; return how many there were."""
    cases = 0
    for path in paths:
        for _, _, _, past, future in reference.cases(str(path), CUTS, 10_000, 10):
            if reference.total(past) > most:
                continue
            budget = reference.total(past) // 10
            views = [reference.BASE[name](past, budget) for name in ("tail", "digest")]
            expected = theirs(reference, past, future, views)
            for one, other in zip(ours(past, future, views, reference.COMMON), expected, strict=True):
                assert one == [None if value is None else pytest.approx(value, abs=NEAR) for value in other]
            cases += 1
    return cases


def test_a_sample_of_cases_scores_the_same(reference):
    assert compared(reference, corpus.sample(corpus.sessions(corpus.ROOT)), most=50_000) >= 5


@pytest.mark.corpus
def test_many_cases_score_the_same(reference):
    paths = corpus.sessions(corpus.ROOT)
    assert compared(reference, random.Random(5).sample(paths, 70)) >= 50


def test_sessions_are_cut_at_the_same_places(reference):
    for path in corpus.sample(corpus.sessions(corpus.ROOT)):
        said = [row for row in rows(path)[1] if row["role"] != "boundary"]
        for share in CUTS:
            assert cut_at([scored_message(message(row)) for row in said], share) == reference.cut_at(
                said, share
            )
