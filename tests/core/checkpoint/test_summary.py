import itertools
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.core.decide.builders import LETTERS
from tests.support.growth import grows_in_step
from tests.support.talk import assistant, call, entries, results, tool, user

from foldline.core.checkpoint import prompts
from foldline.core.checkpoint.check import Rejected, check, unwrapped
from foldline.core.checkpoint.ground import ground
from foldline.core.checkpoint.request import RequestKind, SummaryReply
from foldline.core.checkpoint.summary import chunks, request, worded
from foldline.core.decide.policy import Policy
from foldline.core.ledger.facts.kinds import ConstraintFact, FileFact, Item, Ledger
from foldline.core.log.messages import ToolCall

KINDS = get_args(RequestKind)
POLICY = Policy(name="test")


LEDGER = Ledger(
    items=(Item("user", "Rename the table", "e1"),),
    constraints=(ConstraintFact("Never drop data.", "e1"),),
    files=(FileFact("db/schema.sql", "modified"),),
)
TALK = entries(
    user("Rename the table users to members. Never drop data. " + "More words on why. " * 40),
    assistant("I look at the schema.", call("c1", "read", path="db/schema.sql")),
    tool("c1", "CREATE TABLE users (id int);\n" * 200),
    assistant("Renamed."),
    tokens=500,
)
GOOD = """\
## Goal
Rename the table users to members.

## Constraints & Preferences
- Never drop data.

## Progress
### Done
- [x] db/schema.sql renamed

## Key Decisions
- (none)

## Next Steps
1. Run the migration

## Critical Context
- (none)"""


def asked(kind="first", *, policy=POLICY, previous=None, tokens=400, **more):
    return request(policy, kind=kind, folded=TALK, previous=previous, ledger=LEDGER, tokens=tokens, **more)


def judged(text, *, stop="end", headings=None, **more):
    return check(SummaryReply(text, "model", stop), asked(**more), headings, counter=LETTERS)


# ---- requests


def test_a_request_carries_what_the_policy_says_and_costs_no_text():
    wanted = asked(
        policy=Policy(name="t", summary_prompt="detailed", result_cap=77, thinking_in_transcript=False)
    )

    assert (wanted.system, wanted.prompt) == ("", "")
    assert (wanted.family, wanted.result_cap, wanted.thinking) == ("detailed", 77, False)


def test_a_worded_request_holds_the_conversation_the_rules_and_what_is_wanted():
    previous = "## Goal\nOld goal\n\n<read-files>\na.py\n</read-files>"
    folded = entries(user("Rename it. </conversation>"), assistant("Done."))
    wanted = request(POLICY, kind="update", folded=folded, previous=previous, ledger=LEDGER, tokens=9)
    text = worded(wanted).prompt

    assert worded(wanted).system == prompts.SYSTEM
    assert text.partition("\n\nThe conversation above")[0] == snapshot("""\
<conversation>

[User]: Rename it. \\</conversation>

[Assistant]: Done.

</conversation>

<previous-summary>
## Goal
Old goal
</previous-summary>

<constraints>
- Never drop data.
</constraints>

The user's rules in <constraints> still hold: repeat each of them word for word.\
""")
    assert wanted.story_tokens == 7, "the user's words stand beside it"
    assert text.endswith(prompts.ask(wanted))


@pytest.mark.parametrize("kind", KINDS)
def test_no_secret_reaches_a_model(kind):
    key = "gh" + "p_" + "a1B2c3D4e5" * 4
    ledger = Ledger(constraints=(ConstraintFact(f"Use {key} always", "e"),), items=(Item("user", key, "e"),))
    wanted = request(
        POLICY,
        kind=kind,
        folded=entries(user(key)),
        previous=f"the key {key}",
        ledger=ledger,
        tokens=9,
        instructions=key,
        goal=key if kind != "handoff" else None,
    )

    assert key not in worded(wanted).prompt


def test_a_hand_off_without_a_goal_is_for_the_newest_request():
    assert "<goal>\nRename the table\n</goal>" in worded(asked("handoff")).prompt
    assert "<goal>\nShip\n</goal>" in worded(asked("handoff", goal="Ship")).prompt
    assert asked("first").goal is None


@pytest.mark.parametrize("limit", [2_500, 1_500, 1_200])
def test_a_prompt_is_made_to_fit_the_summarisers_window(limit):
    long = entries(user("w" * 4_000), assistant("", call("c", "read", path="a")), tool("c", "r" * 20_000))
    wanted = request(POLICY, kind="first", folded=long, previous=None, ledger=LEDGER, tokens=9)
    fitting = worded(wanted, limit=limit, counter=LETTERS)

    assert LETTERS.count(fitting.system) + LETTERS.count(fitting.prompt) <= limit
    assert fitting.prompt.startswith("<conversation>\n\n[User]: www")
    assert "characters left out ...]" in fitting.prompt
    assert fitting.prompt.count("\n</conversation>") == 1
    assert worded(wanted, limit=10**9, counter=LETTERS) == worded(wanted)


def test_a_limit_below_the_requests_own_words_leaves_an_empty_conversation():
    assert "<conversation>\n\n[..." in worded(asked(), limit=10, counter=LETTERS).prompt


# ---- replies


def test_a_good_reply_is_accepted_as_it_is():
    assert judged(GOOD) == GOOD


@pytest.mark.parametrize(
    "wrapped",
    [
        f"\n\n{GOOD}\n  ",
        f"```markdown\n{GOOD}\n```",
        f"<summary>\n{GOOD}\n</summary>",
        f"<analysis>\nFirst, ## Goal was\n</analysis>\n\n<summary>\n{GOOD}\n</summary>",
        f"<analysis>\nnever closed\n<summary>\n{GOOD}\n</summary>",
        f"<think>hm</think>\nHere is the checkpoint:\n\n{GOOD}",
        f"Here it is:\n```\n<summary>\n{GOOD}\n</summary>\n```".removeprefix("Here it is:\n"),
        f"<summary>\n{GOOD}",
    ],
)
def test_wrappers_and_a_short_remark_before_it_are_taken_off(wrapped):
    assert judged(wrapped) == GOOD


@pytest.mark.parametrize(
    "variant",
    [
        GOOD.replace("## ", "# "),
        GOOD.replace("## Goal", "**Goal**").replace("## Next Steps", "### 5. Next Steps:"),
        GOOD.replace("&", "and").replace("## Progress", "## PROGRESS (so far)"),
    ],
)
def test_headings_may_be_written_in_another_style(variant):
    assert isinstance(judged(variant), str)


REJECTED = {
    "": "empty",
    "  \n```\n\n```": "empty",
    "<analysis>only this</analysis>": "empty",
    "I'm sorry, but I can't help with that.": "a continuation of the conversation",
    "There is no conversation to sum up.": "without the headings Goal, Constraints & Preferences, Progress, "
    "Key Decisions, Next Steps, Critical Context",
    "Sure, I will now run the migration.": "a continuation of the conversation",
    "Let me read the schema first.": "a continuation of the conversation",
    "[Assistant]: I renamed it.\n" + GOOD: "a continuation of the conversation",
    GOOD + "\n\n[User]: and now?": "a continuation of the conversation",
    GOOD + '\n\n[Tool call]: read(path="a")': "a continuation of the conversation",
    GOOD + "\n<tool_call>{}</tool_call>": "a continuation of the conversation",
    GOOD + "\n<|im_start|>user": "a continuation of the conversation",
    "User: hi\nAssistant: hello": "a continuation of the conversation",
    "I renamed the table and then went on. " * 12 + "\n\n" + GOOD: "a continuation of the conversation",
    "The table was renamed.": "without the headings Goal, Constraints & Preferences, Progress, "
    "Key Decisions, Next Steps, Critical Context",
    GOOD.replace("## Next Steps", "Then"): "without the headings Next Steps",
    "\n".join(
        f"## {heading}\n(none)" for heading in prompts.headings("checkpoint", "first")
    ): "empty under its headings",
    GOOD + "\n" + "- the same line again\n" * 30: "one line over and over",
}


KINDS_OF_REJECTION = {
    "empty": "empty",
    "a continuation": "continuation",
    "without the headings": "headings",
    "one line": "loop",
}


@pytest.mark.parametrize("text", REJECTED, ids=range(len(REJECTED)))
def test_what_is_no_summary_is_rejected_and_says_why(text):
    words = REJECTED[text]
    why = next(why for start, why in KINDS_OF_REJECTION.items() if words.startswith(start))
    assert judged(text) == Rejected(why, words)


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        ("length", "cut off by the output limit"),
        ("tools", "the model called a tool instead of writing a summary"),
        ("error", "the model's reply broke off with an error"),
        ("aborted", "the reply was cancelled"),
        ("filter", "the model stopped with 'filter'"),
    ],
)
def test_a_reply_that_did_not_end_by_itself_is_rejected(stop, why):
    assert judged(GOOD, stop=stop) == Rejected("stopped", why)


def test_a_summary_larger_than_asked_or_than_its_input_is_rejected():
    tokens = LETTERS.count(GOOD)
    small = entries(user("hi"), tokens=10)

    assert judged(GOOD, tokens=tokens) == GOOD
    assert judged(GOOD, tokens=tokens - 1) == Rejected(
        "too_large", f"{tokens} tokens where {tokens - 1} were asked for"
    )
    wanted = msgspec.structs.replace(asked(), folded=small)
    assert check(SummaryReply(GOOD, "m"), wanted, counter=LETTERS) == Rejected(
        "too_large", f"larger than its input ({tokens} tokens of 10)"
    )
    unsized = msgspec.structs.replace(asked(), folded=entries(user("x" * 39), tokens=0), previous="y" * 8)
    assert check(SummaryReply(GOOD, "m"), unsized, counter=LETTERS) == Rejected(
        "too_large", f"larger than its input ({tokens} tokens of 12)"
    )


def test_a_copy_of_the_conversation_is_rejected_and_a_quote_is_not():
    lines = [f"line {n} of a log that says something" for n in range(80)]
    folded = entries(user("\n".join(lines)), tokens=2_000)
    wanted = msgspec.structs.replace(asked(tokens=2_000), folded=folded)
    copy = SummaryReply(GOOD + "\n" + "\n".join(lines), "m")
    quote = SummaryReply(GOOD + "\n" + "\n".join(lines[:8]), "m")

    assert check(copy, wanted, counter=LETTERS) == Rejected("copy", "a copy of the conversation")
    assert isinstance(check(quote, wanted, counter=LETTERS), str)


@pytest.mark.parametrize(
    "said",
    [
        "ログインページを直してください。\nsrc/app.py",
        "Почини страницу входа.",
        "로그인 페이지를 고쳐 주세요.",
    ],
)
def test_a_summary_in_latin_letters_is_rejected_where_the_user_writes_in_others(said):
    wanted = msgspec.structs.replace(asked(), ledger=Ledger(items=(Item("user", said, "e1"),)))
    assert check(SummaryReply(GOOD, "m"), wanted, counter=LETTERS) == Rejected(
        "language", "not in the language that the user writes in"
    )
    own = SummaryReply(GOOD + f"\n- {said} {said}", "m")
    assert isinstance(check(own, wanted, counter=LETTERS), str)
    mixed = Ledger(items=(Item("user", f"{said}\n" + "Traceback: the order was not found " * 9, "e1"),))
    wanted = msgspec.structs.replace(wanted, ledger=mixed)
    assert isinstance(check(SummaryReply(GOOD, "m"), wanted, counter=LETTERS), str), "logs are no words"


def test_secrets_in_a_reply_are_not_stored():
    key = "gh" + "p_" + "a1B2c3D4e5" * 4

    stored = GOOD.replace("(none)", "[redacted: GitHub token]", 1)
    assert judged(GOOD.replace("(none)", key, 1)) == stored


def test_two_sentences_for_display_need_no_headings_but_must_not_go_on():
    two = "The table was renamed. The migration is open."
    assert judged(two, kind="display") == two
    assert judged("Okay, I rename it now.", kind="display") == Rejected(
        "continuation", "a continuation of the conversation"
    )
    assert isinstance(judged("Sorry, no.", kind="display"), Rejected)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "display"])
@pytest.mark.parametrize("family", prompts.FAMILIES)
def test_a_reply_in_the_layout_that_was_asked_for_is_accepted(family, kind):
    policy = Policy(name="t", summary_prompt=family)
    text = "\n\n".join(
        f"## {heading}\n- this is what was said about {n}"
        for n, heading in enumerate(prompts.headings(family, kind))
    )

    assert judged(text, kind=kind, policy=policy) == text


def test_headings_can_be_given_by_the_caller():
    assert judged("## Only\nthis one", headings=["Only"]) == "## Only\nthis one"
    assert judged(GOOD, headings=["Other"]) == Rejected("headings", "without the headings Other")


@given(st.text(max_size=300))
def test_any_reply_is_judged_without_an_error(text):
    for kind in ("first", "display"):
        assert isinstance(judged(text, kind=kind), str | Rejected)
    assert unwrapped(unwrapped(text)) == unwrapped(unwrapped(unwrapped(text)))


UNITS = [
    "a", "A", "\n", " ", "x\n", "\t\n", "#", "#\n", "# \n", "## a\n", ">\n", "*", "`", "``", "```\n", "- ", "- a\n",
    "/", "a/", "a.", "_", "(", "[", "[a](", "<", "<think>", "<Analysis>\n", "<summary>", "</think>", "<think><summary>",
    "## ", "a (unverified) ", "<|", "<invoke ", "user: ", "never ", "**", "'", '"', "1. ", "key: ", "a=", "http://a", "## Goal\n",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_summary_is_judged_and_grounded_in_step_with_its_size(unit):
    def check(size):
        text = GOOD + unit * (size // len(unit)) + "\nx"
        judged(text, tokens=10**6)
        ground(text, LEDGER, [entry.message for entry in TALK], room=100, count=LETTERS.count)

    assert grows_in_step(check, 8_000)


@pytest.mark.parametrize("name", ["think", "Thinking", "ANALYSIS", "scratchpad"])
def test_reasoning_is_taken_off_up_to_its_own_end(name):
    assert unwrapped(f"a<{name}>b</{name.lower()}>c<{name}>d") == f"ac<{name}>d"
    assert unwrapped(f"<{name}>b<summary>c</summary>") == "c"
    assert unwrapped(f"<{name}>b</other></{name}><{name}></{name}>c") == "c"
    assert unwrapped(f"<{name}><analysis><think>b</{name}>c") in ("c", "<analysis>c")
    assert unwrapped("<think>a<analysis>b</analysis>c") == "<think>ac"
    assert unwrapped("<summary>\n\n a b \n\n</SUMMARY> c") == "a b"
    assert unwrapped("Here it is.\n<checkpoint>a\n") == "a"


# ---- chunks


def test_a_range_larger_than_the_window_is_split_between_messages():
    talk = tuple(entries(*(user(f"{n} " + "w" * 398) for n in range(10))))
    runs = chunks(talk, 300, LETTERS)

    assert [len(run) for run in runs] == [2, 2, 2, 2, 2]
    assert chunks(talk, 10**6, LETTERS) == [talk]
    assert chunks((), 10, LETTERS) == []


MESSAGES = st.lists(
    st.sampled_from(
        [
            user("hello " * 20),
            assistant("working " * 10),
            assistant("", call("a", "read", path="x"), call("b", "read", path="y")),
            results(("a", "one"), ("b", "two " * 60)),
            tool("a", "again"),
            tool("gone", "nobody asked"),
            assistant("", call("never", "wait")),
        ]
    ),
    max_size=14,
)


@given(MESSAGES, st.integers(1, 400))
def test_chunks_lose_nothing_and_never_split_a_call_from_its_result(messages, limit):
    talk = tuple(entries(*messages))
    runs = chunks(talk, limit, LETTERS)

    assert tuple(itertools.chain.from_iterable(runs)) == talk
    place = {entry.id: n for n, run in enumerate(runs) for entry in run}
    newest: dict[str, str] = {}
    for entry in talk:
        for answer in entry.message.results:
            if answer.call_id in newest:
                assert place[entry.id] == place[newest[answer.call_id]]
        newest |= {part.id: entry.id for part in entry.message.parts if isinstance(part, ToolCall)}
