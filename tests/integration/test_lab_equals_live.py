"""A replay folds as a live session does: before the same messages, of the same kind, for the same reason."""

from __future__ import annotations

import asyncio
from itertools import islice

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.corpus import ROOT
from tests.support.talk import assistant, call, reminder, tool, user

import foldline
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import plan
from foldline.core.decide.presets import PRESETS, preset
from foldline.core.lab.replay import Replay
from foldline.core.log.entries import Compacted, Pruned, Said
from foldline.core.log.messages import Usage
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.errors import FloorExceeded, OverflowRemains, ProviderError
from foldline.executor import execute, run_sync
from foldline.folding import now
from foldline.summarizers.offline import OfflineSummarizer
from foldline.transcripts import MessageRecord, read

pytestmark = pytest.mark.slow

WINDOW = foldline.Window(context=24_000, output=2_000)
DIGITS = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 "
WORDS = "The parser reads every line of the config and keeps what it cannot name. "


def conversation(turns=24):
    """Turns of one to nine steps, large and small results, reminders between, and an answer at the end of each."""
    talk = []
    for n in range(turns):
        talk.append(user(f"Please mend module{n}.py, it must not touch the network. {WORDS * (n % 5)}"))
        for step in range(1 + n * 5 % 9):
            made = f"c{n}_{step}"
            talk.append(assistant(f"I read part {step}.", call(made, path=f"src/module{n}.py", offset=step)))
            size = (3 + (n * 7 + step * 11) % 60) * (3 if (n + step) % 7 == 0 else 1)
            talk.append(tool(made, f"part {step} of module{n}: {WORDS * size}"))
        talk.append(assistant(f"module{n}.py is mended. {WORDS * (n % 7)}"))
        if n % 6 == 5:
            talk.append(reminder())
    return talk


class Slow:
    """A summariser that writes nothing before it may."""

    name = "offline"

    def __init__(self):
        self.go = asyncio.Event()

    async def summarize(self, request):
        await self.go.wait()
        return OfflineSummarizer().write(request)


async def live(messages, policy, window, slow=None):
    """Feed a session, its replies with usage; return what was said, and each fold as `replayed` does.

    A `slow` summariser answers a draft between the second and the third request.
    """
    async with foldline.open("memory://", "s", policy=policy, window=window, summarizer=slow) as session:
        drafts, replying = [], False
        session.on("draft_started", drafts.append)
        for message in messages:
            if message.role == "assistant":
                usage = None
                if not replying:
                    begun = len(drafts)
                    size = await patiently(asked(session, window), slow)
                    if slow is not None and len(drafts) == begun:
                        slow.go.set()
                    if slow is None or len(drafts) == begun:
                        await asyncio.wait_for(
                            session.settled(), 120
                        )  # a draft is ready before the next request
                    usage = Usage(input=size, output=message_tokens(message, OFFLINE))
                message = msgspec.structs.replace(message, usage=usage)  # noqa: PLW2901
            replying = message.role == "assistant"
            if slow is not None:
                slow.go.clear()
            await session.append(message)
            await patiently(session._triggers.checks.finished(), slow)
            if slow is None:
                await session.settled()
        path = [entry async for entry in session.store.path("s")]
    said = [entry for entry in path if isinstance(entry, Said)]
    before = {entry.id: at for at, entry in enumerate(said)}
    folds, at = [], 0
    for entry in path:
        if isinstance(entry, Said):
            at = before[entry.id] + 1
        elif isinstance(entry, Compacted | Pruned) and at < len(
            said
        ):  # a replay ends with the newest message
            kind, receipt = type(entry).__name__.lower(), entry.receipt
            folds.append((at, kind, receipt.reason, receipt.tokens_before, receipt.tokens_after))
    return said, folds, len(drafts)


async def asked(session, window):
    """Ask for the context as an agent does, and mend it where a provider of this window would refuse it."""
    try:
        await session.context()
    except FloorExceeded:
        return session.view_tokens
    size = session.view_tokens
    if size <= window.input_limit:
        return size
    refused = ProviderError("too long", kind="overflow", overflow=Overflow(limit=window.context, asked=size))
    try:
        await session.overflowed(refused)
    except (OverflowRemains, FloorExceeded, ProviderError):
        pass
    return session.view_tokens


async def patiently(working, slow):
    """Wait for something; only where that waits for a summary, a `slow` summariser may answer."""
    if slow is None:
        return await asyncio.wait_for(working, 60)
    slow.go.clear()
    task = asyncio.create_task(working)
    for _ in range(20):  # a busy machine takes longer for these, too
        await asyncio.wait({task}, timeout=0.05)
        if task.done():
            break
    else:
        slow.go.set()
    return await asyncio.wait_for(task, 60)


def replayed(said, policy, window, draft_calls=1):
    """Replay what was said; return (before which message, kind, reason, tokens before and after)."""
    replay, at = Replay(policy, window, OFFLINE, now=now(), draft_calls=draft_calls), []
    for index, entry in enumerate(said):
        while (ask := replay.due(entry.message)) is not None:
            try:
                outcome = run_sync(
                    execute(plan(CompactionInput(replay.state, ask, OFFLINE)), OfflineSummarizer())
                )
            except FloorExceeded:
                outcome = None
            replay.settle(outcome)
        at += [index] * (replay.sums.compactions + replay.sums.prunes - len(at))
        replay.say(entry)
    marks = [mark for turn in replay.turns for mark in turn.boundaries]
    return [
        (index, mark.kind, mark.reason, mark.tokens_before, mark.tokens_after)
        for index, mark in zip(at, marks, strict=True)
    ]


@pytest.mark.parametrize("name", ["klaude", "gencode", "codex", "opencode", "pi", "coop"])
async def test_text_that_an_estimator_undercounts_folds_at_the_same_messages_live_and_in_the_lab(name):
    talk = []
    for n in range(8):
        talk.append(user(f"Check the digests of part {n}."))
        for step in range(1 + n % 4):
            talk.append(assistant("", call(f"c{n}_{step}", path=f"m{n}/{step}.txt")))
            talk.append(tool(f"c{n}_{step}", DIGITS * (3 + (n * 7 + step * 5) % 20)))
        talk.append(assistant("They are as they should be."))
    window = foldline.Window(context=4_000, output=400)
    said, folds, _ = await live(talk, preset(name), window)
    assert replayed(said, preset(name), window) == folds
    assert len(folds) >= 2


@pytest.mark.parametrize("name", list(PRESETS))
async def test_every_preset_folds_at_the_same_messages_live_and_in_the_lab(name):
    said, folds, drafts = await live(conversation(), preset(name), WINDOW)
    assert replayed(said, preset(name), WINDOW) == folds
    assert len(folds) >= (0 if name == "amp" else 3)
    assert bool(drafts) == preset(name).background


async def test_a_slow_summariser_drafts_as_late_live_as_in_the_lab():
    said, folds, drafts = await live(conversation(), preset("foldline"), WINDOW, Slow())
    assert replayed(said, preset("foldline"), WINDOW, draft_calls=2) == folds
    assert drafts >= 2


@settings(max_examples=8, deadline=None)
@given(
    name=st.sampled_from(sorted(PRESETS)),
    sizes=st.lists(
        st.tuples(st.integers(1, 90), st.lists(st.integers(1, 90), max_size=5)), min_size=4, max_size=14
    ),
)
def test_any_conversation_folds_at_the_same_messages_live_and_in_the_lab(name, sizes):
    talk = []
    for n, (words, results) in enumerate(sizes):
        talk.append(user(f"Do part {n}. {WORDS * (words // 9)}"))
        for step, size in enumerate(results):
            talk.append(assistant("", call(f"c{n}_{step}", path=f"m{n}/{step}.py")))
            talk.append(tool(f"c{n}_{step}", WORDS * size))
        talk.append(assistant(WORDS * words))
    window = foldline.Window(context=8_000, output=800)
    said, folds, _ = asyncio.run(live(talk, preset(name), window))
    assert replayed(said, preset(name), window) == folds


RECORDED = ROOT / "native" / "pi-2.jsonl"


@pytest.mark.skipif(not RECORDED.exists(), reason="no recorded sessions beside the checkout (../shared/data)")
@pytest.mark.parametrize("name", ["foldline", "coop", "gencode", "pi"])
async def test_a_recorded_session_folds_at_the_same_messages_live_and_in_the_lab(name):
    records = (record for record in read(str(RECORDED)) if isinstance(record, MessageRecord))
    messages = [record.message for record in islice(records, 600)]
    window = foldline.Window(context=40_000, output=4_000)
    said, folds, _ = await live(messages, preset(name), window)
    assert replayed(said, preset(name), window) == folds
    assert len(folds) >= 3
