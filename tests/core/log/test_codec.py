import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.core.log.codec import decode, encode, pretty

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_what_is_written_reads_back(value):
    assert decode(encode(value)) == value


def test_the_form_is_compact_keeps_the_order_of_keys_and_writes_plain_utf8():
    assert encode({"b": 1, "a": ["日本", None]}) == '{"b":1,"a":["日本",null]}'.encode()


def test_half_an_emoji_survives():
    value = {"text": "cut \ud83d here", "b": [1]}
    raw = encode(value)
    assert raw == b'{"text":"cut \\ud83d here","b":[1]}'
    assert decode(raw) == value


def test_an_integer_of_any_size_survives():
    assert decode(encode({"n": 10**40})) == {"n": 10**40}


def test_what_a_provider_sent_is_read_though_not_written_by_us():
    assert decode(b' {"a" : 1.50}\n') == {"a": 1.5}
    assert decode(json.dumps({"a": "\ud83d"}).encode()) == {"a": "\ud83d"}


def test_bytes_become_base64_and_other_objects_are_refused():
    assert encode(b"x") == b'"eA=="'
    with pytest.raises(TypeError):
        encode(object())


@pytest.mark.parametrize("raw", [b"", b"{", b'{"a":1} x', b"\xff\xfe", b'"\xff"'])
def test_what_is_not_json_raises_a_value_error(raw):
    with pytest.raises(ValueError):
        decode(raw)


def test_json_for_people_has_no_halves_of_characters():
    assert pretty({"a": ["ä"]}) == '{\n  "a": [\n    "ä"\n  ]\n}'.encode()
    assert decode(pretty({"a": "half \ud83d", "b": float("nan")})) == {"a": "half \ufffd", "b": None}
