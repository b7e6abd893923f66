"""A replay folds as a live session does: before the same messages, of the same kind, for the same reason."""

from __future__ import annotations

import asyncio
from itertools import islice

import msgspec
import pytest
from tests.support.corpus import ROOT
from tests.support.talk import assistant, call, reminder, tool, user

import foldline
from foldline.core.compact.job import Job
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

WINDOW = foldline.Window(context=24_000, output=2_000)
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


async def live(messages, policy, window):
    """Feed a session, its replies with usage; return what was said, and (before which message, kind, reason, tokens)."""
    async with foldline.open("memory://", "s", policy=policy, window=window) as session:
        settled, drafts = asyncio.Event(), []
        settled.set()
        session.on("draft_started", lambda event: (settled.clear(), drafts.append(event)))
        session.on("draft_ready", lambda _: settled.set())
        session.on("draft_failed", lambda _: settled.set())
        replying = False
        for message in messages:
            if message.role == "assistant":
                usage = None
                if not replying:
                    size = await asked(session, window)
                    await asyncio.wait_for(settled.wait(), 30)  # the summariser answers between two requests
                    usage = Usage(input=size, output=message_tokens(message, OFFLINE))
                message = msgspec.structs.replace(message, usage=usage)  # noqa: PLW2901
            replying = message.role == "assistant"
            await session.append(message)
        path = [entry async for entry in session.store.path("s")]
    said = [entry for entry in path if isinstance(entry, Said)]
    before = {entry.id: at for at, entry in enumerate(said)}
    folds, at = [], 0
    for entry in path:
        if isinstance(entry, Said):
            at = before[entry.id] + 1
        elif isinstance(entry, Compacted | Pruned):
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


def replayed(said, policy, window):
    """Replay what was said; return (before which message, kind, reason, tokens before and after)."""
    replay, at = Replay(policy, window, OFFLINE, now=now()), []
    for index, entry in enumerate(said):
        while (ask := replay.due(entry.message)) is not None:
            try:
                outcome = run_sync(execute(plan(Job(replay.fold, ask, OFFLINE)), OfflineSummarizer()))
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


@pytest.mark.parametrize("name", list(PRESETS))
async def test_every_preset_folds_at_the_same_messages_live_and_in_the_lab(name):
    said, folds, drafts = await live(conversation(), preset(name), WINDOW)
    assert replayed(said, preset(name), WINDOW) == folds
    assert len(folds) >= (0 if name == "amp" else 3)
    assert bool(drafts) == preset(name).background


RECORDED = ROOT / "native" / "pi-2.jsonl"


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded sessions are not here")
@pytest.mark.parametrize("name", ["foldline", "coop", "gencode", "pi"])
async def test_a_recorded_session_folds_at_the_same_messages_live_and_in_the_lab(name):
    records = (record for record in read(str(RECORDED)) if isinstance(record, MessageRecord))
    messages = [record.message for record in islice(records, 600)]
    window = foldline.Window(context=40_000, output=4_000)
    said, folds, _ = await live(messages, preset(name), window)
    assert replayed(said, preset(name), window) == folds
    assert len(folds) >= 3
