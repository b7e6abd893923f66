"""Libraries and proxies that only shrink a history."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from foldline.bench.rivals.registry import NOTE, count, folder, module, note, rival, with_vocabulary
from foldline.bench.system import Fold, Messages


@rival("litellm")
def litellm_trim(budget: int) -> Fold:
    """trim_messages(messages, max_tokens=budget)"""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would fetch it
    trim = module("litellm.utils").trim_messages
    return lambda messages: trim([dict(one) for one in messages], max_tokens=budget)


@rival("headroom-ai")
def headroom(budget: int) -> Fold:
    """compress(messages, model="gpt-4o", model_limit=budget, kompress_model="disabled")"""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("HEADROOM_OFFLINE", "1")
    compress = module("headroom").compress
    return lambda messages: (
        compress(messages, model="gpt-4o", model_limit=budget, kompress_model="disabled").messages
    )


@rival("ctxkeeper", writer=True)
def ctxkeeper(budget: int) -> Fold:
    """Keeper(ask, state_dir, budget=budget).complete(body)"""
    place = folder()
    sent: list[Any] = []

    def ask(body: dict[str, Any]) -> dict[str, Any]:
        sent.append(body["messages"])
        return {"choices": [{"message": {"role": "assistant", "content": NOTE}, "finish_reason": "stop"}]}

    keeper = module("ctxkeeper").Keeper(ask, Path(place()), budget=budget)

    def fold(messages: Messages) -> list[Any]:
        place()  # it is there as long as the fold
        keeper.complete({"model": "m", "messages": messages})
        return sent[-1]

    return fold


@rival("chatcram", replaces=True, writer=True)
def chatcram(budget: int) -> Fold:
    """Compactor(budget, summarize).compact(messages)"""
    compactor = module("chatcram").Compactor(budget, note)
    return lambda messages: compactor.compact(messages).messages


@rival("contexttrim")
def contexttrim(budget: int) -> Fold:
    """ContextManager(token_budget=budget, strategy=ImportanceWeighted()).fit()"""
    manager = module("contexttrim").ContextManager
    strategy = module("contexttrim.strategies").ImportanceWeighted()

    def fold(messages: Messages) -> list[Any]:
        made = manager(token_budget=budget, strategy=strategy, token_counter=count)
        for one in messages:
            made.add(one)
        return made.fit()

    return fold


@rival("convopack")
def convopack(budget: int) -> Fold:
    """Packer(budget=budget, strategy=Recency(), pin=["system", "first_user"]).pack(messages)"""
    kind = module("convopack")
    packer = kind.Packer(budget=budget, strategy=kind.Recency(), pin=["system", "first_user"])
    form = module("convopack.providers.openai")
    return lambda messages: form.to_openai(packer.pack(form.from_openai(messages)).kept)


@rival("contextgc")
def contextgc(budget: int) -> Fold:
    """compile_messages(messages)"""
    del budget  # it takes none
    run = module("contextgc").compile_messages
    return lambda messages: run(messages)[0]


@rival("contextpress")
def contextpress(budget: int) -> Fold:
    """ContextManager(type="agent").compress(messages, token_budget=budget)"""
    with_vocabulary()
    manager = module("contextpress").ContextManager(type="agent")
    return lambda messages: manager.compress(messages, token_budget=budget)


@rival("distil-llm")
def distil(budget: int) -> Fold:
    """compress_messages(messages).messages"""
    del budget  # it takes none
    compress = module("distil").compress_messages
    return lambda messages: compress(messages).messages
