"""The API's reference and the page of its problems: complete, and plain enough for the strictest policy."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from tests.service.api.client import api
from tests.support import patient

from foldline.service.api.api import OPERATIONS
from foldline.service.problems import _STATUSES, PROBLEMS, slug

SERVICE = Path("src/foldline/service")


class Page(HTMLParser):
    """What a page has: ids, links, and what would load or run something."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.active = set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given["id"]} if "id" in given else set()
        self.links |= {given["href"]} if "href" in given else set()
        if tag in ("script", "link", "img", "iframe", "object") or any(
            name.startswith("on") or name in ("src", "style") for name in given
        ):
            self.active.append((tag, given))


def read(url, path):
    found = patient.get(f"{url}{path}")
    assert found.status_code == 200
    assert found.headers["content-type"].startswith("text/html")
    (style,) = re.findall(r"<style>(.*?)</style>", found.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in found.headers["content-security-policy"]
    return Page(found.text), found.text


def test_the_reference_tells_of_every_operation_and_type_and_loads_nothing():
    with api(tokens={"token-for-tests-1": "default"}) as (client, _):
        page, text = read(client.url, "/api/docs")
        document = patient.get(f"{client.url}/api/openapi.json").json()
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    assert {"foldHistory", "answerHistory"} <= {one["operationId"] for one in operations}
    assert page.ids >= {one["operationId"] for one in operations} | set(document["components"]["schemas"])
    assert page.active == []
    for link in page.links:
        assert link.removeprefix("#") in page.ids if link.startswith("#") else link.startswith("/api/"), link
    assert "Never push to main." in text
    assert {tag for one in operations for tag in one["tags"]} == {tag["name"] for tag in document["tags"]}


@pytest.mark.parametrize("one", [one for one in OPERATIONS if one.body is not None], ids=lambda one: one.name)
def test_every_body_has_an_example_that_is_taken(one):
    read = one.read or msgspec.json.decode
    assert one.example
    msgspec.convert(read(msgspec.json.encode(one.example)), one.body)


def titles():
    """The titles of all problems that the source makes, but for those of pages."""
    found = {title for _, title in _STATUSES.values()}
    for file in SERVICE.rglob("*.py"):
        if "web" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) < 2:
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            status, title = (getattr(arg, "value", None) for arg in node.args[:2])
            if (
                name in ("problem", "Refused", "__init__")
                and isinstance(status, int)
                and isinstance(title, str)
            ):
                found.add(title)
    return found


def test_the_type_of_every_problem_leads_to_its_words():
    assert titles() == set(PROBLEMS)
    with api() as (client, _):
        page, _ = read(client.url, "/api/problems")
        refused = client.get("/sessions/none", 404).json()
        address, _, anchor = refused["type"].partition("#")
        assert (address, anchor) == ("/api/problems", slug(refused["title"]))
        assert page.ids == {slug(title) for title in PROBLEMS}
        assert page.active == []
