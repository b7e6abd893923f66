"""Compare the adapters with the compaction of their own frameworks, in one loop: a table of docs/results/README.md.

    .venv/frameworks/bin/python -m tools.adapter_table --save                         2,000 messages each, into the page
    .venv/frameworks/bin/python -m tools.adapter_table --messages 60 --only strands   one framework, printed

`make adapters` makes that environment. pydantic-ai's own compaction is a package which pins an older pydantic-ai:
`pip install --no-deps pydantic-ai-harness json-repair`; what is not installed has no row.

The user asks for files to be looked at, and states a rule in every second message. The agent's model, a script, looks at
some, one by one; every fourth run breaks off since the tool raises. No request is refused: those that a provider would
refuse are counted. Where a framework has its summaries written by a model, that is a script too: it repeats word for
word each rule that it is shown, which no model is sure to do.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import logging
import os
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import tiktoken
from tests.adapters import drivers
from tests.adapters.drivers import Boom, Driver
from tools.results import Table, save, shown

from foldline.bench.system import texts
from foldline.dialects import get

ADAPTERS = Path(__file__).parents[1] / "src" / "foldline" / "adapters"
VOCABULARY = Path(str(find_spec("litellm").origin)).parent / "litellm_core_utils" / "tokenizers"
RULES = (
    "Never push to main.",
    "Always write dates as YYYY-MM-DD.",
    "Don't touch the generated files in build/.",
    "Answer in British English.",
    "Please use tabs in the Makefile, never spaces.",
    "The customer's name must not appear in the report.",
    "Only use the standard library.",
    "From now on, keep each answer below 100 words.",
    "I want every function to have a docstring.",
    "Prices are to be rounded to 5 cents.",
)
STEPS = (12, 24, 36, 48)  # calls of the tool in a run
RESULT = re.compile(r"content of (\S+): .{1500,3000}?end of \1\b", re.DOTALL)  # a whole one


# ---- what the frameworks have themselves


class Framework(msgspec.Struct):
    """A framework, its adapter's module, its package; the modules of its own ways, and what a user writes for each."""

    driver: type[Driver]
    module: str
    package: str
    modules: str = ""
    own: tuple[str, ...] = ("",)

    def given(self, line: str, driver: Driver) -> dict[str, Any]:
        """Return what a line gives the framework: `line` is what runs."""
        modules = [import_module(one) for one in self.modules.split()]
        named = set(re.findall(r"\w+", line))
        names = {name: getattr(one, name) for one in modules for name in named if hasattr(one, name)}
        names |= {"window": driver.options["window"], "model": driver.model(summary), "client": CLIENT}
        return eval(f"dict({line})", names)


FRAMEWORKS = (
    Framework(
        drivers.LangChain,
        "langchain",
        "langchain",
        "langchain.agents.middleware",
        (
            'middleware=[SummarizationMiddleware(model, trigger=("fraction", 0.8))]',
            "middleware=[ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=int(0.8 * window))])]",
        ),
    ),
    Framework(
        drivers.PydanticAI,
        "pydantic_ai",
        "pydantic-ai-slim",
        "pydantic_ai_harness.compaction",
        (
            "capabilities=[SummarizingCompaction(model, max_fraction=0.8, context_window=window)]",
            "capabilities=[SlidingWindowCompaction(max_fraction=0.8, context_window=window)]",
        ),
    ),
    Framework(
        drivers.OpenAIAgents,
        "openai_agents",
        "openai-agents",
        "agents agents.extensions",
        (
            'session=OpenAIResponsesCompactionSession("id", SQLiteSession("id"), client=client, compaction_mode="input")',
            'session=SQLiteSession("id"), run_config=RunConfig(call_model_input_filter=ToolOutputTrimmer())',
        ),
    ),
    Framework(
        drivers.ADK,
        "adk",
        "google-adk",
        "google.adk.apps.app google.adk.apps.llm_event_summarizer",
        (
            "events_compaction_config=EventsCompactionConfig(token_threshold=int(0.8 * window), event_retention_size=20, summarizer=LlmEventSummarizer(model))",
        ),
    ),
    Framework(
        drivers.AgentFramework,
        "agent_framework",
        "agent-framework-core",
        "agent_framework",
        (
            "compaction_strategy=ContextWindowCompactionStrategy(max_context_window_tokens=window, max_output_tokens=2_000)",
            "compaction_strategy=SummarizationStrategy(client=model, target_count=20)",
        ),
    ),
    Framework(
        drivers.Strands,
        "strands",
        "strands-agents",
        "strands.agent.conversation_manager",
        (
            "conversation_manager=SummarizingConversationManager(proactive_compression=True), aux_model=model",
            "conversation_manager=SlidingWindowConversationManager(per_turn=True, proactive_compression=True)",
        ),
    ),
    Framework(
        drivers.LlamaIndex,
        "llama_index",
        "llama-index-core",
        "llama_index.core.memory",
        ('memory=Memory.from_defaults(session_id="id", token_limit=window)',),
    ),
    Framework(drivers.Smolagents, "smolagents", "smolagents"),
    Framework(drivers.Agno, "agno", "agno"),
    Framework(
        drivers.AutoGen,
        "autogen",
        "autogen-agentchat",
        "autogen_core.model_context",
        ("model_context=BufferedChatCompletionContext(buffer_size=20)",),
    ),
    Framework(
        drivers.LiteLLM,
        "litellm",
        "litellm",
        "litellm.utils",
        ("trim=lambda messages: trim_messages(messages, max_tokens=int(0.8 * window))",),
    ),
)


def summary(request: Sequence[Any]) -> str:
    """Answer a request for a summary: with each rule that stands in it."""
    asked = "\n".join(texts(request))
    return " ".join(["Files were looked at, one by one.", *(rule for rule in RULES if rule in asked)])


async def compacted(*, input: Sequence[Any], **_: Any) -> Any:  # noqa: A002 - the API's name
    """Answer as OpenAI's compaction does: what users said, and one item that only the provider can read."""
    said = [one for one in input if one.get("role") == "user"]
    return SimpleNamespace(output=[*said, {"type": "compaction", "id": "c", "encrypted_content": "x"}])


CLIENT = SimpleNamespace(responses=SimpleNamespace(compact=compacted))


# ---- the loop, and what it comes to


class Judge:
    """Looks at each request as the provider would: is it valid, and does it fit."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.requests = self.invalid = self.overflows = self.tokens = 0
        self.broken: Counter[str] = Counter()
        self.last: list[Any] = []
        self.seconds = self.computed = 0.0  # that judging took, and for which it computed

    def __call__(self, view: list[Any]) -> None:
        begun, computed = time.perf_counter(), time.thread_time()
        self.last = self.driver.native(view)
        broken = {one.rule for one in get(self.driver.dialect).validate(self.last)}
        tokens = self.driver.used = sum(count("\n".join(texts(one))) for one in self.last)
        self.requests += 1
        self.broken.update(broken)
        self.invalid += bool(broken)
        self.overflows += tokens > self.driver.options["window"]
        self.tokens += tokens
        self.seconds += time.perf_counter() - begun
        self.computed += time.thread_time() - computed


async def looped(driver: Driver, messages: int, limit: float) -> tuple[str, ...]:
    """Run the loop until so many messages were said, or seconds passed; return the figures as they are shown."""
    judge = driver.asked = Judge(driver)
    said: list[str] = []
    begun, computed = time.perf_counter(), time.process_time()
    with suppress(TimeoutError):
        async with asyncio.timeout(limit):
            await talk(driver, said, messages)
    seconds = time.perf_counter() - begun - judge.seconds
    computed = time.process_time() - computed - judge.computed
    done = len(said) + driver.calls + len(driver.looked)
    kept = "\n".join(dict.fromkeys(texts(await history(driver))))
    whole = {found[1] for found in RESULT.finditer(kept)}
    left = sum(one in kept for one in said) + len(whole.intersection(driver.looked))
    stated = [rule for rule in RULES if any(rule in one for one in said)]
    last = "\n".join(texts(judge.last))
    return (
        f"{judge.invalid:,}" + "".join(f", `{rule}`" for rule, _ in judge.broken.most_common()),
        f"{judge.overflows:,}",
        f"{left:,} of {len(said) + len(driver.looked):,}",
        f"{sum(one in last for one in stated)} of {len(stated)}",
        f"{judge.tokens / judge.requests:,.0f}",
        f"{computed:,.1f}",
        f"{seconds:,.1f}" + f", then stopped at {done:,} messages" * (done < messages),
    )


async def talk(driver: Driver, said: list[str], messages: int) -> None:
    """Run after run, until so many messages were said."""
    while len(said) + driver.calls + len(driver.looked) < messages:
        text, steps = f"Task {len(said)}: look at some more files.", STEPS[len(said) % len(STEPS)]
        if len(said) % 2 == 0 and len(said) // 2 < len(RULES):
            text = f"{text} {RULES[len(said) // 2]}"
        said.append(text)
        driver.break_at = driver.calls + steps // 2 if len(said) % 4 == 2 else 0
        with suppress(Boom):  # some frameworks tell the model
            await driver.run(text, steps)


async def history(driver: Driver) -> Any:
    """Return all that can be read after the loop: Foldline's log, or whatever the framework keeps."""
    if driver.own is None:
        return await driver.histories.arun(driver.session, lambda one: one.session.history())
    kept = await driver.history()
    if isinstance(driver, drivers.LangChain) and len(kept) < driver.calls:  # older checkpoints have more
        return [one.values.get("messages") async for one in driver.agent.aget_state_history(driver.config)]
    return kept


@cache
def count(text: str) -> int:
    """Count the tokens of a message."""
    return len(tiktoken.get_encoding("cl100k_base").encode(text, disallowed_special=()))


# ---- the table


def measured(place: int, line: str | None, messages: int, window: int, limit: float) -> tuple[str, ...]:
    """Run one loop, with Foldline or a line of the framework's own; returns nothing where it is not installed."""
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(VOCABULARY))
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    framework = FRAMEWORKS[place]
    own = None if line is None else partial(framework.given, line)
    with tempfile.TemporaryDirectory() as folder, suppress(ImportError):
        first = framework.driver(f"sqlite:///{folder}/first.db", own, window=window)
        asyncio.run(first.run("Hello.", 1))  # what is imported late
        driver = framework.driver(f"sqlite:///{folder}/sessions.db", own, window=window)
        figures = asyncio.run(looped(driver, messages, limit))
        for one in (first, driver) if own is None else ():
            one.histories.close()
        return figures
    return ()


def written(module: str) -> tuple[str, str]:
    """Return what a user of an adapter writes, from its docstring, and its lines of code."""
    text = (ADAPTERS / f"{module}.py").read_text(encoding="utf-8")
    doc = ast.get_docstring(ast.parse(text)) or ""
    lines = [f"`{one.strip()}`" for one in doc.splitlines() if one.startswith("    ")]
    return f"**Foldline**: {'; '.join(lines)}", str(len(text.splitlines()))


HEAD = ("framework", "what compacts", "lines")
FIGURES = ("invalid views", "overflows", "history left", "rules left", "tokens", "CPU seconds", "seconds")
NOTES = """
{messages:,} messages or a few more, in runs of 12 to 48 calls; a window of {window:,} tokens, counted by cl100k.
Lines: of the adapter. All adapters share `history.py`, {shared} lines.
Invalid views: requests that break a rule of the provider's, and which. Overflows: requests larger than the window.
History left: user messages and whole results that can be read after the loop, in Foldline's log; without Foldline, in \
what the framework keeps: its history, LangGraph's older checkpoints, LlamaIndex's archive.
Rules left: word for word in the last view. A script writes models' summaries, and repeats each rule that it is shown.
Tokens: of a request, the mean. Seconds: of the whole loop, with what the framework itself does and keeps.
"""


def main() -> None:
    """Run the loops, one after another; print or save the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", action="store_true", help="write docs/results/adapters.json and the page")
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--window", type=int, default=16_000)
    parser.add_argument("--limit", type=float, default=300, help="seconds that a loop may take")
    parser.add_argument("--only", help="one framework: " + ", ".join(one.module for one in FRAMEWORKS))
    args = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for place, framework in enumerate(FRAMEWORKS):
            for line in (None, *framework.own) if args.only in (None, framework.module) else ():
                figures = pool.submit(measured, place, line, args.messages, args.window, args.limit).result()
                head = ("", f"`{line}`" if line else "nothing", "")
                if line is None:
                    head = (f"{framework.package} {version(framework.package)}", *written(framework.module))
                rows += [(*head, *figures)] if figures else []
                print(*head, *figures, sep=" | ", file=sys.stderr, flush=True)
    shared = len((ADAPTERS / "history.py").read_text(encoding="utf-8").splitlines())
    notes = NOTES.format(messages=args.messages, window=args.window, shared=shared).split("\n")[1:-1]
    tables = [Table(HEAD + FIGURES, rows, notes=tuple(notes), left=2)]
    if args.save:
        save("adapters", "python -m tools.adapter_table --save", tables)
    else:
        print(shown(tables))


if __name__ == "__main__":
    main()
