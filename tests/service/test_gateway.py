"""Official clients through the gateway: nothing is seen of it, and no session overflows."""

from __future__ import annotations

import openai
from tests.service.served import in_front_of

FILLER = "It works as it was asked for, and every word of it is needed. " * 30


def answers(asked):
    return f"Answer {asked.index}. " + FILLER


def test_a_chat_goes_on_past_its_window():
    with in_front_of(answers, window=12_000) as (url, model):
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="test", max_retries=0)
        messages = [{"role": "system", "content": "You help."}]
        for number in range(40):
            messages.append({"role": "user", "content": f"Question {number}. {FILLER}"})
            reply = client.chat.completions.create(model="scripted", messages=messages)
            messages.append({"role": "assistant", "content": reply.choices[0].message.content})
    assert model.requests[-1].messages[0] == {"role": "system", "content": "You help."}
    assert len(model.requests[-1].messages) < 40
    assert model.requests[0].messages == messages[:2]
