"""tests/data/parity.toml names tests that exist, and leaves out nothing that the surveys of other systems list."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from tests.support import corpus

ROOT = Path(__file__).parents[2]
ROWS = tomllib.loads((ROOT / "tests" / "data" / "parity.toml").read_text(encoding="utf-8"))["row"]
SURVEY, SEEDS = corpus.ROOT.parent / "RESEARCH.md", corpus.ROOT.parent / "seeds"
# What stands between the names of tests in the survey.
WORDS = frozenset(
    "coop|klaude|gencode|pi|compaction.rs|overflow_recovery.rs|gateway.rs|compaction_store.rs|tests/agent|Go|0.58.3"
    "|pi regression files|Its feature doc lists cases not yet written|its doc only lists them"
    "|The deleted TS engine had no test files".split("|")
)
needs_survey = pytest.mark.skipif(
    not SURVEY.exists(), reason="no surveys beside the recorded sessions (../shared)"
)


def told(section):
    """What the rows of a section tell, as one text of a line a row."""
    return "\n".join(row["what"] for row in ROWS if row["section"] == section)


@cache
def names_in(path):
    """The names of a file's tests, those of classes as Class::test; parsed, not run."""
    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        names.update(
            prefix + one.name for one in inside if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        )
    return names


def survey(start, end):
    text = SURVEY.read_text(encoding="utf-8")
    return text[text.index(start) : text.index(end)]


def test_every_row_names_a_test_or_says_why_there_is_none():
    assert len(ROWS) > 200
    assert [
        row["what"] for row in ROWS if not row.get("tests") and not row.get("note", "").startswith("Not")
    ] == []


def test_every_row_has_the_fields_that_it_may_have():
    known = {"section", "part", "number", "what", "tests", "note"}
    assert [row["what"] for row in ROWS if not {"section", "what"} <= set(row) <= known] == []


def test_every_test_that_is_named_exists():
    named = [name.split("::", 1) for row in ROWS for name in row.get("tests", ())]

    assert len(named) > 400
    assert [f"{path}::{name}" for path, name in named if not (ROOT / path).exists()] == []
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


@needs_survey
def test_no_bug_class_is_left_out():
    text, here = survey("## A2.", "## A3."), told("Bug classes")
    marks = set(re.findall(r"#\d+", text)) | set(re.findall(r"`(\w[^`]*)`", text))
    latent = [line for line in text.splitlines() if re.match(r"- (?:coop|klaude|gencode TS): ", line)]

    assert len(marks) > 60
    assert sorted(mark for mark in marks if not re.search(rf"{re.escape(mark)}(?!\d)", here)) == []
    assert len(latent) == len(re.findall(r"^(?:coop|klaude|gencode TS): ", here, re.MULTILINE)) == 6
    assert "elision" in here
    assert "system-reminder leakage" in here


@needs_survey
def test_no_provider_is_left_out():
    table = survey("## A3.", "## A4.")
    providers = re.findall(r"^\| ([^|`]+?)†?(?: \([^|]*\))? \| `", table, re.MULTILINE)
    here = told("Overflows by provider")

    assert len(providers) > 20
    assert [name for name in providers if name not in here] == []


@needs_survey
def test_no_pain_is_left_out():
    pains = re.findall(r"^(\d+)\. (.+?) - ", survey("## B-B.", "## B-C."), re.MULTILINE)
    here = [(str(row["number"]), row["what"]) for row in ROWS if row["section"] == "Thirty pains"]

    assert len(pains) == 30
    assert here == pains


def expanded(text):
    """Write out `name_{one, two}` as name_one, name_two."""
    return re.sub(
        r"(\w*)\{([^{}]*)\}",
        lambda found: ", ".join(found[1] + end.strip() for end in found[2].split(",")),
        text,
    )


@needs_survey
def test_no_test_of_the_others_is_left_out():
    text = expanded(survey("Appendix A. Upstream test names", "\n# B. ").partition("\n")[2])
    pieces = (piece.strip("`*. \n") for piece in re.split(r"[,;:()]|\. |\n\n", text))
    names = [name for name in pieces if name and not re.fullmatch(r"\d+( e2e)?", name)]
    here = told("Tests of the others")
    lost = [name for name in names if name.split("** ")[-1].strip("`") not in WORDS and name not in here]

    assert len(names) > 110
    assert lost == []


@needs_survey
def test_no_test_that_the_seeds_ask_for_is_left_out():
    here = told("Tests that the seeds ask for")
    coop = re.findall(
        r"^(?:async )?fn (\w+)\(\) \{\n    //", (SEEDS / "coop.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    gencode = re.findall(r"\bit\('([^']+)'\)", (SEEDS / "gencode.md").read_text(encoding="utf-8"))
    moldable = (SEEDS / "moldable.md").read_text(encoding="utf-8")
    wanted = moldable[moldable.index("## Testing Strategy") : moldable.index("## Future Enhancements")]
    cases = re.findall(r"^\d\. \*\*([^*]+)\*\*", wanted, re.MULTILINE)

    assert (len(coop), len(gencode), len(cases)) == (12, 15, 11)
    assert [name for name in [*coop, *gencode, *cases] if name not in here] == []
