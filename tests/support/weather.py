"""Hostile weather: seeded runs of an agent against a faulty server, killed and resumed, and what must hold afterwards."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from tests.support.talkers import DIALECTS
from tests.support.weather_agent import MODEL, Plan, main

import foldline.errors
from foldline.core.checkpoint.check import Rejected, check
from foldline.core.checkpoint.request import SummaryReply
from foldline.core.checkpoint.summary import request
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted, Entry, Lifted, Pruned, Said
from foldline.core.measure.overflow import overflow
from foldline.core.measure.tokens import OFFLINE
from foldline.dialects import get
from foldline.policies import policy
from foldline.stores import open_store
from foldline.testing import Answer, Asked, Faulty, Scripted, call, calls, serve
from foldline.testing.wire import Wire

PROCESSES = multiprocessing.get_context("forkserver")  # forked from one that has the SDKs loaded
PROCESSES.set_forkserver_preload(["tests.support.weather_warm"])

HUNG = 240.0  # seconds after which a run is taken to hang; it takes some on a busy machine
STALL = 60.0  # seconds of silence: longer than anybody waits
BAD = "ZZBAD"  # stands in every text that is no summary
SMALL, IN_A_ROW = 0.08, 4  # a share of the view that is worth a boundary now and then, not again and again
MOST_SUMMARIES = 40  # requests for summaries in a row
POLICIES = ("foldline", "foldline", "foldline", "foldline", "codex", "opencode", "pi")
OUTPUT = re.compile("completion tokens|number of output tokens")  # of a cap of the reply that is too high
AUTOMATIC = ("threshold", "overflow", "model_switch")


def plan_of(seed: int, folder: Path) -> Plan:
    """Everything about a run, from its seed: every third of a dialect, every fifth killed."""
    some = random.Random(seed)
    window, turns = some.choice((5_000, 6_000, 8_000, 10_000)), some.randint(5, 8)
    kills = sorted(some.sample(range(1, 12), some.choice((1, 1, 2)))) if seed % 5 == 0 else []
    return Plan(
        seed=seed,
        dialect=DIALECTS[seed % 3],
        stream=some.random() < 0.5,
        thinking=some.random() < 0.3,
        turns=turns,
        window=window,
        configured_window=some.choice((window, window, window, 2 * window, None)),
        budget=some.randint(2, 4) * window // turns // 4,
        rate=some.choice((0.0, 0.1, 0.25, 0.4)),
        summaries=some.random() < 0.7,
        policy=some.choice(POLICIES),
        giant=some.randrange(turns) if some.random() < 0.08 else None,
        kills=tuple((number, some.uniform(0.0, 0.06)) for number in kills),
        folder=str(folder),
    )


class Script:
    """What the model says: tools now and then, an answer in the end, summaries of every quality."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rounds = 0
        self.summaries = 0  # asked for in a row
        self.most_summaries = 0

    def __call__(self, asked: Asked) -> Answer | str:
        some = random.Random(f"{self.plan.seed}:says:{asked.index}")
        words = newest_text(asked)
        if is_summary(words):
            self.summaries += 1
            self.most_summaries = max(self.most_summaries, self.summaries)
            return write_summary(words, some)
        self.summaries = 0
        thinking = "Let me look at that. " * 20 if self.plan.thinking else None
        if self.rounds < 4 and some.random() < 0.55:
            self.rounds += 1
            names = some.sample(("read", "bash", "grep"), some.choice((1, 1, 2, 3)))
            made = calls(*(call(name, path=f"src/part_{some.randrange(50)}.py") for name in names))
            return msgspec.structs.replace(made, thinking=thinking)
        self.rounds = 0
        return Answer(
            text=f"Part {asked.index}: " + "the limit is off by one. " * some.randint(1, 40),
            thinking=thinking,
        )


def newest_text(asked: Asked) -> str:
    """The text of the newest message of a request, whatever its dialect."""
    content = asked.messages[-1].get("content")
    if isinstance(content, list):
        return "\n".join(block.get("text", "") for block in content)
    return content if isinstance(content, str) else ""


def is_summary(words: str) -> bool:
    """Whether a request asks for a summary, in the session or with the conversation as text."""
    return words.startswith("Stop the work here.") or "<conversation>" in words


def write_summary(words: str, some: random.Random) -> Answer | str:
    """A summary with the headings that are asked for, or something that is none."""
    asked = words[words.rfind("Use exactly these headings") :]
    wanted = list(dict.fromkeys(re.findall(r"^#{1,3} .+$", asked, re.MULTILINE)))
    good = "\n".join(f"{heading}\n- what part {n} says of it" for n, heading in enumerate(wanted))
    bad = [
        "",
        f"{BAD} Sure, let me go on with the work.",
        f"[User]: {BAD} and now?\n[Assistant]: I look at it.",
        f"{good}\n" + f"{BAD} it goes on and on and on\n" * 3_000,
        f"I'm sorry, I cannot do that. {BAD}",
        "\n".join(wanted[:1]) + f"\n{BAD}",
    ]
    if some.random() < 0.55:
        return good
    return some.choice([*bad, call("read", path=BAD)])


class Watched:
    """The faulty server, and the process that is killed behind a request of a certain number."""

    def __init__(self, plan: Plan) -> None:
        self.script = Script(plan)
        # a fold inside an open tool loop keeps its thinking as it is: the APIs of today check no more than the block
        self.inner = Scripted(self.script, window=plan.window, model=MODEL, signatures="block")
        self.faulty = Faulty(self.inner, plan.seed, plan.rate, stall=STALL)
        self.process: Any = None
        self._kills = list(plan.kills)
        self._seen = 0
        self.killed = 0

    @property
    def models(self) -> tuple[str, ...]:
        return self.faulty.models

    async def answer(self, asked: Asked) -> Wire:
        self._seen += 1
        if self._kills and self._seen >= self._kills[0][0]:
            _, delay = self._kills.pop(0)
            asyncio.get_running_loop().call_later(delay, self._kill, self.process)
        return await self.faulty.answer(asked)

    def _kill(self, process: Any) -> None:
        if process.exitcode is None:
            process.kill()
            self.killed += 1

    def refuse_body(self, dialect: str, text: str) -> Wire:
        return self.faulty.refuse_body(dialect, text)

    def count(self, asked: Asked) -> int:
        return self.faulty.count(asked)


class Outcome(msgspec.Struct):
    """How a run ended, and what is wrong with it."""

    plan: Plan
    end: str
    text: str
    killed: int
    problems: list[str]
    figures: Counter[str]


async def run_plan(plan: Plan) -> Outcome:
    """Live through one run, killed and resumed as often as its plan says, and look at what it left."""
    watched = Watched(plan)
    async with serve(watched) as url:
        for _ in range(len(plan.kills) + 1):
            process = PROCESSES.Process(target=main, args=(plan, url))
            watched.process = process
            process.start()
            await asyncio.to_thread(process.join, HUNG)
            hung = process.exitcode is None
            if hung:
                process.kill()
                process.join()
            if hung or process.exitcode == 0:
                break
    lines = read_journal(Path(plan.journal))
    ends = [line for line in lines if "end" in line]
    end, text = (
        ("hung", "") if hung else ("silent", "") if not ends else (ends[-1]["end"], ends[-1].get("text", ""))
    )
    safe = [entry for line in lines for entry in line.get("safe", ())]
    # in a thread: it takes seconds, in which the servers of other runs must answer
    problems, figures = await asyncio.to_thread(asyncio.run, judge(plan, watched, safe, end))
    figures["milliseconds"] = int(1000 * sum(line.get("seconds", 0.0) for line in lines))
    if end != "done" and not is_clear_error(end):
        problems.append(f"ended with {end}: {text}")
    return Outcome(plan, end, text, watched.killed, problems, figures)


def read_journal(journal: Path) -> list[dict[str, Any]]:
    """The lines of a journal; of one that was never begun, none."""
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def is_clear_error(end: str) -> bool:
    """Whether a run ended with an error of ours that says what is wrong."""
    kind = getattr(foldline.errors, end, None)
    return isinstance(kind, type) and issubclass(kind, foldline.errors.FoldlineError)


async def judge(plan: Plan, watched: Watched, safe: list[str], end: str) -> tuple[list[str], Counter[str]]:
    """What is wrong with what a run sent and stored, and some figures of it."""
    store = open_store(plan.url)
    try:
        path = [entry async for entry in store.path("s")]
        everything = [entry async for entry in store.all("s")]
        problems = await store.verify("s") if path else []
    finally:
        await store.close()
    problems += check_kept(plan, path, safe, done=end == "done")
    problems += check_requests(plan, watched)
    problems += [
        found
        for entry in everything
        if isinstance(entry, Compacted)
        for found in check_summary(plan, entry, path)
    ]
    problems += check_loops(path, watched)
    figures = Counter(
        f"boundary {entry.receipt.reason}" for entry in path if isinstance(entry, Compacted | Pruned)
    )
    figures.update(
        "by a model"
        for entry in path
        if isinstance(entry, Compacted) and entry.receipt.summarizer != "offline"
    )
    figures.update(f"fault {fault}" for _, fault in watched.faulty.met)
    figures.update(
        {"requests": len(watched.inner.requests), "messages": sum(isinstance(entry, Said) for entry in path)}
    )
    return problems, figures


def check_kept(plan: Plan, path: list[Entry], safe: list[str], *, done: bool) -> list[str]:
    """What was acknowledged is there, in order and once; of the user's words each stands there once."""
    ids = [entry.id for entry in path]
    places = {entry: place for place, entry in enumerate(ids)}
    problems = [f"lost: {entry}" for entry in safe if entry not in places]
    found = [places[entry] for entry in safe if entry in places]
    problems += ["acknowledged messages stand in another order"] if found != sorted(set(found)) else []
    said = [entry.message for entry in path if isinstance(entry, Said)]
    turns = [
        int(m[1])
        for message in said
        if message.role == "user" and (m := re.match(r"Turn (\d+):", message.text))
    ]
    problems += [f"turns are {turns}"] if turns != list(range(len(turns))) else []
    if done:
        problems += [f"{len(turns)} of {plan.turns} turns"] if len(turns) != plan.turns else []
        problems += [f"the end is {said[-1].role}"] if said[-1].role != "assistant" or said[-1].calls else []
    return problems


def check_requests(plan: Plan, watched: Watched) -> list[str]:
    """Every request was valid by our rules, and refused for nothing but its size or the weather.

    Of a model that nobody knows, the longest reply is assumed too, until an overflow teaches the window.
    """
    faults = {number for number, fault in watched.faulty.met}
    problems: list[str] = []
    for number, asked in enumerate(watched.inner.requests):
        found = get(asked.dialect).validate(asked.messages)
        problems += [f"request {number} was invalid: {problem.text}" for problem in found]
        size = asked.refused and (
            overflow(asked.refused, 400) or (plan.configured_window is None and OUTPUT.search(asked.refused))
        )
        if asked.refused and number not in faults and not size:
            problems.append(f"request {number} was refused: {asked.refused}")
    return problems


OWN_WORDS = re.compile(r"\n\n## User's (?:rules|words)\n")


def check_summary(plan: Plan, boundary: Compacted, path: list[Entry]) -> list[str]:
    """Why what a checkpoint holds is no summary (invariant 7).

    What code wrote stands in for those that are none: it is as long as its facts, and where room is short it has no
    more than one heading. It adds the user's rules and words to what a model wrote.
    """
    text = OWN_WORDS.split(boundary.checkpoint.summary)[0]
    if boundary.receipt.summarizer == "offline":
        nothing = not text and bool(boundary.quoted)  # what is folded is quoted: there is nothing to sum up
        bad = BAD in text or not (nothing or text.startswith("## "))
        return [f"the checkpoint of {boundary.id[:8]} is none: {text[:200]}"] if bad else []
    before = [entry for entry in path if isinstance(entry, Said)]
    cut = next((n for n, entry in enumerate(before) if entry.id == boundary.first_kept), len(before))
    earlier = next(
        (e.checkpoint.summary for e in path if isinstance(e, Compacted) and e.id != boundary.id), None
    )
    wanted = request(
        policy(plan.policy),
        kind="first",
        folded=before[:cut],
        previous=earlier,
        ledger=Ledger(),
        tokens=plan.window,
    )
    verdict = check(SummaryReply(text, boundary.receipt.summarizer), wanted, counter=OFFLINE)
    why = [verdict.words] if isinstance(verdict, Rejected) else []
    why += [f"it holds {BAD}"] if BAD in text else []
    return [
        f"the summary of {boundary.id[:8]} by {boundary.receipt.summarizer} is none: {one}" for one in why
    ]


def check_loops(path: list[Entry], watched: Watched) -> list[str]:
    """What was compacted again although nothing was said since, or asked for without end."""
    problems: list[str] = []
    since: list[str] = []
    small = 0
    for entry in path:
        if isinstance(entry, Said | Lifted):
            since = []
        elif isinstance(entry, Compacted | Pruned):
            reason, receipt = entry.receipt.reason, entry.receipt
            if reason in AUTOMATIC and reason in since:
                problems.append(f"two boundaries by {reason}, and nothing between them")
            if reason in AUTOMATIC and receipt.tokens_after >= receipt.tokens_before:
                problems.append(f"a boundary by {reason} gained nothing")
            # a draft did not know what was said while it was made: that is still between them
            since = [*since, reason] if entry.seen is None else []
            gain = receipt.tokens_before - receipt.tokens_after
            small = small + 1 if reason in AUTOMATIC and gain < SMALL * receipt.tokens_before else 0
            if small == IN_A_ROW:
                problems.append(f"{small} boundaries in a row, each of which gained next to nothing")
    if watched.script.most_summaries > MOST_SUMMARIES:
        problems.append(f"{watched.script.most_summaries} summaries were asked for in a row")
    return problems
