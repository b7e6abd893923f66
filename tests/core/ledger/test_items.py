"""Items: the words of each message and the effect of each call, in the order of events."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.support.talk import assistant, entries, image, reminder, result, tool, user

from foldline.core.ledger.facts import items, met
from foldline.core.ledger.facts.actions import stretch
from foldline.core.ledger.facts.kinds import Item, Ledger
from foldline.core.log.messages import Media, Message, Opaque, Text, ToolCall, ToolResult


def taken(*messages: Message) -> list[Item]:
    return list(items.collect(stretch(entries(*messages))))


def lines(*messages: Message) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in taken(*messages)]


def used(
    name: str, arguments: object, output: str = "ok", *, is_error: bool = False, text: str = ""
) -> list[Message]:
    """A call with its result."""
    call = ToolCall("c1", name, arguments)  # type: ignore[arg-type]
    return [assistant(text, call), Message("tool", (ToolResult("c1", (Text(output),), is_error=is_error),))]


def did(name: str, arguments: object, output: str = "ok", *, is_error: bool = False) -> tuple[str, str]:
    """The kind and text of what one call did."""
    (found,) = lines(*used(name, arguments, output, is_error=is_error))
    return found


# ---- words


def test_what_was_said_stands_word_for_word_in_the_order_of_events() -> None:
    said = [
        user("Benenne die Tabelle um.\nKeine Daten löschen!"),
        assistant("Mache ich."),
        user("好的"),
        assistant("完成。"),
    ]
    assert lines(*said) == [
        ("user", "Benenne die Tabelle um.\nKeine Daten löschen!"),
        ("said", "Mache ich."),
        ("user", "好的"),
        ("said", "完成。"),
    ]
    assert [item.entry for item in taken(*said)] == [entry.id for entry in entries(*said)]


def test_only_the_users_own_words_are_items_of_the_user() -> None:
    assert lines(reminder(), user("<system-reminder>x</system-reminder>Fix it.")) == [("user", "Fix it.")]


def test_a_picture_leaves_its_name() -> None:
    assert lines(image("What is this?")) == [("user", "What is this?\n[image]")]
    assert lines(image()) == [("user", "[image]")]
    shot = Message(
        "tool", (ToolResult("c1", (Text("taken"), Media("image", "image/png", data="iVBORw0KGgo="))),)
    )
    ((kind, text),) = lines(assistant("", ToolCall("c1", "screenshot", {"window": 1})), shot)
    assert (kind, text) == ("called", "screenshot(window=1) -> taken [image]")


def test_prose_that_only_announces_a_call_is_told_apart() -> None:
    found = lines(*used("bash", {"command": "make test"}, "9 passed", text="Now let me run the tests."))
    assert found == [("aside", "Now let me run the tests."), ("ran", "$ make test -> 9 passed")]
    assert lines(*used("bash", {"command": "make test"}, "9 passed", text="A reason. " * 40))[0][0] == "said"


def test_a_pasted_page_keeps_its_opening_and_its_end() -> None:
    (item,) = taken(user("Look at this:\n" + "x" * 50_000 + "\nWhy does it fail?"))
    assert item.text.startswith("Look at this:")
    assert item.text.endswith("Why does it fail?")
    assert re.search(r"\n… [\d,]+ characters …\n", item.text)


# ---- what calls did

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n-old\n+newThing = other_thing\n*** Add File: b.md\n+# B\n*** End Patch"


@pytest.mark.parametrize(
    ("name", "arguments", "output", "expected"),
    [
        ("Read", {"file_path": "src/a.py"}, "1\tx", ("looked", "read src/a.py")),
        ("Grep", {"pattern": "def run", "path": "src"}, "src/a.py:1", ("looked", "searched 'def run' in src -> src/a.py:1")),
        ("Grep", {"pattern": "def run"}, "", ("looked", "searched 'def run' -> nothing")),
        ("Grep", {"pattern": "def run"}, "a.py\nb.py\nc.py", ("looked", "searched 'def run' -> 3 lines")),
        ("WebFetch", {"url": "https://a.example/b"}, "text", ("looked", "read https://a.example/b")),
        ("bash", {"command": "cat a.py | head -20"}, "x", ("looked", "$ cat a.py")),
        ("bash", {"command": "sed -n '1,240p' src/lamp.py && cat src/dock.py"}, "x", ("looked", "read src/lamp.py, src/dock.py")),
        ("bash", {"command": "cat src/lamp.py | grep class"}, "class Lamp: ...", ("looked", "$ cat src/lamp.py")),
        ("bash", {"command": "make test"}, "3 failed, 9 passed in 2s", ("ran", "$ make test -> 3 failed, 9 passed in 2s")),
        ("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}, "ok", ("edit", "edit a.py: `x = 1` → `x = 2`")),
        ("Write", {"file_path": "b.py", "content": "def newName():\n    return otherName\n"}, "ok", ("edit", "write b.py: adds newName, otherName")),
        ("apply_patch", {"input": PATCH}, "ok", ("edit", "edit src/a.py, b.md: adds newThing, other_thing")),
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "String to replace not found", ("edit", "edit a.py (failed): `x` → `y`")),
        ("bash", {"command": "git commit -m 'Mend it'"}, "[main 1a2b3c4] Mend it\n 1 file changed", ("commit", "commit 1a2b3c4 Mend it (on main)")),
        ("bash", {"command": "make all"}, "a\nall 3 parts made\n</persisted-output>\n```", ("ran", "$ make all -> a / all 3 parts made")),
        ("refund", {"order": "O-17", "amount": 4}, "refunded", ("called", "refund(order=O-17, amount=4) -> refunded")),
        ("ExitPlanMode", {"plan": "1. Read the code. " * 20}, "approved", ("proposal", "1. Read the code. " * 19 + "1. Read the code.")),
        ("werkzeug_x", {"befehl": "los"}, "fertig", ("called", "werkzeug_x(befehl=los) -> fertig")),
    ],
)  # fmt: skip
def test_a_call_is_told_by_the_shape_of_its_arguments(
    name: str, arguments: Any, output: str, expected: tuple[str, str]
) -> None:
    assert did(name, arguments, output) == expected


def test_what_another_agent_reports_is_told_at_length_where_there_is_room() -> None:
    report = "The parser drops empty lines. " * 20
    (told,) = taken(*used("Task", {"prompt": "Find out why.", "description": "look"}, report))
    assert told.kind == "called"
    assert told.text.startswith("Task(prompt=Find out why., description=look) -> The parser")
    assert told.more == report.strip()


def test_a_run_that_failed_has_its_output_and_one_that_passed_has_none() -> None:
    (failed,) = taken(*used("bash", {"command": "make test"}, "checking\nx is 3, not 4\n1 failed"))
    (passed,) = taken(*used("bash", {"command": "make test"}, "checking\n9 passed"))
    assert (failed.more, passed.more) == ("checking\nx is 3, not 4\n1 failed", "")


def test_an_edit_has_its_old_and_its_new_lines() -> None:
    new = "def load():\n    return open_all()"
    (told,) = taken(*used("Edit", {"file_path": "a.py", "old_string": "    pass", "new_string": new}))
    assert told.more == "- pass\n+ def load():\n+     return open_all()"
    (told,) = taken(*used("Write", {"file_path": "a.py", "content": new}))
    assert told.more == new


def test_of_a_large_file_the_lines_are_told_that_are_indented_least() -> None:
    body = "".join(f"        step_{number}(lamp)\n" for number in range(40))
    new = "".join(f"class Part{number}:\n    def load(self):\n{body}\n\n" for number in range(20))
    (told,) = taken(*used("Write", {"file_path": "a.py", "content": new}))
    assert told.more.split("\n") == [
        row for number in range(20) for row in (f"class Part{number}:", "    def load(self):")
    ]
    (told,) = taken(*used("Write", {"file_path": "a.py", "content": "word\n" * 900}))
    assert len(told.more) < 3_100
    assert "[…]" in told.more


def test_a_name_is_known_by_the_file_that_showed_it_first() -> None:
    looks = used("Read", {"path": "a.py"}, "def load_lamps(): ...\ndef nobody_asks(): ...")
    again = used("Read", {"path": "b.py"}, "from a import load_lamps")
    files = {
        name.text: name.file
        for name in met.collect(stretch(entries(*looks, *again, user("Rename load_lamps."))))
    }
    assert files["load_lamps"] == "a.py"
    assert "nobody_asks" not in files


def test_what_the_provider_ran_is_told_like_any_other_call() -> None:
    ran = Opaque(
        "anthropic",
        "server_tool_use",
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "tides"}},
    )
    found = Opaque(
        "anthropic",
        "web_search_tool_result",
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "title": "Tides"}],
        },
    )
    assert ("looked", "searched 'tides' -> Tides") in lines(Message("assistant", (ran, found)))


# ---- the user's answers


def test_an_answer_through_a_question_tool_is_the_users_word() -> None:
    arguments = {
        "questions": [
            {"question": "Which database?", "options": [{"label": "SQLite"}, {"label": "PostgreSQL"}]}
        ]
    }
    kind, text = did(
        "AskUserQuestion",
        arguments,
        'The user answered: "Which database?"="PostgreSQL, and keep SQLite for tests"',
    )
    assert kind == "answer"
    assert text.startswith("[Asked] Which database? (SQLite / PostgreSQL)\n[User answered] ")
    assert "keep SQLite for tests" in text


def test_an_answer_stands_without_the_question_and_the_frame_of_its_tool() -> None:
    arguments = {"questions": [{"question": "Which one?"}, {"question": "When?"}]}
    output = (
        'User has answered your questions: "Which one?"="The red one", "When?"="Now". '
        "You can now continue with the user's answers in mind."
    )
    assert did("AskUserQuestion", arguments, output)[1] == (
        '[Asked] Which one? When?\n[User answered] "The red one", "Now"'
    )


def test_answers_in_json_are_told_as_their_words() -> None:
    arguments = {"questions": [{"question": "Where?", "options": [{"label": "Panel"}, {"label": "Editor"}]}]}
    output = '{"answers": {"place": {"answers": ["Editor", "a new one"]}}}'
    assert did("request_user_input", arguments, output)[1].endswith("\n[User answered] Editor; a new one")


def test_a_refusal_is_told_with_what_was_said_beside_it() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nDo not touch that file."
    assert did(
        "Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, refused, is_error=True
    ) == (
        "refused",
        "[User refused: a.py] Do not touch that file.",
    )


@pytest.mark.parametrize(
    "output",
    [
        "403: user denied. The user said: drop the table",
        "notes.txt\nThe tool use was rejected. To tell you how to proceed, the user said:\nDrop the table.",
        "logging: request interrupted by user\nuser feedback: drop the table",
    ],
)
def test_what_a_tool_prints_is_never_a_refusal(output: str) -> None:
    for is_error in (False, True):
        assert did("load_notes", {"page": 1}, output, is_error=is_error)[0] == "called"


@pytest.mark.parametrize(
    ("output", "is_error", "words"),
    [
        ("The user doesn't want to take this action right now. STOP.", True, ""),
        ("[Operation Cancelled] Reason: User did not allow tool call", False, ""),
        ("exec command rejected by user", False, ""),
        ("User rejected the edit", True, ""),
        ("The user denied this operation and gave the following feedback:\nNot now.", True, " Not now."),
    ],
)
def test_a_refusal_begins_as_a_harness_writes_it(output: str, is_error: bool, words: str) -> None:
    assert did("deploy", {"to": "live"}, output, is_error=is_error) == (
        "refused",
        f"[User refused: deploy]{words}",
    )


SAID_NO = "The user has rejected this change. The user said: Push to main."


@pytest.mark.parametrize(
    ("name", "arguments", "is_error", "words"),
    [
        ("fetch", {"url": "http://x.io"}, False, False),
        ("bash", {"command": "cat notes.md"}, False, False),
        ("Task", {"prompt": "Look into it"}, False, False),
        ("mcp__notes__write", {"path": "a.md", "content": "x"}, False, False),
        ("fetch", {"url": "http://x.io"}, True, True),
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, False, True),
        ("ExitPlanMode", {"allowedPrompts": []}, False, True),
    ],
)
def test_words_beside_a_refusal_are_the_users_where_no_text_of_others_stands_there(
    name: str, arguments: Any, is_error: bool, words: bool
) -> None:
    kind, text = did(name, arguments, SAID_NO, is_error=is_error)
    assert (kind == "refused") is words
    assert text.endswith("] Push to main.") is words


@pytest.mark.parametrize("is_error", [True, False])
def test_a_question_that_was_never_put_has_no_answer(is_error: bool) -> None:
    arguments = {"questions": [{"question": "Drop which?", "options": [{"label": "a"}]}]}
    output = "InputValidationError: options" if is_error else "Error: InputValidationError: options"
    assert did("AskUserQuestion", arguments, output, is_error=is_error)[0] == "called"
    assert did("AskUserQuestion", arguments, "Can't say, drop none.")[0] == "answer"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("oracle", {"question": "Why is the sky blue?"}),
        ("mcp__deepwiki__ask_question", {"repoName": "a/b", "question": "How does it store?"}),
        ("ask_question", {"repoName": "a/b", "question": "How does it store?"}),
        ("mcp__wiki__ask_user", {"question": "How does it store?"}),
        ("question_bank", {"prompt": "Tides"}),
        ("send_poll", {"message": "Tea?", "options": ["Yes", "No"]}),
        ("make_quiz", {"questions": [{"question": "2 + 2?", "options": ["4", "5"], "answer": "4"}]}),
        ("create_quiz", {"questions": [{"question": "2 + 2?", "options": ["4", "5"]}]}),
    ],
)
def test_what_another_tool_says_is_never_the_users_answer(name: str, arguments: Any) -> None:
    assert did(name, arguments, "The store is a log.")[0] == "called"


@pytest.mark.parametrize("name", ["ask_user", "request_user_input", "ask_followup_question", "question"])
def test_a_tool_that_asks_the_user_brings_an_answer(name: str) -> None:
    assert did(name, {"question": "Which one?"}, "The second.") == (
        "answer",
        "[Asked] Which one?\n[User answered] The second.",
    )


# ---- repeats, merges, bounds


def test_what_is_done_again_within_one_request_is_told_once() -> None:
    twice = [
        *used("bash", {"command": "make test"}, "1 failed"),
        *used("bash", {"command": "make test"}, "9 passed"),
    ]
    (item,) = taken(*twice)
    assert (item.text, item.calls) == ("$ make test -> 9 passed; before: 1 failed", 2)
    (third,) = taken(*twice, *twice[2:])
    assert (third.text, third.calls) == ("$ make test -> 9 passed; before: 1 failed", 3)
    separate = taken(user("Go."), *twice[:2], user("Again."), *twice[2:])
    assert [item.text for item in separate if item.kind == "ran"] == [
        "$ make test -> 1 failed",
        "$ make test -> 9 passed",
    ]


def test_two_heredocs_are_two_runs() -> None:
    script = "python - <<'E'\nimport json\n{}\nE"
    first = used("bash", {"command": script.format("print(json.dumps(1))")}, "1")
    second = used("bash", {"command": script.format("print('a -> b')")}, "a -> b")
    third = used("bash", {"command": script.format("print('a -> c')")}, "a -> c")
    assert lines(*first, *second, *third) == [
        ("ran", "$ python - <<… import json print(json.dumps(1)) -> 1"),
        ("ran", "$ python - <<… import json print('a->b') -> a -> b"),
        ("ran", "$ python - <<… import json print('a->c') -> a -> c"),
    ]
    long = [used("bash", {"command": f"make {'x' * 900} {end}"}, "ok") for end in ("one", "two")]
    assert len(lines(*long[0], *long[1])) == 2


@pytest.mark.parametrize(
    "junk", [" " * 1_000_000, "[a (" * 250_000, "[a (\n" * 200_000, "cd a" + " " * 1_000_000, "| head '" * 120_000]
)  # fmt: skip
def test_hostile_commands_and_outputs_come_to_an_end(junk: str) -> None:
    assert did("bash", {"command": f"git commit -m x {junk}x"}, junk)[0] == "ran"
    assert did("bash", {"command": f"make {junk}"}, junk)[0] == "ran"
    assert lines(*used("bash", {"command": f"{junk}; make"}, junk))


def test_a_file_that_is_read_again_is_told_once() -> None:
    found = taken(*used("Read", {"path": "a.py"}), user("Go on."), *used("Read", {"path": "a.py"}))
    assert [(item.text, item.calls) for item in found if item.kind == "looked"] == [("read a.py", 2)]


def test_two_ranges_merged_are_the_items_of_both_together() -> None:
    said = [
        user("One."),
        *used("bash", {"command": "make a"}, "1 passed"),
        assistant("Done."),
        user("Two."),
        assistant("Done too."),
    ]
    for cut in range(len(said) + 1):
        chain = entries(*said)
        first, second = (items.collect(stretch(part)) for part in (chain[:cut], chain[cut:]))
        if cut != 2:  # a cut never separates a call from its result
            assert items.merge(first, second, Ledger()) == items.collect(stretch(chain))


def test_bounds_keep_the_newest_and_count_the_rest() -> None:
    many = tuple(Item("said", "word " * 400, f"e{n}") for n in range(100))
    bounded = items.bound((Item("user", "First.", "u"), *many))
    assert bounded[0].text == "First."
    assert bounded[1] == Item("gap", messages=bounded[1].messages)
    assert bounded[1].messages + len(bounded) - 2 == 100
    assert bounded[-1] == many[-1]
    assert items.bound(bounded) == bounded


def test_a_result_that_came_late_or_never_says_nothing_false() -> None:
    assert lines(assistant("", ToolCall("c1", "bash", {"command": "make test"}))) == [
        ("ran", "$ make test -> no answer")
    ]
    assert lines(tool("c9", "late")) == []
    assert lines(Message("user", (result("c9", "late"),))) == []


def test_prose_right_before_a_call_of_the_next_message_announces_it_too() -> None:
    call = ToolCall("c1", "Read", {"path": "a.py"})
    said = taken(user("Go."), assistant("Let me look:"), assistant("", call), assistant("It is empty."))
    assert [item.kind for item in said] == ["user", "aside", "looked", "said"]


def test_tasks_are_told_by_the_plan_alone() -> None:
    made = used("TaskCreate", {"subject": "Mend the lamp"}, "Task #3 created")
    moved = used("TaskUpdate", {"taskId": "3", "addBlockedBy": ["1"]}, "Updated task #3")
    listed = used("TaskList", {}, "#3 [pending] Mend the lamp")
    assert lines(*made, *moved, *listed) == []


def test_commands_are_told_from_the_folder_of_the_work() -> None:
    reads = [used("Read", {"file_path": f"/home/ada/lamp/src/{name}.py"}, "x") for name in ("a", "b")]
    runs = used("bash", {"command": "git -C /home/ada/lamp push && rm /home/ada/lamp/x.txt"}, "")
    at = used("Read", {"file_path": "/home/ada/lamp/c.py"}, "x")
    assert lines(*reads[0], *reads[1], *at, *runs)[-1] == ("ran", "$ git push && rm x.txt")


def test_the_folder_of_the_work_is_that_of_most_paths_whatever_is_done_elsewhere() -> None:
    lamp = [
        used("Read", {"file_path": f"/home/ada/lamp/{name}"}, "x")
        for name in ("src/a.py", "src/b.py", "c.md")
    ]
    scratch = used("bash", {"command": "cd /tmp/scratch && make x"}, "done")
    cable = used("Read", {"file_path": "/home/ada/cable/d.py"}, "x")
    texts = [text for _, text in lines(*(one for read in lamp for one in read), *scratch, *cable)]
    assert texts == [
        "read src/a.py",
        "read src/b.py",
        "read c.md",
        "$ (in /tmp/scratch) make x -> done",
        "read /home/ada/cable/d.py",
    ]


def test_a_long_command_is_told_with_what_its_caller_says_of_it() -> None:
    command = {"command": f"make {'one two three ' * 20}all", "description": "Build all parts -> twice"}
    kind, text = did("bash", command, "done")
    assert kind == "ran"
    assert text.startswith("$ make one two three one two")
    assert text.endswith("one two three all  # Build all parts->twice -> done")
    assert " … " in text
    assert did("bash", {"command": "make all", "description": "Build"}, "done") == (
        "ran",
        "$ make all -> done",
    )


def test_a_command_that_goes_on_over_lines_is_one() -> None:
    assert did("bash", {"command": "\\\n  A=1 \\\n  make all"}, "done") == ("ran", "$ A=1 make all -> done")


def test_the_output_of_a_run_tells_lines_that_are_alike_once() -> None:
    output = "\n".join(
        [*(f"part-{number}.js done in {number}.5 s" for number in range(40)), "linked", "1 failed"]
    )
    (told,) = taken(*used("bash", {"command": "make all"}, output))
    assert (
        told.more == "part-0.js done in 0.5 s\n[… 38 like these]\npart-39.js done in 39.5 s\nlinked\n1 failed"
    )


def test_edits_of_one_file_tell_each_name_once() -> None:
    first = used("Edit", {"file_path": "a.py", "old_string": "", "new_string": "load_all()\nsave_all()"})
    second = used("Edit", {"file_path": "a.py", "old_string": "", "new_string": "save_all()\ndrop_all()"})
    assert lines(*first, *second) == [("edit", "edit a.py: adds load_all, save_all, drop_all")]
    third = used("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"})
    assert lines(*first, *third) == [("edit", "edit a.py: adds load_all, save_all")]
