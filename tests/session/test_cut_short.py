"""A reply that the window cut short: handed over, it is folded for and asked for again."""

import pytest
from tests.support.live import Events, prompt, run_turns, session_on

from foldline.core.measure.window import Window
from foldline.errors import InputError, OverflowRemains, ProviderError
from foldline.summarizers import OfflineSummarizer

WIDE = Window(context=100_000, output=8_000)


async def wide(store, **more):
    session = session_on(store, window=WIDE, **more)
    await run_turns(session, 12)
    await session.append(prompt(12))
    return session


def cut(input_tokens, output, *, arguments=None, usage=True):
    said = {"role": "assistant", "content": "First I look at the"}
    if arguments is not None:
        function = {"name": "write", "arguments": arguments}
        said["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
    counted = {"prompt_tokens": input_tokens, "completion_tokens": output}
    reply = {"choices": [{"message": said, "finish_reason": "length"}]}
    return {**reply, "usage": counted} if usage else reply


@pytest.mark.parametrize(
    ("reply", "max_tokens"),
    [
        (cut(7_000, 400), 2_000),
        (cut(97_000, 2_990), None),
        (cut(7_000, 400, arguments='{"path": "a.p'), 2_000),
        (cut(0, 0, arguments='{"path": "a.p', usage=False), None),
    ],
)
async def test_a_reply_that_the_window_cut_short_is_mended_and_asked_for_again(store, reply, max_tokens):
    session = await wide(store, known=False)
    heard = Events(session)
    size = session.view_tokens
    messages = await session.overflowed(reply, max_tokens=max_tokens)
    assert session.view_tokens < size
    assert messages[-1] == prompt(12)
    assert session.max_tokens is None, "a shorter reply is what was wrong"
    assert heard.named("compacted")[0].receipt.reason == "overflow"
    assert session.setup.window == WIDE, "its end may have been a limit of the server's"
    with pytest.raises(OverflowRemains):
        await session.overflowed(reply, max_tokens=max_tokens)


async def test_a_reply_that_was_cut_short_leaves_room_for_a_whole_one(store):
    session = await wide(store, known=False)
    size = session.view_tokens
    await session.overflowed(cut(size, 400), max_tokens=2_000)
    assert session.view_tokens <= size + 400 - 2_000


async def test_anthropic_says_itself_that_the_window_was_full(store):
    session = await wide(store)
    reply = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "First I look at the"}],
        "stop_reason": "model_context_window_exceeded",
        "usage": {"input_tokens": 7_000, "output_tokens": 400},
    }
    await session.overflowed(reply)
    with pytest.raises(InputError, match="not an overflow"):
        await session.overflowed({**reply, "stop_reason": "max_tokens"})


class Notes:
    name = "model:notes"

    def __init__(self):
        self.asked = []

    async def summarize(self, request):
        self.asked.append(request.refused)
        return OfflineSummarizer().write(request)


async def test_only_behind_an_overflow_the_summariser_is_told_that_the_request_was_refused(store):
    notes = Notes()
    session = session_on(store, notes, window=WIDE)
    await run_turns(session, 12)
    await session.append(prompt(12))
    await session.overflowed(ProviderError("too long", kind="overflow", status=400))
    await run_turns(session, 6, 20)
    await session.compact()
    assert notes.asked == [True, False]


async def test_a_reply_that_took_all_that_it_was_given_is_no_overflow(store):
    session = await wide(store)
    for reply, max_tokens in ((cut(7_000, 2_000), 2_000), (cut(7_000, 400), None)):
        with pytest.raises(InputError, match="max_tokens"):
            await session.overflowed(reply, max_tokens=max_tokens)
