"""Every heading of the seed documents is kept by a test, or says why it is not a behaviour.

`SEED.toml` has a line for each heading of `SEED.md`: a test of this folder by its name, any other by its node
id, a list of these, or "not a behaviour: why". A heading that stands there twice is written "Parent / Heading".
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from tests.docs.test_parity import names_in
from tests.support import corpus

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SEEDS = corpus.ROOT.parent / "seeds"
NO_BEHAVIOUR = "not a behaviour: "
MAPS = sorted(HERE.glob("*.toml"))
SYSTEMS = ["coop", "gencode", "klaude-code", "moldable", "pi-and-research"]


def headings(text):
    """The headings outside code, in order; those that occur twice with the heading above them."""
    found, above = [], {}
    for line in re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL).splitlines():
        if mark := re.match(r"(#+) (.+)", line):
            level, heading = len(mark[1]), mark[2].strip()
            above[level] = heading
            found.append((above.get(level - 1, ""), heading))
    times = Counter(heading for _, heading in found)
    return [heading if times[heading] == 1 else f"{parent} / {heading}" for parent, heading in found]


def places(name):
    """The files in which a test is that a map names."""
    file, apart, test = name.partition("::")
    if apart:
        files = [file] if (ROOT / file).is_file() else []
    else:
        files, test = [path.relative_to(ROOT) for path in HERE.glob("test_*.py")], name
    return [path for path in files if test in names_in(path)]


def lines(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_every_system_has_its_map():
    assert [path.stem for path in MAPS] == SYSTEMS


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_every_heading_has_a_line_and_every_line_a_heading(path):
    seed = SEEDS / f"{path.stem}.md"
    if not seed.exists():
        pytest.skip("no seed documents beside the recorded sessions (../shared)")
    assert list(lines(path)) == headings(seed.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_every_line_names_one_test_that_exists_or_says_why_there_is_none(path):
    for heading, told in lines(path).items():
        if isinstance(told, str) and told.startswith(NO_BEHAVIOUR):
            assert len(told) > len(NO_BEHAVIOUR) + 5, heading
            continue
        for name in [told] if isinstance(told, str) else told:
            assert len(places(name)) == 1, (heading, name)


def test_code_is_no_heading_and_what_occurs_twice_is_named_with_what_is_above():
    text = "# A\n```\n# not this\n```\n## B\n### C\n## D\n### C\n"
    assert headings(text) == ["A", "B", "B / C", "D", "D / C"]
