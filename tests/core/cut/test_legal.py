import pytest
from hypothesis import given
from tests.support.logs import any_messages, chain, decode, problems
from tests.support.talk import (
    assistant,
    call,
    calls,
    developer,
    entries,
    image,
    reminder,
    result,
    results,
    system,
    tool,
    user,
)

from foldline.core.cut.legal import (
    allowed,
    fits_rule,
    legal_cuts,
    progress,
    unanswered_stays,
    whole_batches,
    whole_commands,
    whole_provider_runs,
    whole_replies,
)
from foldline.core.cut.pairing import pair
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Native, Opaque, Text
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState


def alone(invariant, *messages: Message) -> list[int]:
    return allowed(len(messages), invariant(entries(*messages), pair(messages), {}))


def legal(*messages: Message) -> list[int]:
    return legal_cuts(entries(*messages))


# ---- calls and results live or die together


def test_no_cut_falls_between_a_call_and_its_results():
    talk = [user(), calls("a", "b"), tool("a"), tool("b"), assistant("ok")]
    assert alone(whole_batches, *talk) == [0, 1, 4, 5]


def test_no_cut_falls_beside_a_developer_message_inside_a_batch():
    assert alone(whole_batches, calls("a", "b"), tool("a"), developer(), tool("b")) == [0, 4]


def test_everything_after_an_open_batch_belongs_to_it():
    assert alone(whole_batches, user(), calls("a", "b"), tool("a"), reminder()) == [0, 1]


@pytest.mark.parametrize("launch", [
    [user("<command-message>work</command-message>\n<command-name>/work</command-name>")],
    [assistant("", call("s", "Skill")), tool("s", "Launching skill: work")],
    [assistant("", call("s", "Skill")), Message("user", (result("s", "Launching skill: work"),))],
])  # fmt: skip
def test_no_cut_parts_the_text_of_a_command_or_a_skill_from_its_name(launch):
    talk = [
        user(),
        assistant("ok"),
        *launch,
        user("# Work\n\nNever write code."),
        assistant("done"),
        user("next"),
    ]
    text = 2 + len(launch)
    assert alone(whole_commands, *talk) == [at for at in range(len(talk) + 1) if at != text]
    assert text not in legal(*talk)


def test_a_command_that_acts_by_itself_is_followed_by_the_users_own_words():
    assert alone(whole_commands, user("<command-name>/clear</command-name>"), user("go")) == [0, 1, 2]


def test_a_batch_that_was_given_up_ends_with_its_last_result():
    assert alone(whole_batches, calls("a", "b"), tool("a"), user("stop"), user("now")) == [0, 2, 3, 4]
    assert alone(whole_batches, calls("a"), user("stop")) == [0, 1, 2]


def test_a_result_without_a_call_binds_nothing():
    assert alone(whole_batches, user(), tool("nobody"), assistant("ok")) == [0, 1, 2, 3]


# ---- what is not yet answered stays


def test_a_cut_keeps_every_message_that_no_reply_has_seen():
    assert alone(unanswered_stays, user(), assistant("ok"), user("a"), user("b")) == [0, 1, 2]
    assert alone(unanswered_stays, user(), assistant("ok")) == [0, 1, 2]
    assert alone(unanswered_stays, user(), calls("a"), tool("a")) == [0, 1, 2]
    assert alone(unanswered_stays) == [0]


def test_a_cut_folds_something():
    assert alone(progress, user(), assistant("ok")) == [1, 2]
    assert alone(progress) == []


# ---- all of them


@pytest.mark.parametrize(
    "talk", [[], [user()], [calls("a")], [calls("a"), tool("a")], [calls("a"), developer()], [user(), user()]]
)
def test_nothing_can_be_folded_where_everything_is_open_or_first(talk):
    assert legal(*talk) == []


@given(any_messages)
def test_a_view_from_any_legal_cut_on_is_valid(made):
    dialect, payloads = made
    said = [e for e in chain(decode(dialect, payloads)).path() if isinstance(e, Said)]
    for index in legal_cuts(said):
        assert problems(ViewState(said[index:], counter=OFFLINE).view(), dialect) == []


# ---- what a policy allows


ASKED = [user(), image(), results("x", text="and?")]
PLAIN = [assistant("ok"), Message("assistant")]
CALLING = [calls("a"), calls("a", text="let me look")]
RESULT = [tool("a"), results("a")]
OTHER = [system(), developer(), reminder()]


@pytest.mark.parametrize(
    ("rule", "yes", "no"),
    [
        ("turn", ASKED, [*PLAIN, *CALLING, *RESULT, *OTHER]),
        ("user", ASKED, [*PLAIN, *CALLING, *RESULT, *OTHER]),
        ("user_or_plain_assistant", [*ASKED, *PLAIN], [*CALLING, *RESULT, *OTHER]),
        ("not_result", [*ASKED[:2], *PLAIN, *CALLING, *OTHER], [*RESULT, ASKED[2]]),
        ("any", [*ASKED, *PLAIN, *CALLING, *RESULT, *OTHER], []),
    ],
)
def test_a_rule_allows_the_first_kept_message(rule, yes, no):
    for message in yes:
        assert fits_rule(rule, entries(message), 0), message
    for message in no:
        assert not fits_rule(rule, entries(message), 0), message


# ---- a reply that its dialect writes as several items is cut nowhere inside


def item(text: str) -> Message:
    """One item of a reply as OpenAI's Responses has it."""
    return assistant(text, native=Native("openai-responses", b"{}"))


def test_no_cut_falls_between_the_items_of_one_reply():
    talk = [user(), item("a"), item("b"), item("c"), user(), item("d"), user(), item("e")]
    assert alone(whole_replies, *talk) == [0, 1, 4, 5, 6, 7, 8]
    assert legal(item("a"), item("b"), user(), item("c"))[0] == 2


def test_between_replies_that_are_one_message_each_a_cut_may_fall():
    talk = [user(), assistant("a"), assistant("b"), item("c"), assistant("d"), item("e")]
    assert alone(whole_replies, *talk) == [0, 1, 2, 3, 4, 5, 6]


# ---- tools that the provider runs


def runs(call: str) -> Opaque:
    return Opaque(
        "anthropic", "server_tool_use", {"type": "server_tool_use", "id": call, "name": "web_search"}
    )


def found(call: str) -> Opaque:
    data = {"type": "web_search_tool_result", "tool_use_id": call, "content": []}
    return Opaque("anthropic", "web_search_tool_result", data)


def test_no_cut_falls_between_a_paused_turn_and_the_rest_of_it():
    talk = [
        user(),
        Message("assistant", (Text("I look."), runs("s1"))),
        Message("assistant", (found("s1"), Text("Dry."))),
        user(),
        Message("assistant", (runs("s2"), found("s2"))),
    ]
    assert alone(whole_provider_runs, *talk) == [0, 1, 3, 4, 5]
    assert alone(whole_provider_runs, *talk[:2], user(), user()) == [0, 1, 2, 3, 4]


def test_no_cut_falls_behind_a_call_that_the_provider_still_runs():
    paused = [user(), Message("assistant", (Text("I look."), runs("s1")))]
    assert alone(whole_provider_runs, *paused) == [0, 1]
    assert alone(whole_provider_runs, *paused, reminder()) == [0, 1]


def by_program(call: str, caller: str) -> Message:
    """A call by a program of the provider, which only the native message shows."""
    raw = f'{{"caller": {{"type": "code_execution", "tool_id": "{caller}"}}}}'.encode()
    return Message("assistant", calls(call).parts, native=Native("anthropic", raw))


def test_the_calls_of_a_running_program_belong_to_it():
    talk = [user(), Message("assistant", (runs("s1"),)), by_program("a", "s1"), tool("a")]
    assert alone(whole_provider_runs, *talk) == [0, 1]
    assert alone(whole_provider_runs, *talk, by_program("b", "s1"), tool("b")) == [0, 1]


def test_a_program_without_a_result_ends_where_the_user_speaks_or_the_model_goes_on():
    talk = [user(), Message("assistant", (runs("s1"),)), by_program("a", "s1"), tool("a")]
    assert alone(whole_provider_runs, *talk, user("stop")) == [0, 1, 3, 4, 5]
    assert alone(whole_provider_runs, *talk, calls("b"), tool("b")) == [0, 1, 3, 4, 5, 6]


def test_the_output_of_a_program_names_it_by_its_call_id():
    program = Opaque("openai-responses", "program", {"type": "program", "id": "prog_1", "call_id": "p1"})
    output = Opaque("openai-responses", "program_output", {"id": "po", "call_id": "p1", "result": "3"})
    talk = [user(), Message("assistant", (program,)), user(), Message("assistant", (output,)), user()]
    assert alone(whole_provider_runs, *talk) == [0, 1, 4, 5]
