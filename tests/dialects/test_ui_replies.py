"""What `onFinish` hands over: the message, the usage of its last step, model and why it stopped."""

import pytest
from tests.dialects.ui_samples import STEP, answered, ui

from foldline.core.log.messages import Usage
from foldline.dialects import get
from foldline.dialects.base import message_dialect, reply_dialect
from foldline.errors import DialectError

VERCEL = get("ui-message")
USAGE = {
    "inputTokens": 100,
    "outputTokens": 20,
    "totalTokens": 120,
    "reasoningTokens": 5,
    "cachedInputTokens": 60,
}
ONE = ui("assistant", STEP, "Done.")
TWO = ui("assistant", STEP, answered(), STEP, "Done.")


def test_what_on_finish_is_given():
    event = {
        "messages": [ui("user", "hi"), ONE],
        "responseMessage": ONE,
        "isAborted": False,
        "finishReason": "stop",
    }
    message = VERCEL.decode_reply({**event, "totalUsage": USAGE})
    assert message.text == "Done."
    assert message.usage == Usage(input=40, cache_read=60, output=20)
    assert message.stop == "end"
    assert VERCEL.render([(message, ())]).messages == [ONE]
    assert reply_dialect(event) == "ui-message"


def test_usage_and_model_in_the_metadata():
    told = {**TWO, "metadata": {"usage": USAGE, "totalUsage": {"inputTokens": 900}, "model": "gpt-5.2"}}
    message = VERCEL.decode_reply(told)
    assert (message.usage.total, message.model) == (120, "gpt-5.2")
    assert reply_dialect(told) == "ui-message"
    assert VERCEL.decode(told).usage is None


def test_the_usage_of_all_steps_is_no_context_size():
    assert VERCEL.decode_reply({**TWO, "metadata": {"totalUsage": USAGE}}).usage is None
    assert VERCEL.decode_reply({**ONE, "metadata": {"totalUsage": USAGE}}).usage.total == 120


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"inputTokens": 10, "outputTokens": 2}, Usage(10, 0, 0, 2)),
        ({"inputTokens": 10, "cachedInputTokens": 90, "outputTokens": 2}, Usage(10, 90, 0, 2)),
        (
            {
                "inputTokens": 100,
                "inputTokenDetails": {"noCacheTokens": 5, "cacheReadTokens": 90, "cacheWriteTokens": 5},
            },
            Usage(5, 90, 5, 0),
        ),
        ({"promptTokens": 7, "completionTokens": 3}, Usage(7, 0, 0, 3)),
        ({"inputTokens": None, "outputTokens": "x"}, Usage()),
    ],
)
def test_forms_of_usage(usage, read):
    assert VERCEL.decode_reply({**ONE, "metadata": {"usage": usage}}).usage == read


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "end"),
        ("tool-calls", "tools"),
        ("length", "length"),
        ("content-filter", "error"),
        ("other", None),
        (5, None),
    ],
)
def test_stops(reason, stop):
    assert VERCEL.decode_reply({"responseMessage": ONE, "finishReason": reason}).stop == stop


def test_an_aborted_reply_says_so():
    assert (
        VERCEL.decode_reply({"responseMessage": ONE, "isAborted": True, "finishReason": "stop"}).stop
        == "aborted"
    )


def test_a_bare_message_is_read_as_one():
    assert VERCEL.decode_reply(ONE) == VERCEL.decode(ONE)
    assert message_dialect(ONE) == "ui-message"
    assert reply_dialect(ONE) is None


def test_a_reply_without_a_message_is_refused():
    with pytest.raises(DialectError, match="responseMessage"):
        VERCEL.decode_reply({"responseMessage": 5})
