import pytest
from tests.core.decide.builders import call

from foldline.core.cut.prune import Read, read_of, superseded
from foldline.core.log.messages import ToolCall


@pytest.mark.parametrize(
    ("tool", "read"),
    [
        (call("c", "read", path="src/a.py"), Read("read", "src/a.py", "")),
        (call("c", "Read", file_path="./src/a.py", offset=3), Read("Read", "src/a.py", '{"offset":3}')),
        (call("c", "whatever", target_file="a", limit=None), Read("whatever", "a", "")),
        (call("c", "str_editor", command="view", path="a"), Read("str_editor", "a", '{"command":"view"}')),
        (call("c", "grep", path="src", pattern="x"), Read("grep", "src", '{"pattern":"x"}')),
    ],
)
def test_a_read_is_told_by_its_arguments(tool, read):
    assert read_of(tool) == read


@pytest.mark.parametrize(
    "tool",
    [
        call("c", "write", path="a", content="x"),
        call("c", "Edit", file_path="a", old_string="x", new_string="y"),
        call("c", "notebookEdit", notebook_path="a", source="y"),
        call("c", "create_file", path="a"),
        call("c", "apply", path="a", newText="y"),
        call("c", "editor", command="create", path="a"),
        call("c", "editor", command="view", path=["a", "b"]),
        call("c", "bash", command="cat a"),
        call("c", "copy", path="a", file="b"),
        ToolCall("c", "read", '{"path": "a"'),
    ],
)
def test_what_changes_a_file_or_names_none_is_no_read(tool):
    assert read_of(tool) is None


def test_a_later_read_of_the_same_or_of_the_whole_covers_an_earlier_one():
    whole, part, other = Read("r", "a", ""), Read("r", "a", "1-9"), Read("r", "b", "")
    assert superseded({1: (whole, 9), 2: (other, 9), 3: (whole, 9)}) == {1}
    assert superseded({1: (part, 9), 2: (whole, 9)}) == {1}
    assert superseded({1: (part, 9), 2: (part, 9)}) == {1}
    assert superseded({1: (whole, 9), 2: (part, 9)}) == set()
    assert superseded({1: (part, 9), 2: (Read("r", "a", "10-19"), 9)}) == set()
    assert superseded({1: (whole, 9), 2: (Read("other", "a", ""), 9)}) == set()
    assert superseded({1: (whole, 9), 2: (whole, 9), 3: (whole, 9)}) == {1, 2}


def test_a_note_that_nothing_changed_covers_nothing():
    whole = Read("r", "a", "")
    assert superseded({1: (whole, 900), 2: (whole, 10)}) == set()
    assert superseded({1: (whole, 900), 2: (whole, 500), 3: (whole, 10)}) == {1}
