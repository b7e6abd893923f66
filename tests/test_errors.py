"""Errors go from one process to another: a pool of processes sends them by pickle."""

from __future__ import annotations

import copy
import pickle

import pytest

from foldline import errors
from foldline.core.measure.overflow import Overflow

EACH = [
    errors.InputError("wrong"),
    errors.FormatError("no session in it", where="a.json", line=3),
    errors.DialectError("no role", index=2),
    errors.LeafMoved("moved", leaf="ab"),
    errors.CallsOpen(("call_1", "call_2")),
    errors.FloorExceeded(9_000, 4_000, {"system": 9_000}),
    errors.OverflowRemains("too long", view_tokens=9, floor=8, breakdown={"pins": 8}, limit=7, asked=10),
    errors.ProviderError(
        "too long", kind="overflow", status=400, overflow=Overflow(limit=7), provider="openai"
    ),
]


@pytest.mark.parametrize("error", EACH, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.deepcopy])
def test_an_error_is_the_same_in_another_process(error, again):
    other = again(error)
    assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))
