import pytest
from tests.support.talk import assistant, call, result, tool, user

from foldline.core.decide.continuation import Continuation, continuation
from foldline.core.log.messages import Message, Text, ToolCall


def state(*messages):
    return continuation(messages)


def test_an_empty_session_is_done():
    assert state() == Continuation("done")
    assert state(Message("system", (Text("be kind"),))) == Continuation("done")


def test_an_unanswered_prompt_is_the_models_turn():
    assert state(user("do it")) == Continuation("mid_tool", "prompt")
    assert state(user("a"), assistant("Done."), user("now b")) == Continuation("mid_tool", "prompt")


def test_calls_without_results_are_named():
    reply = assistant("", call("c1"), call("c2"), call("c3"))
    assert state(user(), reply, tool("c2", "x")) == Continuation("mid_tool", "calls", ("c1", "c3"))


def test_fresh_results_are_the_models_turn_in_either_form():
    assert state(user(), assistant("", call("c1")), tool("c1", "x")) == Continuation("mid_tool", "results")
    in_user = Message("user", (result("c1", "x"),))
    assert state(user(), assistant("", call("c1")), in_user) == Continuation("mid_tool", "results")


def test_words_of_the_user_beside_results_are_a_prompt():
    both = Message("user", (result("c1", "x"), Text("and hurry")))
    assert state(user(), assistant("", call("c1")), both) == Continuation("mid_tool", "prompt")


def test_a_reply_without_calls_and_questions_is_the_end():
    assert state(user(), assistant("All tests pass now.")) == Continuation("done")


def test_reminders_after_the_reply_change_nothing():
    reminder = user("<reminder>todos are empty</reminder>", injected=True)
    assert state(user(), assistant("Finished."), reminder) == Continuation("done")
    assert state(user(), assistant("Shall I go on?"), reminder).state == "waiting"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("I found two ways. Which one do you prefer?", "Which one do you prefer?"),
        ("Which database?\n\n1. SQLite\n2. PostgreSQL", "Which database?"),
        ("Soll ich die Datei löschen?", "Soll ich die Datei löschen?"),
        ("要删除这个文件吗？", "要删除这个文件吗？"),
        ("هل أحذف الملف؟", "هل أحذف الملف؟"),
        (
            "The plan is ready. Please confirm before I touch production.",
            "Please confirm before I touch production.",
        ),
        ('Did you mean "main" (the branch)?', 'Did you mean "main" (the branch)?'),
        ("**Should I push?**", "**Should I push?**"),
    ],
)
def test_a_question_waits_for_the_user(text, question):
    assert state(user(), assistant(text)) == Continuation("waiting", "question", question=question)


@pytest.mark.parametrize(
    "text",
    [
        "Done. Is there anything else I can help you with?",
        "Why did it fail? Because the port was taken.\n\nI fixed it and the tests pass.",
        "I ran `grep -c '?' file`.",
        "See https://example.org/search?q=1",
        "The code is:\n```\nok = a ? b : c\n```",
        "",
    ],
)
def test_courtesies_code_and_answered_questions_do_not(text):
    assert state(user(), assistant(text)) == Continuation("done")


def test_a_tool_that_asks_the_user_waits_for_the_user():
    asking = call("c1", "AskUserQuestion", question="Which port?")
    assert state(user(), assistant("", asking)) == Continuation("waiting", "calls", ("c1",), "Which port?")
    assert state(user(), assistant("", call("c1", "ask_user", questions=[]))).question == ""
    unparsed = Message("assistant", (ToolCall("c1", "ask_user", '{"question": "Wh'),))
    assert state(user(), unparsed) == Continuation("waiting", "calls", ("c1",))
    answered = state(user(), assistant("", asking), tool("c1", "8080"))
    assert answered == Continuation("mid_tool", "results")


def test_a_reply_that_ended_too_early_goes_on_and_a_stopped_one_waits():
    assert state(user(), assistant("and then", stop="length")) == Continuation("mid_tool", "cut_off")
    assert state(user(), assistant("", stop="error")) == Continuation("mid_tool", "cut_off")
    assert state(user(), assistant("and th", stop="aborted")) == Continuation("waiting", "aborted")


def test_a_message_with_its_own_results_ends_or_goes_on():
    ended = assistant("", call("c1"), result("c1", "x"), Text("All done."))
    assert state(user(), ended) == Continuation("done")
    assert state(user(), assistant("", call("c1"), result("c1", "x"))) == Continuation("mid_tool", "results")
    still_open = assistant("", call("c1"), result("c1", "x"), call("c2"))
    assert state(user(), still_open) == Continuation("mid_tool", "calls", ("c2",))
