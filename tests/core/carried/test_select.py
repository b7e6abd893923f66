"""Texts carried over a fold: the newest of each kind that fits in full, the others by name."""

from __future__ import annotations

from foldline.core.carried.select import A_BLOCK, begun, carry
from foldline.core.log.entries import Carried, Said
from foldline.core.log.messages import Message, Role, Text


def count(text: str) -> int:
    return len(text.split())


def said(entry: str, role: Role, text: str) -> Said:
    return Said(entry, None, Message(role, (Text(text),)), "", count(text))


def rules(words: int, path: str = "/a/CLAUDE.md") -> str:
    return f"Contents of {path} (project instructions, checked in):\n{'oil ' * words}"


ENTRIES = [
    said("m1", "developer", "# Mode\nread only"),
    said("m2", "user", rules(5)),
    said("m3", "developer", "# Mode\nread and write"),
    said("m4", "user", rules(6)),
    said("m5", "developer", "Quote in euro."),
    said("m6", "user", "Summary of our earlier talk:\nThe mill is red."),
]


def test_the_newest_of_a_kind_stays_in_order() -> None:
    found = carry([], ENTRIES, (), 200, count)
    assert found.messages == ("m3", "m5")
    assert [(one.kind, one.entry) for one in found.texts] == [("summary", "m6"), ("instructions", "m4")]
    assert found.dropped == ()
    assert found.tokens == sum(count(one.text) + A_BLOCK for one in found.texts) + 5 + 3


def test_what_a_checkpoint_carried_stays_until_a_newer_one_takes_its_place() -> None:
    old = Carried("instructions", ("/a/CLAUDE.md",), "older")
    other = Carried("instructions", ("/b/CLAUDE.md",), "of b")
    found = carry([], ENTRIES, (old, other), 200, count)
    assert [one.entry for one in found.texts if one.kind == "instructions"] == ["", "m4"]
    assert carry([], [], (old, other), 200, count).texts == (old, other)


def test_a_newer_message_takes_the_place_of_a_leading_one_if_it_has_room() -> None:
    head = said("h", "developer", "# Mode\nno access")
    assert carry([head], ENTRIES, (), 200, count).replaces == {"h": "m3"}
    assert carry([head], ENTRIES, (), 0, count).replaces == {}


def test_what_has_no_room_is_named_and_a_summary_has_its_share() -> None:
    entries = [said("big", "user", rules(400)), said("s", "user", "[Conversation summary] " + "red " * 20)]
    found = carry([], entries, (), 100, count)
    (summary, instructions) = found.texts
    assert count(summary.text) == 20
    assert instructions.text.startswith("Contents of /a/CLAUDE.md")
    assert "more characters" in instructions.text
    assert [(lost.kind, lost.name) for lost in found.dropped] == [
        ("instructions", "/a/CLAUDE.md (all but its beginning)")
    ]
    assert found.tokens <= 100
    assert [lost.name for lost in carry([], entries, (), 10, count).dropped] == [
        "/a/CLAUDE.md",
        "an earlier summary",
    ]


def test_what_stays_anyhow_takes_no_room() -> None:
    found = carry([], [said("big", "user", rules(400))], (), 0, count, shown={"big"})
    assert found.tokens == 0
    assert not found.dropped


def test_a_beginning_says_how_much_is_left_out() -> None:
    assert begun("red " * 100, 20, count).endswith("more characters ...]")
    assert count(begun("red " * 100, 20, count)) <= 20
    assert begun("red " * 100, 2, count) == ""
