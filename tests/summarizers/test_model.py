"""Who is asked, how often, in which form, and what the receipt says of it: with scripted models, in this process."""

import asyncio

import msgspec
import pytest
from tests.summarizers.talking import (
    GOOD,
    POLICY,
    QUICK,
    RULE,
    WINDOW,
    coding_session,
    make_model,
    reading_turns,
)
from tests.support.waiting import until

import foldline
from foldline.core.checkpoint.request import FAILED, Prefix
from foldline.core.checkpoint.summary import request
from foldline.core.decide.price import Cache, Price
from foldline.core.ledger.table import collect
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.loading import from_messages
from foldline.providers import Call
from foldline.summarizers import Candidate, ModelSummarizer
from foldline.summarizers.parts import MOST_PARTS
from foldline.testing import Answer, Gate, Refusal, Scripted, call

TARGET = 3_000
PRICE = Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
CHEAP = Price(input=0.1, output=0.5)
BUSY = Refusal(529, "Overloaded", kind="overloaded_error")
BROKEN = Refusal(500, "internal", kind="server_error")
NO_RIGHT = Refusal(401, "no such key", kind="authentication_error")
TOO_LONG = "This model's maximum context length is {} tokens. However, your messages resulted in {} tokens."


def asked(messages=None, *, kind="first", tokens=900, prefix=None, **more):
    entries = from_messages(coding_session() if messages is None else messages, OFFLINE).entries
    wanted = request(
        POLICY, kind=kind, folded=entries, previous=None, ledger=collect(entries), tokens=tokens, **more
    )
    return msgspec.structs.replace(wanted, prefix=prefix)


async def folded(summarizer, messages=None):
    return await foldline.acompact(
        coding_session() if messages is None else messages, TARGET, POLICY, summarizer=summarizer
    )


# ---- one call


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
async def test_a_summary_is_read_while_it_is_written(dialect):
    _, summarizer = make_model([BUSY, GOOD], dialect=dialect, price=PRICE)
    pieces = []
    reply = await summarizer.summarize(msgspec.structs.replace(asked(), on_text=pieces.append))
    assert pieces[0] is None
    assert len(pieces) > 2
    assert "".join(pieces[1:]) == reply.text == GOOD
    assert reply.usage.output > 0
    assert reply.price > 0


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
async def test_the_conversation_goes_out_as_text_without_tools_or_thinking(dialect):
    served, summarizer = make_model([GOOD], dialect=dialect, price=PRICE)
    done = await folded(summarizer)
    (sent,) = served.requests
    text = str(sent.messages[-1])
    assert "[User]: Please mend the login page" in text
    assert len([m for m in sent.messages if m.get("role") != "system"]) == 1
    assert sent.tools is None
    assert not sent.thinking
    assert done.receipt.summarizer == "scripted:scripted"
    assert done.receipt.usage.output == OFFLINE.count(GOOD)
    assert done.receipt.price == pytest.approx(
        (done.receipt.usage.input * 3 + done.receipt.usage.output * 15) / 1e6
    )
    assert "written by scripted:scripted" in done.receipt.notes


async def test_the_reply_says_which_model_how_and_why():
    _, summarizer = make_model([GOOD])
    reply = await summarizer.summarize(asked())
    assert (reply.text, reply.stop, reply.summarizer) == (GOOD, "end", "scripted:scripted")
    assert reply.detail == {"form": "bare", "calls": 1, "parts": 1, "why": "written by scripted:scripted"}
    assert reply.price is None, "its price is not known"


async def test_the_cap_of_the_reply_is_what_is_asked_for_with_some_slack_and_no_more_than_the_model_has():
    served, summarizer = make_model([GOOD])
    await summarizer.summarize(asked(tokens=1_000))
    assert served.requests[0].max_tokens == 1_506
    served, summarizer = make_model([GOOD], window=Window(context=20_000, output=700))
    await summarizer.summarize(asked(tokens=1_000))
    assert served.requests[0].max_tokens == 700
    assert (
        f"Take at most {msgspec.structs.replace(asked(), tokens=700).story_tokens} tokens."
        in served.requests[0].messages[-1]["content"]
    )


async def test_after_a_rejected_reply_the_cap_doubles_and_the_model_is_told_why():
    served, summarizer = make_model([Answer("", stop="length"), GOOD])
    done = await folded(summarizer)
    first, second = served.requests
    assert second.max_tokens > first.max_tokens
    assert (
        "An earlier reply could not be used: cut off by the output limit." in second.messages[-1]["content"]
    )
    assert done.receipt.summarizer == "scripted:scripted"
    assert "a summary by scripted:scripted was rejected: cut off by the output limit" in done.receipt.notes


@pytest.mark.parametrize("kind", ["branch", "merge", "display", "handoff"])
async def test_every_kind_of_request_is_asked_for(kind):
    served, summarizer = make_model(["Two sentences. That is all."])
    reply = await summarizer.summarize(asked(kind=kind, goal="ship it" if kind == "handoff" else None))
    assert reply.text.startswith("Two sentences")
    words = {
        "branch": "a branch that was left",
        "merge": "another branch of a conversation",
        "display": "Say in two sentences",
        "handoff": "<goal>\nship it",
    }
    assert words[kind] in served.requests[0].messages[-1]["content"]


async def test_focus_reaches_the_model():
    served, summarizer = make_model([GOOD])
    await foldline.acompact(
        coding_session(), TARGET, POLICY, instructions="the session store", summarizer=summarizer
    )
    assert "<focus>\nthe session store\n</focus>" in served.requests[0].messages[-1]["content"]


# ---- failures


async def test_what_passes_is_asked_again():
    served, summarizer = make_model([BUSY, BROKEN, GOOD])
    done = await folded(summarizer)
    assert (len(served.requests), done.receipt.summarizer) == (3, "scripted:scripted")


async def test_then_the_other_model_is_asked_and_the_receipt_says_why():
    spare = Scripted([GOOD], model="spare")
    served, summarizer = make_model(lambda asked: BUSY, price=CHEAP, other=Candidate(spare, WINDOW, PRICE))
    done = await folded(summarizer)
    assert (len(served.requests), len(spare.requests)) == (QUICK.attempts, 1)
    assert done.receipt.summarizer == "scripted:spare"
    assert done.receipt.price == pytest.approx(
        (done.receipt.usage.input * 3 + done.receipt.usage.output * 15) / 1e6
    )
    assert any(note.startswith("scripted:scripted wrote no summary: ") for note in done.receipt.notes)


async def test_where_no_model_answers_code_writes_and_no_model_is_asked_again():
    spare = Scripted(lambda asked: NO_RIGHT, model="spare")
    served, summarizer = make_model(
        lambda asked: NO_RIGHT, price=CHEAP, other=Candidate(spare, WINDOW, PRICE)
    )
    done = await folded(summarizer)
    assert (len(served.requests), len(spare.requests)) == (1, 1)
    assert done.receipt.summarizer == "offline"
    assert RULE in done.summary
    assert [note.split(":")[1].split()[0] for note in done.receipt.notes if "wrote no summary" in note] == [
        "scripted",
        "spare",
    ]


async def test_giving_up_is_a_reply_that_says_so():
    _, summarizer = make_model(lambda asked: NO_RIGHT)
    reply = await summarizer.summarize(asked())
    assert (reply.text, reply.stop, reply.usage) == ("", FAILED, None)


async def test_where_nothing_was_said_that_leaves_the_view_no_model_is_asked():
    served, summarizer = make_model([GOOD])
    reply = await summarizer.summarize(asked([]))
    assert (reply.stop, reply.text, list(served.requests)) == (FAILED, "", [])
    assert "nothing to summarise" in reply.notes[0]


async def test_cancelling_ends_the_call_and_leaves_the_summariser_usable():
    served, summarizer = make_model([Answer(GOOD, wait=Gate()), GOOD])
    task = asyncio.create_task(summarizer.summarize(asked()))
    await until(lambda: served.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await summarizer.summarize(asked())).text == GOOD


# ---- ranges that are too large


def small(answers, context=6_000, **more):
    return make_model(answers, window=Window(context=context, output=2_000), **more)


async def test_a_range_larger_than_the_window_is_summed_up_in_parts():
    told = []

    def answer(request):
        told.append(request.messages[-1]["content"])
        return GOOD.replace("- (none)", f"- part {len(told)} was read", 1)

    _, summarizer = small(answer)
    messages = coding_session(10)
    done = await folded(summarizer, messages)
    assert done.receipt.summarizer == "scripted:scripted"
    assert len(told) > 1
    assert (
        f"in {len(told)} parts: the range exceeds what scripted:scripted accepts at a time"
        in done.receipt.notes
    )
    assert "<previous-summary>" not in told[0]
    for number, prompt in enumerate(told[1:], 1):
        assert f"- part {number} was read" in prompt.split("<previous-summary>")[1]
    assert f"- part {len(told)} was read" in done.summary
    for number in range(8):
        assert sum(f"# part {number}\n" in prompt for prompt in told) == 1, "each result was shown once"
    assert done.receipt.usage.output > OFFLINE.count(GOOD), "each part was paid for"


async def test_a_second_attempt_at_the_whole_does_not_pay_for_the_parts_again():
    count = 0

    def answer(request):
        nonlocal count
        count += 1
        return "no headings at all" if count == parts else GOOD

    _, summarizer = small(lambda asked: GOOD)
    reply = await summarizer.summarize(asked(coding_session(10)))
    parts = reply.detail["parts"]
    assert parts > 1
    served, summarizer = small(answer)
    wanted = asked(coding_session(10))
    await summarizer.summarize(wanted)
    again = msgspec.structs.replace(wanted, attempt=1, rejected="without the headings Goal")
    reply = await summarizer.summarize(again)
    assert (len(served.requests), reply.text) == (parts + 1, GOOD)


async def test_a_part_whose_summary_is_none_is_asked_for_again_and_then_the_other_model_is():
    spare = Scripted([GOOD], model="spare")
    served, summarizer = small(["nonsense", "nonsense"], price=CHEAP, other=Candidate(spare, WINDOW, PRICE))
    reply = await summarizer.summarize(asked(coding_session(10)))
    assert (len(served.requests), reply.summarizer) == (2, "scripted:spare")
    assert any("the summary of a part was rejected: without the headings" in note for note in reply.notes)


@pytest.mark.slow
async def test_there_are_never_more_parts_than_a_few():
    served, summarizer = small(lambda asked: GOOD, context=5_000)
    reply = await summarizer.summarize(asked(coding_session(300), tokens=400))
    assert len(served.requests) == reply.detail["parts"] == MOST_PARTS
    assert all(request.refused is None for request in served.requests)


async def test_an_overflow_makes_the_range_smaller():
    """The model has less room than was known; its error names the sizes."""
    served = Scripted(lambda asked: GOOD, window=Window(context=4_500, output=2_000))
    summarizer = ModelSummarizer(served, window=Window(context=60_000, output=2_000), patience=QUICK)
    reply = await summarizer.summarize(asked(coding_session(10)))
    refused = [request for request in served.requests if request.refused]
    assert len(refused) == 1
    assert reply.text == GOOD
    assert reply.detail["parts"] > 1
    assert any("accepts less than its window" in note for note in reply.notes)
    before = len(served.requests)
    await summarizer.summarize(asked(coding_session(10), instructions="again"))
    assert not any(request.refused for request in list(served.requests)[before:]), "it is remembered"


async def test_an_overflow_that_names_no_sizes_is_tried_with_less_until_it_ends():
    served, summarizer = make_model(
        lambda asked: Refusal(400, "prompt is too long", kind="invalid_request_error")
    )
    reply = await summarizer.summarize(asked(coding_session(10)))
    assert reply.stop == FAILED
    sizes = [request.tokens for request in served.requests]
    assert 2 < len(sizes) <= 6
    assert sizes == sorted(sizes, reverse=True)


async def test_a_model_whose_window_cannot_hold_the_request_is_not_asked():
    served, summarizer = make_model([], window=Window(context=600, output=200))
    reply = await summarizer.summarize(asked())
    assert (reply.stop, len(served.requests)) == (FAILED, 0)
    assert any("without the conversation" in note for note in reply.notes)


# ---- in the session, and by price


def prefix_of(messages, *, cached=0, idle=1.0, dialect="openai-chat", window=WINDOW, **more):
    tokens = sum(OFFLINE.count(str(message)) for message in messages)
    cache = Cache(cached, idle=idle)
    return Prefix("scripted:scripted", dialect, window, messages, tokens=tokens, cache=cache, **more)


def warm(messages, **more):
    return prefix_of(messages, cached=10**6, **more)


class InSession:
    """A summariser whose requests carry the next request of a session."""

    def __init__(self, summarizer, prefix):
        self.name = summarizer.name
        self._summarizer, self._prefix = summarizer, prefix

    async def summarize(self, request):
        return await self._summarizer.summarize(msgspec.structs.replace(request, prefix=self._prefix))


TOOLS = [
    {
        "type": "function",
        "function": {"name": "read", "parameters": {"type": "object", "properties": {}}},
    }
]


async def test_with_a_warm_cache_it_is_asked_in_the_session_itself():
    messages = coding_session()
    served, summarizer = make_model([GOOD], price=PRICE)
    reply = await summarizer.summarize(asked(messages, kept=(), prefix=warm(messages, tools=TOOLS)))
    (sent,) = served.requests
    assert sent.messages[: len(messages)] == messages
    assert len(sent.messages) == len(messages) + 1
    assert sent.tools == TOOLS, "or the cache would not know the prefix"
    assert sent.messages[-1]["role"] == "user"
    assert sent.messages[-1]["content"].startswith("Stop the work here.")
    assert f"- {RULE}" in sent.messages[-1]["content"]
    assert reply.detail["form"] == "in-session"
    assert reply.notes[0].startswith("written in-session by scripted:scripted ($")
    assert "from its cache): cheapest; by scripted:scripted ($" in reply.notes[0]


async def test_anthropics_cache_is_read_by_a_mark_at_the_end_of_what_the_session_has():
    messages = [{"role": "user", "content": "Mend it. " * 3_000}, {"role": "assistant", "content": "Done."}]
    messages.append({"role": "user", "content": "And now?"})
    prefix = prefix_of(messages, cached=9_000, system="Be brief.", dialect="anthropic")
    served, summarizer = make_model([GOOD], dialect="anthropic", price=PRICE)
    marked = {"type": "text", "text": "And now?", "cache_control": {"type": "ephemeral"}}
    reply = await summarizer.summarize(asked(prefix=prefix))
    (sent,) = served.requests
    assert sent.messages[len(messages) - 1] == {"role": "user", "content": [marked]}
    assert "cache_control" not in str(sent.messages[-1])
    assert messages[-1]["content"] == "And now?", "the session's own list is as it was"
    assert reply.usage.cache_write > 5_000


async def test_what_the_session_has_cached_is_read_and_costs_a_tenth():
    messages = [{"role": "user", "content": "Mend it. " * 3_000}]
    served, summarizer = make_model(["ok", GOOD], price=PRICE)
    await served.complete(Call(messages=messages))
    reply = await summarizer.summarize(asked(prefix=warm(messages)))
    assert reply.usage.cache_read > 5_000
    assert reply.price < reply.usage.cache_read * 3 / 1e6


async def test_a_session_whose_cache_does_not_pay_is_not_asked_again():
    """Thinking or tools that only the caller's own loop knows make another prefix of it."""
    messages = coding_session()
    served, summarizer = make_model([GOOD, GOOD], price=PRICE)
    reply = await summarizer.summarize(asked(messages, prefix=warm(messages)))
    assert reply.detail["form"] == "in-session"
    assert reply.notes[-1].startswith("only 0 tokens of it were cached: ")
    reply = await summarizer.summarize(asked(messages, prefix=warm(messages)))
    assert reply.detail["form"] == "bare"
    assert len(served.requests) == 2


async def test_with_a_cold_cache_the_shorter_text_is_cheaper():
    messages = coding_session(10)
    served, summarizer = make_model([GOOD], price=PRICE)
    reply = await summarizer.summarize(asked(messages, prefix=prefix_of(messages, cached=10**6, idle=900.0)))
    assert reply.detail["form"] == "bare"
    assert served.requests[0].tokens < prefix_of(messages).tokens


async def test_a_cheaper_model_is_asked_where_it_is_cheaper():
    other = Scripted([GOOD], model="small")
    served, summarizer = make_model([], price=PRICE, other=Candidate(other, WINDOW, CHEAP))
    reply = await summarizer.summarize(asked())
    assert (reply.summarizer, len(served.requests)) == ("scripted:small", 0)
    assert reply.notes[0].startswith("written by scripted:small ($")
    other = Scripted([], model="dear")
    served, summarizer = make_model([GOOD], price=CHEAP, other=Candidate(other, WINDOW, PRICE))
    reply = await summarizer.summarize(asked())
    assert (reply.summarizer, len(other.requests)) == ("scripted:scripted", 0)


async def test_the_session_is_left_alone_where_the_request_does_not_fit_into_it():
    messages = coding_session(30)
    _, summarizer = small([GOOD] * 20, price=PRICE)
    reply = await summarizer.summarize(
        asked(prefix=warm(messages, window=Window(context=6_000, output=2_000)))
    )
    assert reply.detail["form"] == "bare"


async def test_after_a_call_in_the_place_of_a_summary_the_conversation_goes_out_as_text():
    messages = coding_session()
    served, summarizer = make_model([call("read", path="a.py"), GOOD], price=PRICE)
    done = await folded(InSession(summarizer, warm(messages, tools=TOOLS)), messages)
    first, second = served.requests
    assert first.tools == TOOLS
    assert second.tools is None
    assert done.receipt.summarizer == "scripted:scripted"
    assert any("the model called a tool" in note for note in done.receipt.notes)


async def test_a_server_that_refuses_the_form_is_asked_in_the_other():
    """Chat templates that want roles to alternate refuse two user messages in a row."""
    messages = coding_session()
    served, summarizer = make_model([GOOD], price=PRICE, alternation=True)
    reply = await summarizer.summarize(asked(messages, prefix=warm(messages)))
    assert served.requests[0].refused
    assert (reply.text, reply.detail["form"]) == (GOOD, "bare")


async def test_behind_an_overflow_the_request_that_was_refused_is_not_sent_again():
    """By our count it fits: the provider counted more, and would refuse it with one message more too."""
    messages = coding_session()
    served, summarizer = make_model([GOOD], price=PRICE)
    wanted = asked(messages, prefix=warm(messages))
    reply = await summarizer.summarize(msgspec.structs.replace(wanted, refused=True))
    assert (reply.text, reply.detail["form"], len(served.requests)) == (GOOD, "bare", 1)


async def test_where_no_price_is_known_a_warm_session_comes_first_and_a_cold_one_last():
    messages = coding_session()
    _, summarizer = make_model([GOOD])
    reply = await summarizer.summarize(asked(messages, prefix=warm(messages)))
    assert reply.detail["form"] == "in-session"
    _, summarizer = make_model([GOOD])
    assert (await summarizer.summarize(asked(messages, prefix=prefix_of(messages)))).detail["form"] == "bare"


@pytest.mark.parametrize("other", [{"model": "scripted:other"}, {"dialect": "anthropic"}, {"messages": []}])
async def test_only_its_own_model_in_its_own_dialect_is_asked_in_a_session(other):
    messages = coding_session()
    _, summarizer = make_model([GOOD], price=PRICE)
    prefix = msgspec.structs.replace(warm(messages), **other)
    reply = await summarizer.summarize(asked(messages, prefix=prefix))
    assert reply.detail["form"] == "bare"


async def test_the_window_that_the_session_knows_is_what_counts():
    learnt = Window(context=6_000, output=2_000)
    _, summarizer = make_model([GOOD] * 20)
    reply = await summarizer.summarize(
        asked(coding_session(30), prefix=prefix_of(coding_session(30), window=learnt))
    )
    assert reply.detail["parts"] > 1
    _, summarizer = make_model([GOOD])
    assert (await summarizer.summarize(asked(coding_session(30)))).detail["parts"] == 1


async def test_the_session_goes_on_with_its_own_model_where_the_other_fails():
    other = Scripted(lambda asked: NO_RIGHT, model="small")
    _, summarizer = make_model([GOOD], price=PRICE, other=Candidate(other, WINDOW, CHEAP))
    reply = await summarizer.summarize(asked())
    assert (reply.summarizer, len(other.requests)) == ("scripted:scripted", 1)


async def test_what_comes_later_is_folded_from_what_was_kept():
    served, summarizer = make_model([GOOD, GOOD.replace("### In Progress", "### In Progress\n- [ ] more")])
    done = await folded(summarizer)
    later = reading_turns(
        30, start=20, result="def login(): return session\n" * 30
    )  # short: no turn is split
    done = await folded(summarizer, [*done.messages, *later, {"role": "user", "content": "Go on."}])
    prompt = served.requests[1].messages[-1]["content"]
    assert "<previous-summary>\n## Goal" in prompt
    assert "bring that checkpoint up to date" in prompt.lower()
    assert "- [ ] more" in done.summary
