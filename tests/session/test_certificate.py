"""A certified fold: what its receipt says is what the model does from both contexts, and costs what it says."""

import json
import re

import pytest
from tests.support.live import policy_with, session_on

from foldline.core.decide.price import Price, cost
from foldline.core.measure.window import Window
from foldline.providers import Patience
from foldline.summarizers import ModelSummarizer
from foldline.testing import Refusal, Scripted, call

DIALECTS = ["openai-chat", "anthropic", "openai-responses"]
WINDOW = Window(context=40_000, output=4_000)
QUICK = Patience(attempts=2, first=0.001, longest=0.002, jitter=0.001)
NUMBERS = re.compile(r"Read part (\d+)\.")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
READ = {
    "openai-chat": {"type": "function", "function": {"name": "read", "parameters": SCHEMA}},
    "anthropic": {"name": "read", "input_schema": SCHEMA},
    "openai-responses": {"type": "function", "name": "read", "parameters": SCHEMA, "strict": False},
}
PRICE = Price(input=1.0, output=2.0)


def called(dialect, number):
    """A call that reads a file, and its result, as a dialect writes them."""
    name, given, text = f"call_{number}", {"path": f"src/part{number}.py"}, f"part {number} " * 120
    if dialect == "anthropic":
        use = {"type": "tool_use", "id": name, "name": "read", "input": given}
        result = {"type": "tool_result", "tool_use_id": name, "content": text}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    if dialect == "openai-responses":
        made = {"type": "function_call", "call_id": name, "name": "read", "arguments": json.dumps(given)}
        return [made, {"type": "function_call_output", "call_id": name, "output": text}]
    function = {"name": "read", "arguments": json.dumps(given)}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": name, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": name, "content": text},
    ]


def turns(dialect, count):
    """Turns in which the model reads a file and says that it has."""
    for number in range(count):
        yield {"role": "user", "content": f"Read part {number}. " + "It is long. " * 60}
        yield from called(dialect, number)
        yield {"role": "assistant", "content": f"Part {number} is read."}


def is_decision(asked):
    """Whether a request ends with what the user asked or a result, and not with the wish for a summary."""
    newest = json.dumps(asked.messages[-1])
    return asked.tools is not None and ("It is long." in newest or re.search(r"part \d+ part", newest))


def repeating(asked, *, forgets=()):
    """Answer as it is recorded: read the file of the newest request, then say that it is read."""
    if not is_decision(asked):
        return "## Goal\nRead every part."
    text, newest = json.dumps(asked.messages), json.dumps(asked.messages[-1])
    number = int(NUMBERS.findall(text)[-1])
    if "It is long." not in newest:
        return f"Part {number} is read."
    wrong = number in forgets and "foldline-checkpoint" in text
    return call("read", path="src/wrong.py" if wrong else f"src/part{number}.py")


async def certified(store, dialect, answer, *, policy=None, **more):
    model = Scripted(answer, window=WINDOW, dialect=dialect)
    writer = ModelSummarizer(model, window=WINDOW, price=PRICE, patience=QUICK)
    session = session_on(
        store,
        writer,
        window=WINDOW,
        dialect=dialect,
        policy=policy or policy_with(background=False, certify=4, enable_pruning=False),
        tools=[READ[dialect]],
        **more,
    )
    await session.append(*turns(dialect, 14))
    return session, model


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_fold_that_changes_nothing_says_so(store, dialect):
    session, model = await certified(store, dialect, repeating)
    receipt = await session.compact()
    found = receipt.certificate
    assert (found.decisions, found.unchanged, found.failed) == (4, 4, 0)
    assert (found.whole_as_recorded, found.folded_as_recorded) == (4, 4)
    assert found.words in receipt.notes
    assert receipt.price > found.price > 0
    assert receipt.price == pytest.approx(cost(receipt.usage, PRICE)), "the tokens are those of the price"
    assert [one.refused for one in model.requests if one.refused] == []
    made = await session.store.marks("s", kinds=["compacted"])
    assert made[-1].receipt.certificate == found
    assert await session.verify() == []


async def test_a_decision_that_the_fold_changes_is_counted(store):
    session, _ = await certified(store, "openai-chat", lambda asked: repeating(asked, forgets={12, 13}))
    found = (await session.compact()).certificate
    assert (found.decisions, found.unchanged) == (4, 2)
    assert (found.whole_as_recorded, found.folded_as_recorded) == (4, 2)


async def test_what_cannot_be_asked_again_is_no_failure_of_the_fold(store):
    def answer(asked):
        return Refusal(400, "I refuse.") if is_decision(asked) else repeating(asked)

    session, _ = await certified(store, "openai-chat", answer)
    receipt = await session.compact()
    assert (receipt.certificate.decisions, receipt.certificate.failed) == (0, 4)
    assert receipt.tokens_after < receipt.tokens_before


async def test_the_price_is_told_before_and_nothing_is_asked_for_a_preview(store):
    session, model = await certified(store, "openai-chat", repeating)
    preview = await session.preview()
    assert not any(map(is_decision, model.requests)), "only the summary was asked for"
    [told] = [note for note in preview.receipt.notes if note.startswith("certifying it makes 4 decisions")]
    assert "twice each" in told
    assert "$0.0" in told
    receipt = await session.commit(preview)
    assert receipt.certificate.unchanged == 4
    assert told not in receipt.notes


async def test_nothing_is_asked_for_a_preview_of_a_path_that_was_folded_since(store):
    session, model = await certified(store, "openai-chat", repeating)
    preview = await session.preview()
    await session_on(store, window=WINDOW).compact(target=3_000)
    assert (await session.commit(preview)).why == "nothing_new"
    assert not any(map(is_decision, model.requests))


async def test_it_is_off_by_default_and_says_where_no_model_is_at_hand(store):
    session, model = await certified(store, "openai-chat", repeating, policy=policy_with(background=False))
    assert (await session.compact()).certificate is None
    assert not any(map(is_decision, model.requests))
    alone = session_on(
        store,
        window=WINDOW,
        policy=policy_with(background=False, certify=4),
        name="alone",
        dialect="openai-chat",
    )
    await alone.append(*turns("openai-chat", 14))
    receipt = await alone.compact()
    assert receipt.certificate is None
    assert "not certified: no model is configured" in receipt.notes
