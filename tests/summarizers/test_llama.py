"""A real server and a real, tiny model: what it writes is no summary (invariant 7), and code stands in for it."""

import pytest
from tests.summarizers.talking import POLICY, RULE, coding_session
from tests.support.llama import WINDOW

import foldline
from foldline.dialects import get

pytestmark = pytest.mark.slow
SMOL = {
    "openai-chat": "openai-compatible:smollm2@{}/v1",
    "openai-responses": "openai-compatible:smollm2@{}/v1",
    "anthropic": "anthropic-compatible:smollm2@{}/v1",
}


@pytest.mark.parametrize(  # the providers' own tests ask that server in every dialect
    "dialect",
    [name if name == "anthropic" else pytest.param(name, marks=pytest.mark.soak) for name in SMOL],
)
async def test_a_summary_that_is_none_is_asked_for_again_and_then_replaced(llama, dialect):
    name = SMOL[dialect].format(llama)
    window = foldline.Window(
        context=WINDOW, output=64
    )  # a model that writes until it is stopped is soon seen to
    async with foldline.open(
        "memory://", "s", model=name, window=window, policy=POLICY, dialect=dialect
    ) as session:
        await session.append(*coding_session(2, result="def login(): return session\n" * 60))
        receipt = await session.compact(target=800)
        messages = await session.context()
    assert receipt.summarizer == "offline"
    assert receipt.usage.output > 0, "the model was asked, and paid for"
    assert receipt.usage.input + receipt.usage.cache_read > 500
    assert any(note.startswith(f"a summary by {name} was rejected: ") for note in receipt.notes), (
        receipt.notes
    )
    assert RULE in str(messages)
    assert get(dialect).validate(messages) == []
