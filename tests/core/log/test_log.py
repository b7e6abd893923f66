import msgspec
import pytest
from tests.support.log import Log
from tests.support.talk import assistant, call, entries, log_of, results, tool, user

from foldline.core.log.entries import Checkpoint, Compacted, Lifted, Noted, Pinned, Pruned, Receipt, Said
from foldline.core.log.log import (
    chained,
    entry_id,
    next_said_key,
    normal_form,
    read_boundaries,
    said,
    undone,
    verify,
)
from foldline.core.log.messages import Media, Message, Native, Opaque, Text, Thinking, ToolCall, Usage

replace = msgspec.structs.replace


def compacted(**more) -> Compacted:
    return Compacted("", None, Checkpoint("text", "summary"), Receipt("manual", **more))


# ---- ids


@pytest.mark.parametrize(
    ("entry", "without"),
    [
        (said(user("hi"), parent=None), {"at": 5.0}),
        (said(user("hi"), parent=None), {"tokens": 99}),
        (said(user("hi"), parent=None), {"said_key": "other"}),
        (compacted(), {"at": 5.0}),
        (compacted(), {"receipt": Receipt("manual", created_at="2026-01-01", duration_ms=7.0)}),
        (Pruned("", None, Receipt("manual")), {"receipt": Receipt("manual", created_at="x")}),
        (Noted("", None, "title", {"title": "t"}), {"at": 5.0}),
    ],
)
def test_times_durations_and_derived_figures_are_not_in_an_id(entry, without):
    assert entry_id(replace(entry, **without)) == entry_id(entry)


@pytest.mark.parametrize(
    ("entry", "other"),
    [
        (said(user("hi"), parent=None), {"message": user("ho")}),
        (said(user("hi"), parent=None), {"message": user("hi", injected=True)}),
        (said(user("hi"), parent=None), {"parent": "x"}),
        (compacted(), {"receipt": Receipt("threshold")}),
        (compacted(), {"receipt": Receipt("manual", tokens_after=1)}),
        (compacted(), {"first_kept": "x"}),
        (Pruned("", None, Receipt("manual")), {"receipt": Receipt("agent")}),
        (Noted("", None, "title", {"title": "t"}), {"kind": "model"}),
        (Lifted("", None, "x", True), {"lifted": False}),
        (Pinned("", None, "x", True), {"text": "y"}),
    ],
)
def test_everything_else_is_in_an_id(entry, other):
    assert entry_id(replace(entry, **other)) != entry_id(entry)


def test_chaining_places_an_entry_and_gives_it_its_id():
    placed = chained(Noted("old", "elsewhere", "title"), "p")
    assert placed.parent == "p"
    assert placed.id == entry_id(placed) != "old"


def test_the_same_words_after_another_parent_are_another_entry_with_the_same_said_key():
    first, second = said(user("hi"), parent="a"), said(user("hi"), parent="b")
    assert first.id != second.id
    assert first.said_key == second.said_key == next_said_key("", user("hi"))
    assert said(user("hi"), parent="a", said_key=first.said_key).said_key != first.said_key


# ---- the normal form: what a client may change when it sends a history again


def with_parts(*parts, role="assistant", **more) -> Message:
    return Message(role, parts, **more)


SAME = {
    "blanks around": (user("hi"), user(" hi\n")),
    "usage, model, stop": (assistant("x"), assistant("x", usage=Usage(input=5), model="m", stop="end")),
    "thinking": (assistant("x"), with_parts(Thinking("hm", "sig"), Text("x"))),
    "native payload": (user("x"), user("x", native=Native("anthropic", b"{}"))),
    "order of arguments": (
        assistant("", ToolCall("c", "f", {"a": 1, "b": {"d": [{"y": 1, "x": 2}], "c": 0}})),
        assistant("", ToolCall("c", "f", {"b": {"c": 0, "d": [{"x": 2, "y": 1}]}, "a": 1})),
    ),
    "results as a user or as a tool": (results("c"), tool("c")),
    "cache marks": (
        with_parts(Opaque("anthropic", "x", {"v": 1, "cache_control": {"type": "ephemeral"}})),
        with_parts(Opaque("anthropic", "x", {"v": 1})),
    ),
    "a cache block": (with_parts(Opaque("a", "cache_point", {}), Text("x")), assistant("x")),
}
DIFFERENT = {
    "text": (user("hi"), user("ho")),
    "role": (user("hi"), assistant("hi")),
    "call id": (assistant("", call("a")), assistant("", call("b"))),
    "call name": (assistant("", call("a", "read")), assistant("", call("a", "write"))),
    "arguments": (assistant("", call("a", "f", x=1)), assistant("", call("a", "f", x=2))),
    "arguments' order in a list": (
        assistant("", ToolCall("a", "f", {"x": [1, 2]})),
        assistant("", ToolCall("a", "f", {"x": [2, 1]})),
    ),
    "unparsed arguments": (assistant("", ToolCall("a", "f", "{")), assistant("", ToolCall("a", "f", {}))),
    "result id": (tool("a"), tool("b")),
    "result text": (tool("a", "x"), tool("a", "y")),
    "words beside results": (results("c", text="and?"), tool("c")),
    "media": (with_parts(Media("image", data="a")), with_parts(Media("image", data="b"))),
    "opaque": (with_parts(Opaque("a", "x", {"v": 1})), with_parts(Opaque("a", "x", {"v": 2}))),
}


@pytest.mark.parametrize("case", SAME)
def test_a_client_may_change_without_making_another_message(case):
    one, other = SAME[case]
    assert normal_form(one) == normal_form(other)
    assert next_said_key("k", one) == next_said_key("k", other)


@pytest.mark.parametrize("case", DIFFERENT)
def test_another_message_has_another_key(case):
    one, other = DIFFERENT[case]
    assert next_said_key("k", one) != next_said_key("k", other)


def test_the_key_depends_on_all_that_was_said_before():
    assert next_said_key("a", user("hi")) != next_said_key("b", user("hi"))


# ---- paths and branches


def test_branches_share_what_came_before_and_nothing_is_removed():
    log = log_of(user("a"), assistant("b"), user("c"))
    old = log.path()
    log.move(old[1].id)
    new = said(user("other"), parent=log.leaf, said_key=old[1].said_key)
    log.append([new], seen=log.leaf)
    assert log.path() == [*old[:2], new]
    assert log.path(old[2].id) == old
    assert list(log.entries()) == [*old, new]
    assert log.verify() == []


# ---- proof


def test_a_whole_log_proves_itself():
    log = log_of(user("a"), assistant("b"))
    log.append([chained(Noted("", None, "title"), log.leaf)], seen=log.leaf)
    log.append([said(user("c"), parent=log.leaf, said_key=_key(log))], seen=log.leaf)
    assert log.verify() == []


def _key(log: Log) -> str:
    return next(e.said_key for e in reversed(log.path()) if isinstance(e, Said))


def test_a_changed_word_shows():
    chain = entries(user("a"), assistant("b"))
    forged = replace(chain[0], message=user("A"))
    assert [line.split(": ", 1)[1] for line in verify([forged, chain[1]])] == [
        "the content does not match the id",
        "its said-key does not follow the one before",
    ]


def test_a_missing_parent_shows_and_so_does_one_that_comes_later():
    chain = entries(user("a"), assistant("b"))
    assert any("is missing or comes later" in line for line in verify(chain[1:]))
    assert any("is missing or comes later" in line for line in verify(chain[::-1]))


def test_a_said_key_that_skips_a_message_shows():
    first = said(user("a"), parent=None)
    second = said(assistant("b"), parent=first.id)
    assert verify([first, second]) == [f"{second.id}: its said-key does not follow the one before"]


def test_a_native_payload_that_is_not_json_shows():
    good = said(user("a", native=Native("anthropic", b'{"role":"user"}')), parent=None)
    bad = said(user("a", native=Native("anthropic", b"{")), parent=None)
    assert verify([good]) == []
    assert verify([bad]) == [f"{bad.id}: its native payload is not JSON"]


# ---- the boundaries of a path


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
