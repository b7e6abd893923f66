"""The newest images stay; older ones get smaller or become a note, at a boundary, by count and by bytes."""

from __future__ import annotations

import msgspec
import pytest
from tests.support.talk import assistant, call, entries, user

from foldline.core.cut.images import REDUCED, reduced
from foldline.core.decide.policy import Policy
from foldline.core.ledger.text.origin import own
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Media, Message, Text, ToolResult
from foldline.core.measure.media import IMAGE_TOKENS
from foldline.core.measure.tokens import OFFLINE

DATA = "iVBORw0KGgo=" * 100  # 900 bytes


def image(name: str = "") -> Media:
    return Media("image", "image/png", DATA, name=name or None)


def half(media: Media, size: int) -> Media | None:
    """Halve images that are larger than `size`."""
    small = DATA[: len(DATA) // 2]
    return media if media.data == small else msgspec.structs.replace(media, data=small) if size else None


def shot(number: int, *more: str) -> Message:
    return Message("user", (Text(f"Look {number}."), image(f"{number}.png"), *(image(name) for name in more)))


def answered(*messages: Message) -> list[Message]:
    return [one for message in messages for one in (message, assistant("I see."))]


def made(talk, **fields):
    before = fields.pop("edits", {})
    more = {name: fields.pop(name) for name in ("scale", "spare") if name in fields}
    return reduced(talk, Policy("p", **fields), OFFLINE, edits=before, date="2026-11-28", **more)


def told(edits: list[Edit]) -> list[str]:
    return [edit.replacement.text for edit in edits if isinstance(edit.replacement, Text)]


def test_without_a_limit_nothing_is_done() -> None:
    assert made(entries(*answered(*map(shot, range(30))))) == []
    assert made(entries(*answered(*map(shot, range(3)))), images=3, image_bytes=2_700) == []


def test_those_beyond_the_newest_become_a_note_that_is_no_word_of_the_users() -> None:
    talk = entries(*answered(*map(shot, range(4))))
    edits = made(talk, images=2)
    assert told(edits) == [f"[Old image left out 2026-11-28: image: {n}.png]" for n in (1, 0)]
    assert [(edit.entry, edit.part, edit.kind) for edit in edits] == [
        (talk[2].id, 1, REDUCED),
        (talk[0].id, 1, REDUCED),
    ]
    assert all(IMAGE_TOKENS - 40 < edit.saved < IMAGE_TOKENS for edit in edits)
    assert own(Message("user", (Text("Look."), edits[0].replacement))) == ("Look.",)


def test_older_ones_are_made_smaller_where_that_can_be_done_and_stay_so() -> None:
    talk = entries(*answered(*map(shot, range(3))))
    first = made(talk, images=1, image_size=300, scale=half)
    assert [edit.replacement.data for edit in first] == [DATA[: len(DATA) // 2]] * 2
    assert {edit.saved for edit in first} == {IMAGE_TOKENS - (300 * 300 // 750 + 1)}
    before = {edit.entry: (edit,) for edit in first}
    assert made(talk, images=1, image_size=300, scale=half, edits=before) == []
    assert len(told(made(talk, images=1, image_size=300, edits=before))) == 2
    assert len(told(made(talk, images=1, image_size=300, scale=lambda *_: None))) == 2


@pytest.mark.parametrize(
    ("most", "left_out"), [(2_699, ["0"]), (1_800, ["0"]), (1_799, ["1", "0"]), (0, ["2", "1", "0"])]
)
def test_the_oldest_beyond_the_bytes_of_all_become_notes(most: int, left_out: list[str]) -> None:
    edits = made(entries(*answered(*map(shot, range(3)))), image_bytes=most)
    assert told(edits) == [f"[Old image left out 2026-11-28: image: {n}.png]" for n in left_out]


def test_images_of_results_and_several_of_one_message_are_counted_one_by_one() -> None:
    result = Message("tool", (ToolResult("c1", (Text("page"), image("a"), image("b"))),))
    talk = entries(shot(0, "1b"), assistant("", call("c1", "shoot")), result, assistant("I see."))
    edits = {edit.entry: edit for edit in made(talk, images=1)}
    content = edits[talk[2].id].replacement.content
    assert [type(part) for part in content] == [Text, Text, Media]
    assert edits[talk[2].id].replacement.call_id == "c1"
    assert len(edits) == 2
    assert len(told(made(talk, images=1))) == 2


def test_what_no_reply_has_seen_stays_and_counts_and_so_does_what_is_pinned_or_edited() -> None:
    talk = entries(*answered(shot(0), shot(1)), shot(2), shot(3))
    assert len(made(talk, images=1)) == 2
    assert made(talk[4:], images=0, image_bytes=0) == []
    assert [edit.entry for edit in made(talk, images=2, spare=[talk[0].id])] == [talk[2].id]
    blank = Edit(talk[0].id, 1, "repaired", None)
    assert [edit.entry for edit in made(talk, images=2, edits={talk[0].id: (blank,)})] == [talk[2].id]


def test_pictures_that_the_assistant_made_stay() -> None:
    talk = entries(
        user("Draw."), Message("assistant", (Text("Here."), image())), user("Thanks."), assistant("Yes.")
    )
    assert made(talk, images=0) == []
