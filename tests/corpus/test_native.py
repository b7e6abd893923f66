"""Session files as their agents wrote them: read, folded from their newest compaction on, and from the start."""

from __future__ import annotations

from itertools import product

import pytest
from tests.support import corpus

from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Compacted, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.loading import from_records
from foldline.transcripts import CompactionRecord, MessageRecord, read

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_collection")]

NAMES = ("claude-code-1", "claude-code-2", "claude-code-3", "pi-1", "pi-2")
SHARES = (0.1, 0.5)


@pytest.fixture
def native(recorded):
    return recorded / "native"


def records(native, name):
    return list(read(native / f"{name}.jsonl"))


@pytest.mark.parametrize("name", NAMES)
def test_every_message_is_loaded_and_every_compaction_is_a_boundary(native, name):
    found = records(native, name)
    heard = [record for record in found if isinstance(record, MessageRecord)]
    folded = [record for record in found if isinstance(record, CompactionRecord)]
    loaded = from_records(found, OFFLINE)
    boundaries = [entry for entry in loaded.entries if isinstance(entry, Compacted)]
    left_out = {index for index, _ in loaded.orphans}
    assert set(loaded.index.values()) | left_out == set(range(len(heard)))
    assert [entry.checkpoint.summary for entry in boundaries] == [record.summary for record in folded]
    assert all(entry.receipt.reason == "imported" for entry in boundaries)
    assert len(heard) > 100


def test_pi_keeps_what_its_own_compactions_kept(native):
    loaded = from_records(records(native, "pi-1"), OFFLINE)
    boundaries = [entry for entry in loaded.entries if isinstance(entry, Compacted)]
    said = {entry.id for entry in loaded.entries if isinstance(entry, Said)}
    assert len(boundaries) == 2
    assert all(entry.first_kept in said for entry in boundaries)
    fold = ViewState(loaded.entries, counter=OFFLINE)
    assert fold.boundary is not None
    assert fold.boundary.id == boundaries[-1].id
    assert fold.kept[0].id == boundaries[-1].first_kept


@pytest.mark.parametrize("from_start", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_view_of_what_was_loaded_is_valid(native, name, from_start):
    loaded = from_records(records(native, name), OFFLINE, from_start=from_start)
    fold = ViewState(loaded.entries, counter=OFFLINE)
    assert list(corpus.check_valid(fold)) == []
    assert (fold.boundary is None) or not from_start


def test_from_the_start_everything_is_in_the_view(native):
    found = records(native, "pi-1")
    whole = ViewState(from_records(found, OFFLINE, from_start=True).entries, counter=OFFLINE)
    newest = ViewState(from_records(found, OFFLINE).entries, counter=OFFLINE)
    assert whole.messages > newest.messages > 0
    assert whole.tokens > newest.tokens > 0


def folds(native, name, from_start, policies):
    loaded = from_records(records(native, name), OFFLINE, from_start=from_start)
    return corpus.check_loaded(loaded, product(policies, SHARES), name)


@pytest.mark.parametrize("from_start", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_folded(native, name, from_start):
    report = folds(native, name, from_start, ["foldline"])
    assert report.wrong == []
    assert report.floors == []
    assert report.folds == 2


@pytest.mark.corpus
@pytest.mark.parametrize("from_start", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_folded_under_every_preset(native, name, from_start, record_property):
    report = folds(native, name, from_start, [*PRESETS])
    corpus.record_figures(report, record_property)
    assert report.wrong == []
