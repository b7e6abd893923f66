"""The boundaries of a path."""

from foldline.core.log.entries import Checkpoint, Compacted, Lifted, Pruned, Receipt
from foldline.core.log.log import read_boundaries, undone


def fold(name: str) -> Compacted:
    return Compacted(name, None, Checkpoint("c", "s"), Receipt("manual"))


def prune(name: str) -> Pruned:
    return Pruned(name, None, Receipt("manual"))


def test_undone_are_those_that_are_lifted_now():
    path = [Lifted("1", None, "a", True), Lifted("2", "1", "b", True), Lifted("3", "2", "a", False)]
    assert undone(path) == {"b"}


def test_a_path_without_boundaries_keeps_everything():
    found = read_boundaries([])
    assert (found.ids, found.fold, found.prunes, found.newest, found.changes) == ((), None, (), None, set())


def test_the_newest_fold_that_holds_counts_with_the_prunes_behind_it():
    path = [prune("p1"), fold("f1"), prune("p2"), fold("f2"), prune("p3")]
    found = read_boundaries(path)
    assert (found.fold, found.prunes, found.newest, found.changes) == (3, (path[4],), 4, {4})
    assert found.ids == ("p1", "f1", "p2", "f2", "p3")


def test_a_fold_that_is_undone_brings_back_the_one_before_it():
    path = [fold("f1"), prune("p1"), fold("f2"), Lifted("l", "f2", "f2", True)]
    found = read_boundaries(path)
    assert (found.fold, found.prunes, found.newest, found.changes) == (0, (path[1],), 1, {1, 3})
    assert found.ids == ("f1", "p1", "f2", "l")
    again = read_boundaries([*path, Lifted("l2", "l", "f2", False)])
    assert (again.fold, again.prunes, again.newest, again.changes) == (2, (), 2, {2, 4})
