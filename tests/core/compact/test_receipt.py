import msgspec
import pytest
from tests.support.talk import assistant, call, entries, results, tool, user

from foldline.core.compact.receipt import by_category, dropped
from foldline.core.log.entries import Edit, Receipt, StandingConstraints
from foldline.core.log.messages import Media, Message, Opaque, Text, ToolResult
from foldline.core.view_items import category


def test_a_message_counts_as_what_it_brings():
    kinds = entries(
        Message("system", (Text("s"),)),
        Message("developer", (Text("d"),)),
        user("u"),
        assistant("a"),
        tool("c", "r"),
        results(("c", "r"), text="and a word"),
    )

    assert [category(entry.message) for entry in kinds] == [
        "system",
        "system",
        "user",
        "assistant",
        "tool results",
        "tool results",
    ]


def test_categories_are_summed_before_and_after():
    before, after = {"user": 6, "assistant": 7}, {"checkpoint": 4, "user": 1}

    assert by_category(before, after) == {"user": (6, 1), "assistant": (7, 0), "checkpoint": (0, 4)}
    assert by_category({}, {}, overhead=9) == {"system prompt and tools": (9, 9)}
    assert by_category({}, {}) == {}


def test_what_left_the_view_is_counted_most_used_tools_first():
    folded = entries(
        user("go"),
        assistant("", call("a", "read"), call("b", "bash"), call("c", "read")),
        results(("a", "1"), ("b", "2"), ("c", "3")),
    )
    edits = [Edit("e", 0, "blanked"), Edit("f", 0, "blanked"), Edit("g", 1, "elided")]

    assert dropped(folded, edits) == {
        "messages": 3,
        "user_messages": 1,
        "calls": {"read": 2, "bash": 1},
        "edits": {"blanked": 2, "elided": 1},
    }
    assert list(dropped(folded, [])["calls"]) == ["read", "bash"]
    assert dropped([], []) == {}


def test_media_that_left_the_view_are_counted_by_kind_and_calls_of_the_provider_as_calls():
    picture = Media("image", "image/png", data="QUJD")
    folded = entries(
        Message("user", (Text("see"), picture, Media("document", "application/pdf", data="QUJD"))),
        Message("assistant", (Opaque("openai-responses", "mcp_call", {"id": "m", "name": "berths", "arguments": "{}", "output": "free"}),)),
        Message("tool", (ToolResult("c", (picture,)),)),
    )  # fmt: skip

    assert dropped(folded, []) == {
        "messages": 3,
        "user_messages": 1,
        "calls": {"berths": 1},
        "media": {"image": 2, "document": 1},
    }


# ---- receipts are stored and hashed: the form in which they are written never changes


STORED = [
    b'{"reason":"target","constraints":{"kept":1,"texts":["Never push."]}}',
    b'{"reason":"target","constraints":{"kept":0,"texts":[]}}',
    b'{"reason":"target","constraints":{"kept":1,"texts":["Never push."],"excess":["Use tabs."]}}',
    b'{"reason":"target"}',
]


@pytest.mark.parametrize("raw", STORED)
def test_constraints_of_older_logs_are_read_and_written_as_they_were(raw):
    receipt = msgspec.json.decode(raw, type=Receipt)
    assert msgspec.json.encode(receipt) == raw
    packed = msgspec.msgpack.encode(receipt)
    assert msgspec.msgpack.decode(packed) == msgspec.json.decode(raw)
    assert msgspec.msgpack.decode(packed, type=Receipt) == receipt


def test_what_had_no_room_is_told_apart_from_what_is_kept():
    receipt = msgspec.json.decode(STORED[2], type=Receipt)
    assert receipt.constraints == StandingConstraints(1, ("Never push.",), ("Use tabs.",))
