"""Files that agents wrote: into our log, into the other form, opened there by its rules, and back."""

from __future__ import annotations

import msgspec
import pytest
from tests.exports.moving import boundaries, content, export, load, prompts, replies
from tests.support.openers import OPEN

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import plan
from foldline.core.cut.notes import UNANSWERED
from foldline.core.decide.ask import FoldRequest
from foldline.core.log.entries import Said
from foldline.core.log.log import chained
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.dialects import get
from foldline.executor import execute, run_sync
from foldline.policies import policy
from foldline.summarizers.offline import OfflineSummarizer

pytestmark = pytest.mark.slow

NAMES = ("claude-code-1", "claude-code-2", "claude-code-3", "pi-1", "pi-2")
QUICK = ("claude-code-3", "pi-2")
RISING = {"claude-code-2", "claude-code-3"}  # the others hold lines that are older than those before them


@pytest.fixture(
    params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.corpus) for name in NAMES]
)
def name(request):
    return request.param


@pytest.fixture
def native(name, recorded):
    return load((recorded / "native" / f"{name}.jsonl").read_bytes())


def folded(loaded, share):
    """The entries with a boundary of ours that leaves a share of the view, as `export FILE --target` makes it."""
    target = int(ViewState(loaded.entries, counter=OFFLINE).tokens * share)
    ask = FoldRequest(policy("pi"), Window(200_000), "target", target=target, now="2026-01-02T03:04:05Z")
    boundary = run_sync(
        execute(
            plan(CompactionInput(ViewState(loaded.entries, counter=OFFLINE), ask, OFFLINE)),
            OfflineSummarizer(),
        )
    )
    return [*loaded.entries, chained(boundary, loaded.entries[-1].id)]


def native_count(loaded):
    return sum(isinstance(entry, Said) for entry in loaded.entries)


def answered(loaded):
    """What was said, without the results that an export makes up for calls that nothing answered."""
    return [(role, part) for role, part in content(loaded) if getattr(part, "text", "") != UNANSWERED]


def told_in(loaded, *, stops, hours):
    """The replies; without `hours` as in pi's files, which do not say what was cached for an hour."""
    found = replies(loaded, stops=stops)
    return [
        (model, usage if hours else msgspec.structs.replace(usage, cache_write_hour=0), *rest)
        for model, usage, *rest in found
    ]


def same(again, native, *, stops=True, hours=True):
    assert again.warnings == []
    assert answered(again) == answered(native)
    assert told_in(again, stops=stops, hours=hours) == told_in(native, stops=stops, hours=hours)
    assert prompts(again) == prompts(native)
    assert boundaries(again) == boundaries(native)
    assert again.title == native.title


@pytest.mark.parametrize("form", ["pi", "claude-code"])
def test_all_that_was_said_comes_back_and_opens_there(native, name, form):
    raw, told = export(native, form)
    again = load(raw)

    assert again.format == form
    same(again, native, stops=form == "pi", hours=form != "pi")
    context = OPEN[form](raw, rising=name in RISING)
    assert len(context) > 5
    assert told.count > 100


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("codex-1", "results over 12,000 bytes"),
        pytest.param("codex-2", "results over 12,000 bytes", marks=pytest.mark.corpus),
        pytest.param("codex-3", "results over 12,000 bytes", marks=pytest.mark.corpus),
        pytest.param("opencode-1", "costs of replies are zero", marks=pytest.mark.corpus),
        ("opencode-2", "costs of replies are zero"),
    ],
)
def test_a_session_comes_back_from_the_form_it_had(recorded, name, left_out):
    native = load((recorded / "native" / f"{name}.jsonl").read_bytes())
    raw, told = export(native, native.format)
    again = load(raw)

    OPEN[native.format](raw)
    same(again, native)
    assert all(warning.startswith(left_out) for warning in told.warnings)


@pytest.mark.parametrize("form", ["pi", "claude-code"])
def test_a_session_comes_back_through_the_other_tool(native, form):
    there = load(export(native, form)[0])
    back = load(export(there, {"pi": "claude-code", "claude-code": "pi"}[form])[0])

    same(back, native, stops=False, hours=False)


@pytest.mark.parametrize("form", ["pi", "claude-code"])
def test_a_folded_session_opens_in_the_other_tool(native, name, form):
    entries = folded(native, 0.4)
    raw, told = export(entries, form, view=True, model=native.model)
    context = OPEN[form](raw, rising=name in RISING)
    view = ViewState(entries, counter=OFFLINE)
    again = load(raw)
    size = ViewState(again.entries, counter=OFFLINE)

    assert view.boundary.checkpoint.text in str(context[0].get("summary") or context[0]["content"][0]["text"])
    assert size.boundary.checkpoint.text == view.boundary.checkpoint.text
    assert size.boundary.checkpoint.summary == view.boundary.checkpoint.summary
    assert 0.95 * view.tokens <= size.tokens <= 1.05 * view.tokens
    for dialect in ("anthropic", "openai-chat"):
        rendered = get(dialect).render(native_items(size.view()), whole=True)
        assert get(dialect).validate(rendered.messages, rendered.system) == []
    assert context[-1]["role"] in ("user", "assistant", "toolResult", "custom")
    assert told.count < native_count(native)


@pytest.mark.parametrize("form", ["pi", "claude-code"])
def test_a_folded_session_is_folded_again_from_there(native, form):
    entries = folded(native, 0.6)
    moved = load(export(entries, form, view=True)[0])
    again = ViewState(folded(moved, 0.5), counter=OFFLINE)

    assert again.tokens <= ViewState(moved.entries, counter=OFFLINE).tokens / 2
    assert again.boundary.checkpoint.text.count("<foldline-checkpoint") == 1
