"""The tool that makes reading exams, on sessions of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.calling import coding_session, write_lines
from tools import reading_exam
from tools.reading_exam import QUESTIONS, ExamError, add_context, key_of, make, newest, table

from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import message_tokens

pytestmark = pytest.mark.slow

ROOT = Path(reading_exam.__file__).parents[1]
NUMBERS = range(1, QUESTIONS + 1)


@pytest.fixture
def session(tmp_path):
    return write_lines(tmp_path / "session.jsonl", coding_session(12)) or tmp_path / "session.jsonl"


@pytest.fixture
def exam(session, tmp_path):
    make(session, tmp_path / "exam", "0.67")
    return tmp_path / "exam"


def mark(folder, letter, marks, readability=7):
    (folder / "answers" / f"{letter}.md").write_text(f"1. so\n\nreadability (1-10): {readability}\n")
    lines = (f"{number}: {given}\n" for number, given in zip(NUMBERS, marks, strict=True))
    (folder / "marks" / f"{letter}.md").write_text("".join(lines))


def test_an_exam_holds_the_numbered_past_and_forms_of_fifteen_questions(exam):
    past = (exam / "past.md").read_text()
    assert past.startswith("### 1 · user\n\nPlease mend module0.py.")
    assert "module11.py" not in past
    assert "**call** read_file\npath: src/module0.py" in past
    for name in ("questions.md", "key.md"):
        text = (exam / name).read_text()
        assert text.count("\n## ") + text.startswith("## ") == 5
        assert "\n15. " in text


def test_a_cut_is_a_number_or_a_share_and_parts_no_call_from_its_results(session, tmp_path):
    assert make(session, tmp_path / "a", "12").cut == 12
    for share in ("0.3", "0.5", "0.7", "0.9"):
        folder = tmp_path / share
        make(session, folder, share)
        said = [json.loads(line) for line in (folder / "past.jsonl").read_text().splitlines()]
        calls = {call["id"] for message in said for call in message.get("tool_calls", ())}
        assert calls == {message["tool_call_id"] for message in said if message["role"] == "tool"}


def test_a_cut_that_is_not_there_says_so(session, tmp_path):
    with pytest.raises(ExamError, match="has 0 compactions"):
        make(session, tmp_path / "a", "compaction:1")
    with pytest.raises(ExamError, match="there is no message before it"):
        make(session, tmp_path / "b", "0")


def test_questions_that_are_written_stay_when_an_exam_is_made_again(session, exam):
    (exam / "questions.md").write_text("1. Why?\n")
    make(session, exam, "0.67")
    assert (exam / "questions.md").read_text() == "1. Why?\n"


def test_contexts_of_two_versions_stand_in_one_exam_without_their_names(exam):
    letters = [
        add_context(exam, "foldline@0.3", ROOT, "before"),
        add_context(exam, "foldline@0.3", ROOT, "after"),
        add_context(exam, "newest@0.3", ROOT, ""),
    ]
    assert len(set(letters)) == 3
    target = 0.3 * reading_exam.exam_of(exam).tokens
    for letter in letters:
        assert 0 < key_of(exam)[letter].tokens <= target
        text = "".join((exam / name / f"{letter}.md").read_text() for name in ("answers", "marks"))
        assert "15. " in text
        text += (exam / "contexts" / f"{letter}.md").read_text()
        assert not any(name in text for name in ("foldline", "newest"))
    with pytest.raises(ExamError, match=r"before foldline@0\.3 exists already"):
        add_context(exam, "foldline@0.3", ROOT, "before")


def test_what_cannot_be_a_context_is_refused(exam, tmp_path):
    with pytest.raises(ExamError, match="no checkout of Foldline"):
        add_context(exam, "foldline@0.3", tmp_path, "")
    with pytest.raises(ExamError, match="wrote no summary"):
        add_context(exam, "agent", ROOT, "")
    with pytest.raises(ExamError, match="nonesuch in"):
        add_context(exam, "nonesuch@0.3", ROOT, "")
    assert key_of(exam) == {}


def test_the_newest_are_whole_but_for_the_end_of_one_that_does_not_fit():
    long, short = (Message("user", (Text(text),)) for text in (f"{'word ' * 2_000}the end", "and then?"))
    kept = newest([short, long, short], 300)
    assert kept[1:] == [short]
    assert kept[0].text.endswith("the end\n")
    assert sum(map(message_tokens, kept)) <= 300
    assert newest([long], 2) == []


def test_marks_are_percent_by_category_and_what_is_open_is_named(exam, monkeypatch, capsys):
    first, second, third = (
        add_context(exam, spec, ROOT, "") for spec in ("newest@0.1", "newest@0.2", "newest@0.3")
    )
    mark(exam, first, [2, 2, 2, 2, 1, 0, 0, 0, 0, 1, 1, 1, 2, 0, 0], readability=6)
    mark(exam, second, [2] * QUESTIONS, readability=9)
    rows = {row[1]: row[3:] for row in table([exam]).rows}
    assert rows["10%"] == ("1", "47", "100", "50", "0", "50", "33", "6.0")
    assert rows["20%"] == ("1", "100", "100", "100", "100", "100", "100", "9.0")
    monkeypatch.setattr("sys.argv", ["reading_exam.py", "marks", str(exam)])
    reading_exam.main()
    assert f"Not marked: exam/{third}." in capsys.readouterr().out


def test_a_form_with_a_gap_has_no_marks(exam):
    letter = add_context(exam, "newest@0.1", ROOT, "")
    with pytest.raises(ExamError, match="no mark for question 1, 2, 3"):
        reading_exam.marks_of(exam, letter)
    mark(exam, letter, [2] * QUESTIONS, readability=11)
    with pytest.raises(ExamError, match="no number from 1 to 10"):
        reading_exam.marks_of(exam, letter)


def test_a_folder_without_an_exam_ends_with_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["reading_exam.py", "marks", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"reading_exam: .*no exam in this folder"):
        reading_exam.main()
