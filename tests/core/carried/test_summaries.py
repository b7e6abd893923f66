"""Summaries that agents write into their lists are recognised by their opening words, in any role."""

from __future__ import annotations

import pytest

from foldline.core.carried.summaries import ASKS_BACK, earlier_summaries, is_summary, summary_in
from foldline.core.ledger.text.origin import own
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Role, Text, ToolResult

TOLD = "1. Goal: paint the mill red.\n2. The paint costs 312 euro."
CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. The summary below "
    "covers the earlier portion of the conversation."
)
HANDED_OVER = (
    "Another language model started to solve this problem and produced a summary of its thinking process. "
    "Use it, and here it is:"
)

OPENINGS = {
    "claude-code": f"{CONTINUED}\n\n{{}}\n\nPlease continue the conversation from where we left it off.",
    "claude-code of old": (
        "This session is being continued from a previous conversation that ran out of context. The "
        "conversation is summarized below:\n{}"
    ),
    "codex": f"{HANDED_OVER}\n{{}}",
    "pi": (
        "The conversation history before this point was compacted into the following summary:\n\n"
        "<summary>\n{}\n</summary>"
    ),
    "langchain": "Here is a summary of the conversation to date:\n\n{}",
    "deepagents": "You are in the middle of a conversation that has been summarized.\n\n{}",
    "gemini": "<state_snapshot>\n{}\n</state_snapshot>",
    "block": "<summary>\n{}\n</summary>",
    "title": "Summary of our earlier talk:\n{}",
    "heading": "## Conversation Summary\n\n{}",
    "bold": "**Previous conversation summary:**\n{}",
    "bracket": "[Conversation summary]\n{}",
    "participle": "[Earlier conversation, summarized]\n\n{}",
    "sentence": "The previous conversation has been compacted, this is what it came to:\n{}",
}


def said(role: Role, *texts: str, entry: str = "e") -> Said:
    return Said(entry, None, Message(role, tuple(map(Text, texts))), "")


@pytest.mark.parametrize("form", OPENINGS.values(), ids=OPENINGS)
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_summary_is_known_by_its_opening_and_taken_without_it(form: str, role: Role) -> None:
    (found,) = earlier_summaries([said(role, form.format(TOLD))])
    assert found.text == TOLD
    assert found.entry == "e"
    assert own(said(role, form.format(f"{TOLD}\nNever touch the wheel.")).message) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Can you give me a summary of our conversation?",
        "Write a summary of the conversation so far:\n- short\n- no names",
        "Summary of the changes:\n- painted the mill",
        "Summary of our earlier talk:",
        "Here is a summary of the report:\nIt rains.",
        "The mill has been painted:\n- red",
        "Stop.",
        "",
    ],
)
def test_other_words_are_no_summary(text: str) -> None:
    assert summary_in(text) is None
    assert not is_summary(said("user", text).message)


def test_the_answer_to_opencodes_own_question_is_one() -> None:
    asked, answer = said("user", ASKS_BACK), said("assistant", TOLD, entry="a")
    assert [(one.text, one.entry) for one in earlier_summaries([asked, answer])] == [(TOLD, "a")]
    assert not list(earlier_summaries([said("user", "What did we do?"), answer]))


def test_a_result_of_a_tool_holds_none() -> None:
    text = OPENINGS["bracket"].format(TOLD)
    result = Message("tool", (ToolResult("c", (Text(text),)),))
    of_user = Message("user", (ToolResult("c", (Text(text),)), Text("Go on.")))
    assert not list(earlier_summaries([Said("a", None, result, ""), Said("b", None, of_user, "")]))


def test_words_behind_a_closed_form_stay_the_users() -> None:
    message = said("user", f"{OPENINGS['gemini'].format(TOLD)}\nNever touch the wheel.").message
    assert own(message) == ("Never touch the wheel.",)
    assert not is_summary(message)


def test_orders_to_the_model_that_wrote_it_are_left_out() -> None:
    leaked = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n- Do NOT use Read.\n\n"
    (found,) = earlier_summaries([said("user", f"{CONTINUED}\n\n{leaked}{TOLD}")])
    assert found.text == TOLD


def test_a_message_without_an_id_is_one_as_a_whole() -> None:
    (found,) = earlier_summaries([said("assistant", "The mill is red.", entry="")])
    assert found.text == "The mill is red."


PLAIN = ["title", "heading", "bold", "bracket", "participle", "sentence", "langchain", "block"]


@pytest.mark.parametrize("name", PLAIN)
def test_what_people_say_too_is_one_of_a_user_only_before_the_first_reply(name: str) -> None:
    head, later = (said("user", OPENINGS[name].format(TOLD), entry=entry) for entry in ("h", "l"))
    reply = said("assistant", "Fine.", entry="r")
    of_system = said("system", OPENINGS[name].format(TOLD), entry="s")
    found = list(earlier_summaries([said("system", "Be brief."), head, reply, later, of_system]))
    assert [one.entry for one in found] == ["h", "s"]
    assert found[0].sources != found[1].sources  # neither replaces the other
    assert not list(earlier_summaries([head], begun=True))


@pytest.mark.parametrize("name", OPENINGS.keys() - PLAIN)
def test_what_only_programs_write_is_one_wherever_it_stands(name: str) -> None:
    entries = [
        said("user", "Paint it."),
        said("assistant", "Fine."),
        said("user", OPENINGS[name].format(TOLD)),
    ]
    assert [one.text for one in earlier_summaries(entries)] == [TOLD]
