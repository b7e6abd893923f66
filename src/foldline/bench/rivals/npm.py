"""Systems from npm: a Node.js process (`npm.mjs`) answers requests, which are lines of JSON."""

from __future__ import annotations

import atexit
import time
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, cast

import msgspec

from foldline.bench.rivals.registry import rival
from foldline.bench.system import Fold, Messages, clock, node_modules

SCRIPT = Path(__file__).with_suffix(".mjs")


class NodeAnswer(msgspec.Struct):
    """A folded history, or an error, and the processor time in seconds."""

    seconds: float
    messages: Messages = []
    error: str = ""


class NodeProcess:
    """A Node.js process that uses the packages in `node_modules`."""

    def __init__(self) -> None:
        # with --eval, Node.js imports packages from the working directory
        command = ["node", "--input-type=module", "--eval", SCRIPT.read_text(encoding="utf-8")]
        self._process = Popen(  # noqa: S603 - our own script
            command, cwd=node_modules().parent, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        atexit.register(self.close)

    def fold(self, system: str, budget: int, messages: Messages) -> Messages:
        """Fold a history; of the time, only the system's counts."""
        started = time.process_time()
        try:
            request = {"system": system, "budget": budget, "messages": messages}
            self._requests.write(msgspec.json.encode(request) + b"\n")
            self._requests.flush()
            answer = msgspec.json.decode(self._answers.readline(), type=NodeAnswer)
        except BaseException:  # it died or took too long: a late answer would be read as the next one
            self.close()
            raise
        clock(answer.seconds - (time.process_time() - started))
        if answer.error:
            raise RuntimeError(answer.error)
        return answer.messages

    def close(self) -> None:
        """End the process."""
        _node.cache_clear()
        atexit.unregister(self.close)
        self._process.kill()
        self._process.communicate()


@cache
def _node() -> NodeProcess:
    return NodeProcess()


def _fold(system: str, budget: int) -> Fold:
    return lambda messages: _node().fold(system, budget, messages)


@rival("npm:ai")
def ai_prune_messages(budget: int) -> Fold:
    """pruneMessages({ messages, reasoning: "before-last-message", toolCalls: "before-last-2-messages",
    emptyMessages: "remove" })"""
    return _fold("ai-prune-messages", budget)


@rival("npm:@langchain/core")
def langchain_js_trim(budget: int) -> Fold:
    """trimMessages(messages, { maxTokens: budget, tokenCounter, strategy: "last", startOn: "human",
    includeSystem: true })"""
    return _fold("langchain-js-trim", budget)


@rival("npm:@mastra/core")
def mastra_token_limiter(budget: int) -> Fold:
    """inputProcessors: [new TokenLimiterProcessor(budget)]"""
    return _fold("mastra-token-limiter", budget)


@rival("npm:@mastra/core")
def mastra_tool_call_filter(budget: int) -> Fold:
    """inputProcessors: [new ToolCallFilter({ filterAfterToolSteps: 5 }),
    new TokenLimiterProcessor(budget)]"""
    return _fold("mastra-tool-call-filter", budget)
