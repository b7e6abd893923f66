from __future__ import annotations

import pytest
from tests.support.talk import assistant, call, calls, result, results, tool, user

from foldline.core.lab.entities import Entity
from foldline.core.lab.retention import (
    Scores,
    cut_at,
    demand,
    mean,
    names_in_calls,
    rendered,
    score,
    scored_message,
)
from foldline.core.log.messages import Message, Text, Thinking, ToolCall

FILLER = "Some plain words that fill the past and name nothing at all. " * 60
LIMITER = Entity("path", "app/limiter.py")
KEY = Entity("identifier", "bucket_key")


def said(*messages):
    return [scored_message(message) for message in messages]


def wanted(past, future, common=frozenset()):
    return demand(said(*past), said(*future), common)


def edit(path="src/app/limiter.py", **more):
    return assistant("", call("c9", "edit_file", path=path, **more))


PAST = (
    user("The sliding window in src/app/limiter.py drops requests."),
    assistant("I look at the limiter.", call("c1", path="src/app/limiter.py")),
    tool("c1", "def bucket_key(user): ..."),
    assistant(FILLER),
    user(FILLER),
)


def test_what_a_call_addresses_and_the_past_knows_is_needed():
    found = wanted(PAST, [edit()])
    assert found.handles == {LIMITER}
    assert found.needs[LIMITER].mentions == 2
    assert found.needs[LIMITER].step == 0


def test_what_the_past_does_not_know_is_not_needed():
    assert wanted(PAST, [edit("src/app/other_file.py")]).needs == {}


@pytest.mark.parametrize("told", [tool("c1", "see src/app/limiter.py"), user("see src/app/limiter.py")])
def test_what_was_told_anew_is_not_needed(told):
    assert wanted(PAST, [told, edit()]).needs == {}
    assert set(wanted(PAST, [edit(), told, edit()]).needs) == {LIMITER}


def test_what_the_assistant_says_itself_still_is():
    assert set(wanted(PAST, [assistant("on to src/app/limiter.py"), edit()]).needs) == {LIMITER}


def test_a_body_is_written_not_addressed():
    found = wanted(PAST, [edit("new_thing.py", new_string="bucket_key()")])
    assert set(found.needs) == {KEY}
    assert found.handles == frozenset()
    heredoc = assistant("", call("c8", command="cat > x << EOF\nbucket_key()\nEOF"))
    assert wanted(PAST, [heredoc]).handles == frozenset()
    assert wanted(PAST, [assistant("", call("c8", command="grep bucket_key"))]).handles == {KEY}
    assert wanted(PAST, [heredoc, assistant("", call("c8", pattern="bucket_key"))]).handles == {KEY}


def test_arguments_are_read_at_every_depth_and_as_text():
    nested = call(
        "c1", edits=[{"file": "a/deep_file.py"}], where={"at": ["b/other_file.py"]}, on=True, n=48213
    )
    found = names_in_calls([nested])
    assert found[Entity("path", "a/deep_file.py")] is False  # edits are a body
    assert found[Entity("path", "b/other_file.py")] is True
    assert found[Entity("number", "48213")] is True
    assert names_in_calls([ToolCall("c1", "run", "not { json bucket_key")]) == {KEY: True}


def test_common_names_and_redacted_ones_say_nothing():
    assert wanted(PAST, [edit()], common=frozenset(("app/limiter.py",))).needs == {}
    past = (user("REDACTED/limiter.py"),)
    assert wanted(past, [edit("REDACTED/limiter.py")]).needs == {}


def test_far_is_before_the_newest_tenth_and_rare_in_two_messages():
    found = wanted(PAST, [edit()])
    assert found.far == found.rare == {LIMITER}
    again = (*PAST, user("src/app/limiter.py"))
    assert wanted(again, [edit()]).far == frozenset()
    often = (*(user("src/app/limiter.py") for _ in range(3)), *PAST)
    assert wanted(often, [edit()]).rare == frozenset()
    assert wanted(often, [edit()]).far == {LIMITER}


def test_a_view_is_scored_by_what_it_names():
    found = wanted(PAST, [edit(), assistant("", call("c8", pattern="bucket_key")), edit()])
    everything = score(found, rendered(PAST))
    assert (everything.handle, everything.far, everything.far_rare, everything.steps) == (1, 1, 1, 1)
    half = score(found, "the file limiter.py")
    assert (half.handle, half.steps) == (0.5, 0.5)
    assert score(found, "").handle == 0


def test_a_bound_name_stands_near_what_it_was_about():
    future = [assistant("The sliding window still drops requests."), edit()]
    found = wanted(PAST, future)
    assert found.bindings[LIMITER] >= {"sliding", "window", "drops", "requests"}
    assert score(found, "The sliding window in app/limiter.py").far_bound == 1
    assert score(found, "app/limiter.py bucket_key").far_bound == 0
    assert score(found, "app/limiter.py" + " " * 400 + "sliding window").far_bound == 0


def test_nothing_needed_is_no_score():
    found = wanted(PAST, [])
    assert score(found, "anything") == Scores()
    assert not found.telling


def test_means_leave_out_what_has_no_score():
    assert mean([Scores(handle=1.0), Scores(handle=0.5, far=0.2)]) == Scores(handle=0.75, far=0.2)
    assert mean([]) == Scores()


def test_a_message_is_read_as_it_stands_in_a_prompt():
    one = scored_message(
        Message("assistant", (Thinking("secret_thought"), Text("Hello"), call("c1", path="a.py")))
    )
    assert one.rendered == 'Hello\nread({"path": "a.py"})'
    assert (one.role, one.text, one.tokens) == ("assistant", "Hello", len(one.rendered) // 4 + 4)
    assert scored_message(Message("user", (result("c1", "out"),))).role == "tool"
    both = scored_message(results("c1", text="and now?"))
    assert (both.role, both.answers) == ("user", ("c1",))


def test_a_session_is_cut_where_no_call_waits():
    talk = said(
        user("a" * 400),
        calls("c1", "c2"),
        tool("c1"),
        tool("c2", "b" * 400),
        assistant("c" * 40),
        user("d" * 400),
    )
    assert cut_at(talk, 0.0) == 1
    assert cut_at(talk, 0.4) == 1
    assert cut_at(talk, 0.6) == 4
    assert cut_at(talk, 1.0) == 5
    assert cut_at(said(user()), 0.5) is None
    cut_short = said(user(), calls("c1"), user("no, stop"), assistant("ok"))
    assert cut_at(cut_short, 0.9) == 3
