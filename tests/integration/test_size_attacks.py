"""Long runs of one thing come to an end: each of these took minutes where a pattern grew with the square."""

import pytest
from tests.support.talk import calls, log_of, tool, user
from tests.support.work import count_calls

import foldline
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem

LONG = 400_000
RUNS = {
    "spaces": " ",
    "tabs": "\t",
    "stars": "*",
    "pipes": "|",
    "brackets": "[",
    "quotes": '"',
    "a dot": "a.",
}


@pytest.mark.parametrize("unit", RUNS.values(), ids=RUNS.keys())
def test_a_long_run_in_the_users_text_is_folded(unit):
    run = "x" + unit * (LONG // len(unit)) + "y. Never push to main."
    talk = [{"role": "user", "content": f"Fix it.\n{run}"}]
    for number in range(12):
        talk += [{"role": "assistant", "content": f"Step {number} went well. " * 60}]
        talk += [{"role": "user", "content": f"Go on with {number}."}]
    done = foldline.compact(talk, target=2_000)
    assert done.view_tokens <= 2_000
    assert "Never push to main." in done.summary


async def session_with_a_batch(count):
    """Open that many calls in one message and answer them one by one; return the functions that were called."""
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for number in range(count)
    ]
    with count_calls() as work:
        async with foldline.open("memory://", "s", window=1_000_000) as session:
            await session.append({"role": "user", "content": "Go."})
            await session.append({"role": "assistant", "content": None, "tool_calls": calls})
            for number in range(count):
                await session.append({"role": "tool", "tool_call_id": f"c{number}", "content": "x"})
            state = ViewState(await session.store.active(session.id), counter=OFFLINE)
    assert state.open_call_tokens == 0
    assert state.tokens == sum(item.tokens for item in state.view())
    return work.calls


async def test_a_batch_of_many_calls_takes_work_in_step_with_their_number():
    few = await session_with_a_batch(250)
    assert await session_with_a_batch(1_000) < 6 * few  # 16 times where each append looked at all open calls


def test_what_is_owed_is_what_the_view_adds():
    path = log_of(user("Go."), calls("a", "b", "c"), tool("b")).path()
    for end in range(1, len(path) + 1):
        state = ViewState(path[:end], counter=OFFLINE)
        assert state.tokens == sum(item.tokens for item in state.view())
        assert state.messages == len(state.view())
        assert state.open_call_tokens == sum(i.tokens for i in state.view() if isinstance(i, AddedItem))
