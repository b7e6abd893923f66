"""Precision and recall of the constraint rules on sentences labelled by hand (see docs/ledger.md).

The recorded sentences are not stored: the labels name a message of a recorded session and the hash of the
sentence. Half of all sentences, by the last digit of their hash, was held out while the rules were made.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from foldline.core.ledger.facts.constraints import candidates
from foldline.core.ledger.text.cues import is_constraint
from foldline.core.ledger.text.origin import spans

ROOT = Path(__file__).parents[3]
LABELS = [
    json.loads(line)
    for line in (ROOT / "tests/data/constraint_sentences.jsonl").read_text("utf-8").splitlines()
]

LATER = [
    json.loads(line)
    for line in (ROOT / "tests/data/constraint_sentences_later.jsonl").read_text("utf-8").splitlines()
]
"""Four rounds of sentences that were written after the rules, which were mended by each."""


def digest(sentence: str) -> str:
    return hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).hexdigest()


@functools.lru_cache(maxsize=4)
def lines_of(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as stream:
        return stream.readlines()


def sentence_of(label: dict[str, Any], sessions: Path) -> str:
    """The labelled sentence; "" where its message is no longer taken for the user's own words."""
    if "text" in label:
        return label["text"]
    text = json.loads(lines_of(sessions / label["file"])[label["message"]])["text"]
    found = (sentence for span in spans(text) for sentence in candidates(span))
    return next((sentence for sentence in found if digest(sentence) == label["sha256"]), "")


def is_held_out(label: dict[str, Any]) -> bool:
    return int((label.get("sha256") or digest(label["text"]))[-1], 16) % 2 == 1


def score(labels: list[dict[str, Any]], sessions: Path) -> tuple[float, float]:
    counts = Counter((is_constraint(sentence_of(label, sessions)), label["label"]) for label in labels)
    found, wrong, missed = counts[True, True], counts[True, False], counts[False, True]
    return found / (found + wrong), found / (found + missed)


def test_half_of_the_sentences_are_recorded() -> None:
    kinds = Counter(label["source"] for label in LABELS)
    assert min(kinds["written"], kinds["recorded"]) >= 250
    assert all("text" not in label for label in LABELS if label["source"] == "recorded")


@pytest.mark.parametrize("held_out", [False, True])
def test_written_sentences(held_out: bool) -> None:
    rows = [row for row in LABELS if row["source"] == "written" and is_held_out(row) is held_out]
    precision, recall = score(rows, ROOT)
    assert precision >= 0.95
    assert recall >= 0.93


def test_sentences_that_were_written_after_the_rules() -> None:
    precision, recall = score(LATER, ROOT)
    assert precision >= 0.95
    assert recall >= 0.95


@pytest.mark.parametrize(
    ("source", "least_precision", "least_recall"), [("recorded", 0.70, 0.86), ("", 0.90, 0.93)]
)
def test_held_out_sentences(recorded: Path, source: str, least_precision: float, least_recall: float) -> None:
    rows = [row for row in LABELS if source in ("", row["source"]) and is_held_out(row)]
    rows.sort(key=lambda row: row.get("file", ""))
    precision, recall = score(rows, recorded / "sessions")
    assert precision >= least_precision
    assert recall >= least_recall
