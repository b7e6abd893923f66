import statistics

import pytest
import toktok
from hypothesis import given
from hypothesis import strategies as st
from tests.core.decide.builders import LETTERS
from tests.core.measure.samples import chunks

from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.byteclasses import LEFT_GROUPS, LETTER_RUN, RIGHT_GROUPS, RUNS
from foldline.core.measure.media import IMAGE_TOKENS, media_tokens
from foldline.core.measure.tokens import (
    CALL_OVERHEAD,
    MESSAGE_OVERHEAD,
    OFFLINE,
    TOOL_OVERHEAD,
    Counter,
    message_tokens,
    pair_codes,
    part_tokens,
    repeats,
    take_runs,
    text_tokens,
    tools_tokens,
)
from foldline.core.measure.weights import WEIGHTS

KINDS = chunks()


def errors(pieces, counter=OFFLINE):
    return [
        counter.count(p) / n - 1
        for p, n in zip(pieces, toktok.batch_count(pieces, "o200k_base", 1), strict=True)
    ]


class Bytes:
    """A counter that is easy to reckon with."""

    name = "bytes"

    def count(self, text):
        return len(text.encode("utf-8", "surrogatepass"))


def test_the_counters_are_counters():
    for counter in (OFFLINE, LETTERS, Bytes()):
        typed: Counter = counter
        assert typed.name


def test_the_errors_over_all_kinds_of_text():
    pooled = [error for pieces in KINDS.values() for error in errors(pieces)]
    assert len(pooled) > 300
    assert statistics.median(map(abs, pooled)) <= 0.06
    assert sum(error < -0.2 for error in pooled) <= 0.05 * len(pooled)
    quarter = [error for pieces in KINDS.values() for error in errors(pieces, LETTERS)]
    assert statistics.median(map(abs, quarter)) > 0.15  # the estimate that the counter replaces


@pytest.mark.parametrize("kind", KINDS)
def test_the_errors_of_each_kind(kind):
    found = errors(KINDS[kind])
    assert len(found) >= 3
    assert statistics.median(map(abs, found)) <= 0.1
    assert abs(statistics.median(found)) <= 0.08
    assert sum(error < -0.2 for error in found) <= 0.05 * len(found)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        (" ", 1, 1),
        ("\ud800", 1, 3),
        ("half an emoji \ud83d at the end", 5, 12),
        (" " * 1_000_000, 7_000, 9_000),
        ("\n" * 1_000_000, 60_000, 65_000),
        ("\t" * 1_000_000, 60_000, 65_000),
        ("a" * 1_000_000, 120_000, 130_000),
        ("Z" * 1_000_000, 100_000, 600_000),
        ("=" * 1_000_000, 15_000, 17_000),
        ("─" * 300_000, 18_000, 20_000),
        ("0" * 1_000_000, 300_000, 360_000),
        ("中" * 300_000, 50_000, 400_000),
        ("\ud800" * 300_000, 1, 900_000),
        ("\0" * 1_000_000, 300_000, 1_000_000),
        ("- " * 500_000, 100_000, 1_000_000),
    ],
    ids=lambda value: (
        ascii(value[:8]) if isinstance(value, str) else None
    ),  # a name of a megabyte costs gigabytes
)
def test_extreme_texts_are_counted(text, least, most):
    assert least <= OFFLINE.count(text) <= most


def test_a_rule_between_lines_costs_little():
    assert OFFLINE.count("=" * 80) <= 4
    assert OFFLINE.count("    " * 20 + "x") <= 4


@given(st.text(alphabet=st.characters(), max_size=400))
def test_counts_are_never_negative_and_never_above_the_bytes(text):
    count = OFFLINE.count(text)
    assert count == OFFLINE.count(text)
    assert (count > 0) == bool(text)
    assert count <= len(text.encode("utf-8", "surrogatepass"))


@given(st.text(max_size=200), st.text(max_size=200))
def test_two_texts_count_as_much_together_as_apart(one, two):
    assert abs(OFFLINE.count(one + two) - OFFLINE.count(one) - OFFLINE.count(two)) <= 20


def test_pairs_across_the_pieces_of_a_large_text_are_counted_once():
    text = "the quick brown fox, " * 40_000  # 840,000 bytes: more than three pieces
    assert OFFLINE.count(text) == pytest.approx(
        40_000 / 400 * OFFLINE.count("the quick brown fox, " * 400), rel=0.001
    )


def test_pair_codes_join_the_classes_of_neighbours():
    assert pair_codes(b"a ") == bytes([2 << 4 | 1])
    assert pair_codes(b"a 1") == bytes([2 << 4 | 1, 1 << 4 | 6])
    assert pair_codes(b"a") == b""
    assert len(WEIGHTS) == len(LEFT_GROUPS) * len(RIGHT_GROUPS) == 256


def test_every_part_of_a_message_counts():
    counter = Bytes()
    image = Media("image", "image/png", data="A" * 400_000)
    message = Message(
        "assistant",
        (
            Thinking("1234", signature="x" * 900),
            Text("12345"),
            ToolCall("call_1", "read", {"path": "a.py"}),
            ToolCall("call_2", "read", '{"pa'),
            ToolResult("call_1", (Text("123"), image)),
            Opaque("anthropic", "server", {"k": 1}),
        ),
    )
    parts = (
        4 + 5 + (CALL_OVERHEAD + 4 + 15) + (CALL_OVERHEAD + 4 + 4) + (CALL_OVERHEAD + 3 + IMAGE_TOKENS) + 7
    )
    assert message_tokens(message, counter) == MESSAGE_OVERHEAD + parts
    assert message_tokens(Message("user"), counter) == MESSAGE_OVERHEAD
    assert message_tokens(Message("user", (Text("hello world"),))) == MESSAGE_OVERHEAD + 2 + 1


@pytest.mark.parametrize(
    ("media", "tokens"),
    [
        (Media("image", "image/png", data="A" * 8_000_000), 1_600),
        (Media("image", url="https://x/y.png"), 1_600),
        (Media("file", "image/jpeg"), 1_600),
        (Media("document", "application/pdf", data="A" * 400_000), 6 * 2_250),
        (Media("document", "application/pdf", data="A" * 10_000_000), 100 * 2_250),
        (Media("document", "application/pdf", url="https://x/y.pdf"), 4 * 2_250),
        (Media("document", "text/plain", data="A" * 4_000), 751),
        (Media("audio", "audio/mp3", data="A" * 2_000_000), 3_000),
        (Media("audio", "audio/wav", data="A" * 160_000_000), 230_000),
        (Media("audio"), 1_600),
        (Media("video", "video/mp4", data="A" * 1_106_667), 1_000),
        (Media("video"), 1_600),
    ],
)
def test_media_counts_by_kind_and_size_never_as_text(media, tokens):
    assert media_tokens(media) == tokens


def test_a_blob_inside_an_opaque_block_is_no_text():
    counter = Bytes()
    plain = part_tokens(Opaque("openai", "reasoning", {"encrypted": ""}), counter)
    assert part_tokens(Opaque("openai", "reasoning", {"encrypted": "Ab9/" * 500}), counter) == plain + 400
    assert part_tokens(Opaque("openai", "image", {"encrypted": "Ab9/" * 500_000}), counter) == plain + 4_000
    assert part_tokens(Opaque("openai", "odd", "half \ud83d"), counter) > 0


def test_system_text_and_tools():
    counter = Bytes()
    assert text_tokens(None, counter) == text_tokens("", counter) == 0
    assert text_tokens("12345", counter) == MESSAGE_OVERHEAD + 5
    assert tools_tokens(None, counter) == tools_tokens([], counter) == 0
    tool = {"name": "read", "description": "Read a file"}
    assert tools_tokens([tool, tool], counter) == 2 * (
        TOOL_OVERHEAD + len('{"name":"read","description":"Read a file"}')
    )


@given(st.lists(st.tuples(st.sampled_from("ab \n─━═x=-0\0Ñ日"), st.integers(1, 40)), max_size=8))
def test_every_run_is_looked_for_where_one_stands(runs):
    data = "".join(character * times for character, times in runs).encode()
    stands = any(run in data for run, _ in RUNS) or LETTER_RUN.search(data) is not None
    assert repeats(data) or not stands
    if not stands:
        assert take_runs(data) == (data, 0.0)


EMOJI = {
    "families": "👨‍👩‍👧‍👦" * 50,
    "professions": "👩🏽‍🚀 👨🏿‍🍳 🧑🏼‍🎨 " * 30,
    "flags": "🇨🇭🇧🇷🇰🇷🇿🇦🇨🇦" * 20,
    "skin tones": "👋🏽👏🏿💪🏻" * 30,
    "common ones": "😀🙈🎈🚀🔥🌊🐙🍋🧭🪁" * 20,
    "in a chat": "See you at the pier 👋 bring the kite 🪁 and some lemons 🍋\n" * 20,
}


@pytest.mark.parametrize("kind", EMOJI)
def test_emoji_and_their_sequences_are_not_counted_at_half(kind):
    exact = toktok.batch_count([EMOJI[kind]], "o200k_base", 1)[0]
    assert 0.75 * exact <= OFFLINE.count(EMOJI[kind]) <= 1.4 * exact
