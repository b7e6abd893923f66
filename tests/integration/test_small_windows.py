"""Every preset in small windows: long talk through real sessions, against a model that refuses what is too long."""

from __future__ import annotations

import pytest

import foldline
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Compacted, Pruned
from foldline.core.log.messages import ToolCall
from foldline.core.measure.window import Window
from foldline.errors import FloorExceeded, OverflowRemains, ProviderError
from foldline.providers.base import Call
from foldline.testing import Answer, Scripted

pytestmark = pytest.mark.slow

WORDS = "The parser reads every line of the config and keeps what it cannot name. "
LOOKS_AT_ALL = {  # at every request, at all that is sent: the others learn of it from the provider
    "foldline", "klaude", "gencode", "gencode:low-cost", "gencode:balanced", "gencode:high-quality", "claude-code",
    "codex", "opencode",
}  # fmt: skip
TURNS = 12
NEARLY = 1.01  # sent back, the newest reply takes some tokens more than its usage says: its frame
DIGITS = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 "
CHINESE = "构建脚本在第三步失败，因为缓存目录不可写，需要先清理再重试。"


def script(turn: int, step: int) -> Answer:
    """Read up to four parts, then say so at some length."""
    if step < turn * 3 % 5:
        return Answer(text=f"I read part {step}.", calls=(ToolCall("", "read", {"path": f"src/m{turn}.py"}),))
    return Answer(text=f"Module {turn} is mended. {WORDS * (turn % 4 * 3)}")


async def answered(session, model, policy):
    """Ask as an agent does: a request that is refused is mended once, and what cannot be is raised."""
    messages = await session.context()
    try:
        return await model.complete(Call(messages=messages, system=session.system))
    except ProviderError as error:
        most = session.setup.window.input_limit * NEARLY
        assert policy not in LOOKS_AT_ALL or session.view_tokens <= most, "the session sent what is too long"
        await session.overflowed(error, view=messages)  # raises what is no overflow
    messages = await session.context()
    assert session.view_tokens <= session.setup.window.input_limit
    return await model.complete(Call(messages=messages, system=session.system))


def said(reply, *, usage):
    """The reply as it is appended; not every provider says what it counted."""
    return reply.native if usage else {key: value for key, value in reply.native.items() if key != "usage"}


async def talk(session, model, place, policy, *, usage, read=WORDS) -> int:
    """Have all turns, in which the user and results say `read`; returns how many were answered to the end."""
    result = 0
    for turn in range(TURNS):
        place[:] = [turn, 0]
        await session.append(
            {"role": "user", "content": f"Please mend module {turn}. {read * (turn * 7 % 30)}"}
        )
        try:
            while True:
                reply = await answered(session, model, policy)
                await session.append(said(reply, usage=usage))
                place[1] += 1
                calls = reply.native.get("tool_calls") or []
                for call in calls:
                    text = f"part: {read * ((turn * 11 + place[1] * 17) % 40)}"
                    await session.append({"role": "tool", "tool_call_id": call["id"], "content": text})
                if not calls:
                    break
        except (FloorExceeded, OverflowRemains):
            if policy != "amp":
                raise
            return result
        except ProviderError:
            assert policy == "amp", "it is never folded by itself, nor behind an overflow"
            return result
        result += 1
    return result


async def receipts(session):
    """The receipts of all boundaries of the session."""
    path = [entry async for entry in session.store.path(session.id)]
    return [entry.receipt for entry in path if isinstance(entry, Compacted | Pruned)]


@pytest.mark.parametrize("context", [3_000, 4_000, 5_000, 8_000, 16_000])
@pytest.mark.parametrize("usage", [True, False])
@pytest.mark.parametrize("policy", sorted(PRESETS))
async def test_no_request_is_too_long_for_a_small_window(policy, usage, context):
    window, place = Window(context=context, output=400), [0, 0]
    model = Scripted(lambda asked: script(*place), window=window)
    system = {"role": "system", "content": "You mend modules. " * 20}
    async with foldline.open("memory://", "s", policy=policy, window=window) as session:
        await session.append(system)
        result = await talk(session, model, place, policy, usage=usage)
    assert result == TURNS or policy == "amp"


@pytest.mark.parametrize("text", [DIGITS, CHINESE], ids=["digits", "chinese"])
@pytest.mark.parametrize("context", [3_000, 6_000])
@pytest.mark.parametrize("usage", [True, False])
@pytest.mark.parametrize("policy", sorted(LOOKS_AT_ALL))
async def test_no_request_is_too_long_where_the_estimator_of_a_preset_sees_less(policy, usage, context, text):
    window, place = Window(context=context, output=400), [0, 0]
    model = Scripted(lambda asked: script(*place), window=window)
    async with foldline.open("memory://", "s", policy=policy, window=window) as session:
        result = await talk(session, model, place, policy, usage=usage, read=text)
        reasons = {receipt.reason for receipt in await receipts(session)}
    assert result == TURNS
    assert reasons <= {"threshold", "model_switch", "overflow"}


async def test_a_receipt_names_what_the_estimator_of_the_preset_did_not_see():
    window = Window(context=3_000, output=400)
    async with foldline.open("memory://", "s", policy="codex", window=window) as session:
        await session.append({"role": "user", "content": "Read the log."})
        for n in range(4):
            call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            await session.append({"role": "assistant", "content": None, "tool_calls": [call]})
            await session.append({"role": "tool", "tool_call_id": f"c{n}", "content": CHINESE * 35})
        assert session.view_tokens > window.input_limit
        await session.context()
        (receipt,) = await receipts(session)
        assert session.view_tokens <= window.input_limit
    assert receipt.reason == "threshold"
    assert receipt.notes[0].startswith("the policy's estimator (chars/4) sees ")
    assert receipt.notes[0].endswith(": more than the input limit of 3,000")
