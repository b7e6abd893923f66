"""Which sentences are standing rules: an example of each cue, other sentences, and sentences labelled by hand.

The recorded sentences are not stored: the labels name a message of a recorded session and the hash of the
sentence. What is asked for is precision: a rule that is missed still stands in the conversation.
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
from foldline.core.ledger.text.origin import spans
from foldline.core.ledger.text.wording import cue_of, is_rule

DATA = Path(__file__).parents[2] / "data"
LABELS = [json.loads(row) for row in (DATA / "constraint_sentences.jsonl").read_text("utf-8").splitlines()]
LATER = [
    json.loads(row) for row in (DATA / "constraint_sentences_later.jsonl").read_text("utf-8").splitlines()
]
"""Sentences that were written after an earlier table of cues."""

FOUND = {
    "never, always": [
        "Never push to main directly.", "please ALWAYS run the tests before you push", "We never mock the clock.",
        "Mend the parser, and never touch the lexer.", "The API must stay backwards compatible.",
    ],
    "ban": ["Do not rename database columns.", "You may not modify the generated files.", "Tabs are forbidden."],
    "every": ["All public functions need type hints.", "Handlers must return within 200 ms.", "Error messages shouldn't name files."],
    "only, no": ["Only use the standard library.", "Only Alice may approve refunds.", "No network access in tests."],
    "keep, avoid": ["Keep functions under 40 lines.", "Avoid mocking the database.", "I prefer composition over inheritance."],
    "for good": ["Under no circumstances change the schema.", "We don't use default exports here."],
    "whenever": ["Whenever you add a flag, document it in the README.", "Ask me before deleting anything."],
    "manner": ["Answer me in German.", "Use pnpm, not npm.", "Use single quotes for strings."],
    "german": [
        "Antworte immer auf Deutsch.", "Rühr den Ordner ablage nicht an.", "Bitte verschicke nie eine Mail.", "Keine Emojis.",
        "Die Schnittstelle darf sich nicht ändern.",
    ],
    "french": ["Ne modifie jamais ce dossier.", "Réponds toujours en français.", "Pas d'images dans les courriels."],
    "spanish": ["Nunca borres los archivos.", "Usa siempre comillas simples.", "Está prohibido tocar la carpeta legacy."],
    "chinese": ["不要修改这个目录下的文件。", "以后所有注释都用中文写。", "只有编辑可以发布文章。"],
    "japanese": ["変数名は必ず英語にしてください。", "絵文字は使わないでください。"],
    "russian": ["Никогда не меняй эту схему."],
}  # fmt: skip


def test_every_cue_finds_its_examples() -> None:
    assert {cue: [cue_of(one) for one in found] for cue, found in FOUND.items()} == {
        cue: [cue] * len(found) for cue, found in FOUND.items()
    }


@pytest.mark.parametrize(
    "sentence",
    [
        # for one task or for now
        "Don't push.", "You must answer by 5pm", "Don't commit yet.", "Please don't do that.", "Just this once, skip the tests.",
        "Don't change anything, just let me know.", "Stop, not staging!", "When you are done, push the branch.", "Use option 2.",
        "Keep the first paragraph and delete the rest.", "Bitte nicht jetzt, ich bin in einer Besprechung.", "先不要提交。",
        # requirements of a program
        "The request itself must not cost a token.", "The button should be red.", "Add a check that all amounts are positive.",
        # reports
        "No errors in the log.", "No tests ran.", "No matching rows found.", "I got a crash, that should never happen.", "It always crashes when I never expected it.", "I never got the mail yesterday.",
        "The docs say that you must always call init first.", "Funktioniert nie.", "Der Server geht nicht an.", "No funciona en Safari.",
        "La página nunca termina de cargar.", "Le test échoue toujours.", "これは必ず失敗します。", "这个页面总是加载不出来。",
        # questions and thoughts
        "Should we always use UTC here?", "why do we never close the connection", "I guess we should never do that.", "你能一定要吗？",
        # programs and quotations
        "main.go:12: must not be nil", "TypeError: id must be a string", "Warning: you should never run this as root.",
        "The log prints `never push to main` on start.", 'My boss wrote: "Never invite the press."', "- Never " + "x" * 500, "Never", "",
    ],
)  # fmt: skip
def test_what_is_no_rule(sentence: str) -> None:
    assert cue_of(sentence) is None


# ---- sentences that were labelled by hand


def digest(sentence: str) -> str:
    return hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).hexdigest()


@functools.lru_cache(maxsize=4)
def lines_of(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as stream:
        return stream.readlines()


def sentence_of(label: dict[str, Any], sessions: Path) -> str:
    """The labelled sentence; "" if its message no longer counts as written by the user."""
    if "text" in label:
        return label["text"]
    text = json.loads(lines_of(sessions / label["file"])[label["message"]])["text"]
    found = (sentence for span in spans(text) for sentence in candidates(span))
    return next((sentence for sentence in found if digest(sentence) == label["sha256"]), "")


def score(labels: list[dict[str, Any]], sessions: Path = DATA) -> tuple[float, float]:
    counts = Counter((is_rule(sentence_of(label, sessions)), label["label"]) for label in labels)
    found, wrong, missed = counts[True, True], counts[True, False], counts[False, True]
    return found / (found + wrong), found / (found + missed)


def test_written_sentences() -> None:
    precision, recall = score([row for row in LABELS if row["source"] == "written"])
    assert precision >= 0.97
    assert recall >= 0.7


def test_sentences_that_were_written_after_an_earlier_table() -> None:
    precision, recall = score(LATER)
    assert precision >= 0.97
    assert recall >= 0.45


def test_recorded_sentences(recorded: Path) -> None:
    rows = sorted((row for row in LABELS if row["source"] == "recorded"), key=lambda row: row["file"])
    precision, recall = score(rows, recorded / "sessions")
    assert precision >= 0.88
    assert recall >= 0.4
