"""Libraries and proxies that shorten a history."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from foldline.bench.rivals.registry import (
    SUMMARY,
    count_tokens,
    module,
    rival,
    scripted_summary,
    temporary_folder,
    use_local_vocabulary,
)
from foldline.bench.system import Fold, Messages


@rival("litellm")
def litellm_trim(budget: int) -> Fold:
    """trim_messages(messages, max_tokens=budget)"""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # the default is to download it
    trim = module("litellm.utils").trim_messages
    return lambda messages: trim([dict(message) for message in messages], max_tokens=budget)


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
    path = temporary_folder()
    sent: list[Any] = []

    def ask(body: dict[str, Any]) -> dict[str, Any]:
        sent.append(body["messages"])
        return {"choices": [{"message": {"role": "assistant", "content": SUMMARY}, "finish_reason": "stop"}]}

    keeper = module("ctxkeeper").Keeper(ask, Path(path()), budget=budget)

    def fold(messages: Messages) -> list[Any]:
        path()  # a reference, so that the folder lives as long as the fold
        keeper.complete({"model": "m", "messages": messages})
        return sent[-1]

    return fold


@rival("chatcram", replaces=True, writer=True)
def chatcram(budget: int) -> Fold:
    """Compactor(budget, summarize).compact(messages)"""
    compactor = module("chatcram").Compactor(budget, scripted_summary)
    return lambda messages: compactor.compact(messages).messages


@rival("contexttrim")
def contexttrim(budget: int) -> Fold:
    """ContextManager(token_budget=budget, strategy=ImportanceWeighted()).fit()"""
    manager = module("contexttrim").ContextManager
    strategy = module("contexttrim.strategies").ImportanceWeighted()

    def fold(messages: Messages) -> list[Any]:
        context = manager(token_budget=budget, strategy=strategy, token_counter=count_tokens)
        for message in messages:
            context.add(message)
        return context.fit()

    return fold


@rival("convopack")
def convopack(budget: int) -> Fold:
    """Packer(budget=budget, strategy=Recency(), pin=["system", "first_user"]).pack(messages)"""
    convopack = module("convopack")
    packer = convopack.Packer(budget=budget, strategy=convopack.Recency(), pin=["system", "first_user"])
    openai = module("convopack.providers.openai")
    return lambda messages: openai.to_openai(packer.pack(openai.from_openai(messages)).kept)


@rival("contextgc")
def contextgc(budget: int) -> Fold:
    """compile_messages(messages)"""
    del budget  # it takes none
    compile_messages = module("contextgc").compile_messages
    return lambda messages: compile_messages(messages)[0]


@rival("contextpress")
def contextpress(budget: int) -> Fold:
    """ContextManager(type="agent").compress(messages, token_budget=budget)"""
    use_local_vocabulary()
    manager = module("contextpress").ContextManager(type="agent")
    return lambda messages: manager.compress(messages, token_budget=budget)


@rival("distil-llm")
def distil(budget: int) -> Fold:
    """compress_messages(messages).messages"""
    del budget  # it takes none
    compress = module("distil").compress_messages
    return lambda messages: compress(messages).messages
