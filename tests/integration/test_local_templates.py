"""Servers that want user and assistant in turn, as chat templates do: no fold ends a session there."""

from __future__ import annotations

from itertools import pairwise

import anthropic
import openai
import pytest
from tests.service.served import run_service
from tests.support.live import policy_with

import foldline
from foldline.testing import Scripted, serve_in_thread

WINDOW = 9_000
LOCAL, LEARNT = "openai-compatible:m", "openai:m"


def answer(asked):
    del asked
    return "dry quay " * 450


@pytest.fixture
def template():
    """A server that refuses two messages of one role in a row."""
    model = Scripted(answer, window=WINDOW, alternation=True)
    with serve_in_thread(model) as url:
        yield model, url


@pytest.mark.parametrize("name", [LOCAL, LEARNT])
async def test_a_session_goes_on_past_its_folds_with_the_real_sdk(tmp_path, template, name):
    _, url = template
    refused = 0
    async with openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0, timeout=60) as client:
        for number in range(10):
            # opened anew each time: what was learnt is in the log
            async with foldline.open(
                f"sqlite:///{tmp_path}/s.db", "s", window=WINDOW, model=name, policy=policy_with()
            ) as session:
                await session.append({"role": "user", "content": f"Question {number}?"})
                view = await session.context()
                try:
                    reply = await client.chat.completions.create(model="m", messages=view)
                except openai.BadRequestError as error:
                    refused += 1
                    view = await session.overflowed(error, view=view)
                    reply = await client.chat.completions.create(model="m", messages=view)
                await session.append(reply)
                assert session.in_turn == (name == LOCAL or refused > 0)
    assert refused == (name == LEARNT)
    async with foldline.open(
        f"sqlite:///{tmp_path}/s.db", "s", window=WINDOW, model=name, policy=policy_with()
    ) as session:
        assert (await session.stats()).summaries


async def test_an_anthropic_server_that_wants_it_too(template):
    _, url = template
    async with anthropic.AsyncAnthropic(base_url=url, api_key="any", max_retries=0, timeout=60) as client:
        async with foldline.open("memory://", "s", window=WINDOW, model="anthropic-compatible:m") as session:
            for number in range(10):
                await session.append({"role": "user", "content": f"Question {number}?"})
                view = await session.context()
                await session.append(await client.messages.create(model="m", max_tokens=1_500, messages=view))
            assert (await session.stats()).summaries


async def test_what_a_template_refuses_all_the_same_is_raised(template):
    async with foldline.open("memory://", "s", window=WINDOW, model=LOCAL) as session:
        await session.append({"role": "user", "content": "Hi."})
        with pytest.raises(ValueError, match="alternate"):
            await session.overflowed(ValueError("roles must alternate"), view=await session.context())


def test_a_list_is_folded_into_turns_and_found_again():
    talk = [
        {"role": role, "content": f"{role} {number} " + "dry quay " * 200}
        for number in range(12)
        for role in ("user", "user", "assistant")
    ]
    for _ in range(2):
        done = foldline.compact([*talk, {"role": "user", "content": "Go on."}], 3_000, model=LOCAL)
        assert all(one["role"] != two["role"] for one, two in pairwise(done.messages))
        assert str(done.messages).count("<foldline-checkpoint") == 1
        talk = [*done.messages, {"role": "assistant", "content": "dry quay " * 1_500}]


def test_the_gateway_joins_for_an_upstream_of_ones_own(template):
    model, url = template
    with run_service(
        openai_upstream=f"{url}/v1", store="memory://", window=WINDOW, summaries="offline"
    ) as at:
        with openai.OpenAI(base_url=f"{at}/v1", api_key="any", max_retries=0, timeout=60) as client:
            messages = []
            for number in range(10):
                messages.append({"role": "user", "content": f"Question {number}?"})
                reply = client.chat.completions.create(model="m", messages=messages)
                messages.append({"role": "assistant", "content": reply.choices[0].message.content})
    assert len(model.requests[-1].messages) < len(messages) - 1
