"""The Python in README.md and docs/*.md runs: the blocks of a file one after another, in an empty folder.

A block opened by ```python no-run is only compiled: it needs a key, or waits for input. Blocks may await.
"""

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"^```python(?P<how>[ \t]+no-run)?[ \t]*\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")


def blocks(page):
    """The blocks of a page with the line each starts on, so that a failure names it."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        code = compile(
            "\n" * line + found["code"],
            str(page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        yield code, found["how"] is None


def run(page):
    names = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for code, runs in blocks(page):
            done = eval(code, names) if runs else None
            if inspect.iscoroutine(done):
                runner.run(done)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(key, raising=False)  # no page asks a real model
    run(page)


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))],
    ids=lambda page: page.name,
)
def test_links_between_pages_lead_somewhere(page):
    lost = [
        link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()
    ]

    assert lost == []


def anchors(page):
    """What headings of a page are linked by: as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))],
    ids=lambda page: page.name,
)
def test_links_to_a_heading_find_it(page):
    links = re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    lost = [
        f"{name}#{heading}"
        for name, heading in links
        if heading not in anchors(page.parent / name if name else page)
    ]

    assert lost == []


def test_a_block_of_python_is_found_where_there_is_one():
    assert sum(1 for page in PAGES for _ in blocks(page)) >= 5
