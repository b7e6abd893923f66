"""A target is used: what the sessions as their agents wrote them leave free of it."""

from __future__ import annotations

import pytest
from tests.support import corpus

from foldline.core.log.entries import Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import MessageItem
from foldline.errors import FloorExceeded

pytestmark = pytest.mark.slow

NATIVE = sorted((corpus.ROOT / "native").glob("*.jsonl"))
TARGETS = (20_000, 32_000, 50_000)
TOLD = (("claude-code-2", 20_000), ("gemini-1", 20_000), ("claude-code-3", 32_000), ("claude-code-2", 50_000))


def free_of(name: str, target: int) -> float | None:
    """Return the part of a target that a fold leaves free; None where all that was said fits, or nothing does."""
    loaded = corpus.with_boundaries(corpus.ROOT / "native" / f"{name}.jsonl")
    try:
        done = corpus.fold(loaded, "foldline", target)
    except FloorExceeded:
        return None
    return None if done.boundary is None else 1 - done.view_tokens / target


@pytest.mark.skipif(
    not NATIVE, reason="no recorded sessions beside the checkout (../shared/data, or FOLDLINE_CORPUS)"
)
@pytest.mark.parametrize(("name", "target"), TOLD)
def test_at_most_a_tenth_of_a_target_stays_free(name, target):
    free = free_of(name, target)
    assert free is None or 0 <= free <= 0.1


@pytest.mark.corpus
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.name)
def test_at_most_a_tenth_of_a_target_stays_free_of_any_session(path, target):
    free = free_of(path.stem, target)
    assert free is None or 0 <= free <= 0.1


@pytest.mark.skipif(
    not NATIVE, reason="no recorded sessions beside the checkout (../shared/data, or FOLDLINE_CORPUS)"
)
def test_a_listing_that_nobody_typed_does_not_displace_the_conversation():
    loaded = corpus.with_boundaries(corpus.ROOT / "native" / "pi-1.jsonl")
    newest = next(entry for entry in reversed(loaded.entries) if isinstance(entry, Said))
    assert newest.message.injected
    assert newest.tokens > 20_000
    done = corpus.fold(loaded, "foldline", 50_000)
    view = ViewState([*loaded.entries, done.boundary], counter=OFFLINE).view()
    kept = [item for item in view if isinstance(item, MessageItem)]
    shown = next(item for item in kept if item.entry.id == newest.id)
    listed = newest.tokens - sum(edit.saved for edit in shown.edits)
    assert listed <= 5_000  # half of what the policy keeps
    assert done.view_tokens - listed > 40_000
