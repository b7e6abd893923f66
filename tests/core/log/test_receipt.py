"""Receipts are stored and hashed: the form in which they are written never changes."""

import msgspec
import pytest

from foldline.core.log.entries import Receipt, StandingConstraints

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
