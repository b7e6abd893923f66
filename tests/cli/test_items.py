"""Lists of OpenAI Responses items on the command line: found out by content, folded, converted."""

from __future__ import annotations

import json

import pytest
from tests.cli.calling import coding_session, write_lines
from tests.dialects.items import long_list

from foldline.dialects import get

ITEMS = get("openai-responses")


@pytest.fixture(params=["list.json", "lines.jsonl"])
def items(request, tmp_path):
    path = tmp_path / request.param
    if path.suffix == ".jsonl":
        return write_lines(path, long_list())
    path.write_text(json.dumps(long_list()), encoding="utf-8")
    return path


def test_a_file_of_items_is_folded_in_and_out(foldline, items):
    done = foldline("compact", items, "--target", 2000, "--json")
    assert done.code == 0
    assert done.json["dialect"] == "openai-responses"
    messages = done.json["messages"]
    assert ITEMS.validate(messages) == []
    kept = long_list()[done.json["cut"]["first_kept"] :]
    assert messages[-len(kept) :][0] == kept[0]
    assert messages[-1] == kept[-1]


def test_messages_become_items(foldline, tmp_path):
    path = write_lines(tmp_path / "session.jsonl", coding_session())
    done = foldline("compact", path, "--target", 4000, "--dialect", "openai-responses", "--json")
    assert done.code == 0
    assert ITEMS.validate(done.json["messages"]) == []
    assert any(item.get("type") == "function_call" for item in done.json["messages"])
