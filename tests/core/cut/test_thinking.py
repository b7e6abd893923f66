"""Signed thinking: what is bound, and the open tool loop in which it stays."""

import pytest
from tests.support.talk import assistant, call, calls, entries, reminder, results, signed, tool, user

from foldline.core.cut.thinking import bound, open_loop, stripped
from foldline.core.cut.thinking import signed as is_signed
from foldline.core.log.messages import Opaque, Text, Thinking
from foldline.core.measure.tokens import OFFLINE


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        ([], 0),
        ([user(), assistant("ok")], 2),
        ([user(), calls("a"), tool("a"), assistant("ok")], 4),
        ([user(), assistant("ok"), user("next")], 3),
        ([user(), calls("a")], 1),
        ([user(), calls("a"), tool("a")], 1),
        ([user(), calls("a"), results("a")], 1),
        ([user(), calls("a"), tool("a"), calls("b"), tool("b")], 1),
        ([user(), assistant("ok"), user("next"), calls("a"), tool("a")], 3),
        ([user(), assistant("ok"), user("next"), assistant("hm"), calls("a"), reminder()], 3),
        ([calls("a"), tool("a")], 0),
        ([user(), calls("a"), tool("a"), user("stop")], 4),
        ([user(), calls("a"), results("a", text="and this?")], 1),
    ],
)
def test_an_unfinished_tool_loop_starts_behind_the_prompt(messages, start):
    assert open_loop(entries(*messages)) == start


def test_only_signed_or_encrypted_thinking_is_bound():
    assert bound(Thinking("hm", "sig"))
    assert bound(Opaque("anthropic", "redacted_thinking", {}))
    assert not bound(Thinking("hm"))
    assert not bound(Opaque("anthropic", "server_tool_use", {}))
    assert not bound(Text("hm"))
    assert is_signed(signed("ok"))
    assert not is_signed(assistant("ok"))


def test_signed_parts_are_taken_out_but_in_an_open_loop_and_where_they_are_edited_already():
    kept = entries(signed("a"), signed("b"), user(), signed("", call("c1")), tool("c1"))

    def taken(start, *already):
        return [edit.entry for edit in stripped(kept, start, OFFLINE, set(already))]

    assert taken(0) == [kept[0].id, kept[1].id]
    assert taken(1) == [kept[1].id]
    assert taken(0, (kept[0].id, 0)) == [kept[1].id]
