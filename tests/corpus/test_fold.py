"""Every recorded session, folded under every preset at 5, 10, 20 and 50% of its size."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from tests.support import corpus

import foldline
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Text
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view_items import MessageItem
from foldline.dialects import get
from foldline.loading import from_messages

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_collection")]

ALL = corpus.sessions(corpus.ROOT)
SAMPLE = corpus.sample(ALL)
EVERY = [*product(PRESETS, corpus.SHARES)]
FEWER = [*product(PRESETS, [0.05]), *product(["foldline"], [0.1, 0.2, 0.5])]


def folded(path, folds, record_property):
    report = corpus.check_all(corpus.chat_messages(path), folds, path.name)
    corpus.record_figures(report, record_property)
    assert report.wrong == []
    assert report.folds == len(folds)


@pytest.mark.corpus
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_session_under_every_preset_at_every_budget(path, record_property):
    folded(path, EVERY, record_property)


@pytest.mark.corpus
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_session_as_anthropic_messages(path, record_property):
    messages, system = corpus.as_anthropic(path)
    report = corpus.check_native(messages, system, [("foldline", 0.1), ("coop", 0.1)], path.name)
    corpus.record_figures(report, record_property)
    assert report.wrong == []


@pytest.mark.corpus
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_session_from_its_own_newest_compaction_on(path, record_property):
    report = corpus.check_loaded(
        corpus.with_boundaries(path), [("foldline", 0.1), ("gencode", 0.5)], path.name
    )
    corpus.record_figures(report, record_property)
    assert report.wrong == []


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.name)
def test_a_sample_of_the_sessions(path, record_property):
    folded(path, FEWER, record_property)


@pytest.mark.parametrize("policy", ["foldline", "claude-code"])
@pytest.mark.parametrize("path", SAMPLE[-4:], ids=lambda path: path.name)
def test_what_was_folded_is_folded_further(path, policy):
    messages = corpus.chat_messages(path)
    size = corpus.size_of(from_messages(messages, OFFLINE))
    for share in reversed(corpus.SHARES):
        target = int(size * share)
        done = foldline.compact(messages, target, policy)
        assert done.view_tokens <= target
        assert list(corpus.check_second_fold(done, policy, target)) == []
        messages = done.messages
    assert corpus.checkpoint_of(messages) is not None


@pytest.mark.skipif(
    not ALL, reason="no recorded sessions beside the checkout (../shared/data, or FOLDLINE_CORPUS)"
)
def test_the_sample_has_every_agent():
    agents = {corpus.agent(path) for path in ALL}
    assert (
        {corpus.agent(path) for path in SAMPLE}
        == agents
        >= {"claude-code", "codex", "gemini", "opencode", "pi"}
    )
    assert 5 <= len(SAMPLE) <= len(ALL) // 10


# ---- the checks see what they are there for


TALK = [
    {"role": "user", "content": "Look at the importer, please. " * 30},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "def rows(): ...\n" * 200},
    {"role": "assistant", "content": "It reads rows. " * 40},
    {"role": "user", "content": "Now the tests."},
]  # fmt: skip


@pytest.fixture
def fold_of_talk():
    loaded = from_messages(TALK, OFFLINE)
    done = corpus.fold(loaded, "foldline", 600)
    assert list(corpus.check(loaded, done, 600, TALK)) == []
    assert list(corpus.check_second_fold(done, "foldline", 600)) == []
    return loaded, done


def test_a_view_above_its_target_is_seen(fold_of_talk):
    loaded, done = fold_of_talk
    assert any("asked for" in text for text in corpus.check(loaded, done, done.view_tokens - 1, TALK))


def test_a_kept_message_that_is_not_as_received_is_seen(fold_of_talk):
    loaded, done = fold_of_talk
    other = [*TALK[:-1], {"role": "user", "content": "Now the docs."}]
    assert any("not as received" in text for text in corpus.check(loaded, done, 600, other))


def test_a_change_of_the_result_is_seen(fold_of_talk):
    loaded, done = fold_of_talk
    done.messages = done.messages[:-1]
    assert any("one after the other" in text for text in corpus.check(loaded, done, 600, TALK))


def test_an_invalid_result_is_seen(fold_of_talk):
    loaded, done = fold_of_talk
    done.messages = [{"role": "tool", "tool_call_id": "c9", "content": "nobody asked"}, *done.messages]
    assert any(text.startswith("openai-chat: ") for text in corpus.check(loaded, done, 600, TALK))


def test_a_lost_unanswered_message_is_seen(fold_of_talk):
    loaded, done = fold_of_talk
    done.boundary = msgspec.structs.replace(done.boundary, first_kept=None)
    assert any("unanswered" in text for text in corpus.check(loaded, done, 600, TALK))


def test_an_edit_that_the_boundary_does_not_list_is_seen(fold_of_talk):
    loaded, done = fold_of_talk
    last = loaded.entries[-1]
    edit = Edit(last.id, 0, "elided", Text("Now …"), 1)
    view = [MessageItem(last, (edit,))]
    done.messages = get("openai-chat").render([(last.message, (edit,))]).messages
    assert any("does not list" in text for text in corpus.check_kept(view, done, loaded, TALK))


def test_a_second_fold_that_changes_something_is_seen(fold_of_talk):
    _, done = fold_of_talk
    done.messages = TALK
    assert any("second fold" in text for text in corpus.check_second_fold(done, "foldline", 600))
