"""The boundaries of a path."""

from foldline.core.log.boundaries import undone
from foldline.core.log.entries import Lifted


def test_undone_are_those_that_are_lifted_now():
    path = [Lifted("1", None, "a", True), Lifted("2", "1", "b", True), Lifted("3", "2", "a", False)]
    assert undone(path) == {"b"}
