"""`foldline run -p TEXT`: one prompt to the agent, its answer as text or its events as JSON lines."""

from __future__ import annotations

import asyncio
import sys

import click

from foldline.agent.commands.registry import run as run_command
from foldline.agent.events import (
    VERSION,
    CallStarted,
    ReplyDelayed,
    TurnEnded,
    delay_text,
    error_json,
    event_json,
    provider_compaction_text,
)
from foldline.agent.host import Host
from foldline.agent.options import HostOptions
from foldline.cli.agent_options import AgentOptions
from foldline.cli.options import command, option
from foldline.cli.output import err, escape, print_line, print_text
from foldline.cli.tracing import traced
from foldline.session.events import CompactionDone, Event, ProviderCompacted, PruneDone, WarningGiven

CHARACTERS = 400_000  # of standard input
LONG = (
    5.0  # seconds of a wait that a person is told of; a server that is not there is told once, by the error
)


@command(
    'foldline run -p "Why does test_login fail?" --model anthropic:claude-sonnet-4-5',
    """git diff | foldline run -p "Review this." --json | jq -r 'select(.type == "reply").text'""",
    """foldline run --continue -p "Now mend it." --allow edit --allow 'bash:pytest *'""",
    'foldline run --continue -p "/compact the login"',
    'foldline run --demo -p "What is in loans?"',
    json=False,
)
def run(
    given: AgentOptions,
    prompt: str | None = option(
        "What to say; standard input, if it is piped, comes behind it.", "-p", "--prompt"
    ),
    as_json: bool = option("Print events, one JSON object a line.", "--json"),
) -> None:
    """Send one prompt to the agent and print its answer.

    The work is stored like any session: --continue goes on with it. Tools that change something need --allow,
    because nobody is asked. A prompt that begins with / is a command, as in `foldline chat`. Exit code 1: no
    answer came (a failure, a refusal, an empty or cut-off reply).
    """
    text = prompted(prompt)
    with traced():
        sys.exit(asyncio.run(_run(given.demonstrated(), text, as_json=as_json)))


def prompted(prompt: str | None) -> str:
    """Return the prompt with what is piped in behind it; raises UsageError where there is neither."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read(CHARACTERS + 1)
    if len(piped) > CHARACTERS:
        raise click.UsageError(
            f"standard input has more than {CHARACTERS:,} characters: put it into a file, @FILE"
        )
    text = "\n\n".join(part for part in (prompt or "", piped.strip()) if part)
    if not text.strip():
        raise click.UsageError('say something: foldline run -p "..."')
    return text


async def _run(options: HostOptions, text: str, *, as_json: bool) -> int:
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    host = await Host.open(options, emit=events.put_nowait)
    try:
        if as_json:
            print_line({"type": "session", "version": VERSION, "id": host.session.id, "model": host.model})
        printing = asyncio.ensure_future(_print(events, host, as_json=as_json))
        try:
            ended = await _answer(host, text)
            await host.session.settled()
        finally:
            events.put_nowait(None)
            await printing
    finally:
        await host.close()
    return _told(ended, as_json=as_json)


async def _answer(host: Host, text: str) -> TurnEnded:
    if not text.startswith("/"):
        return await host.prompt(text)
    outcome = await run_command(host, text)
    if outcome.ended is not None:
        return outcome.ended
    ended = TurnEnded(how="done", text=outcome.text)
    host.emit(ended)
    return ended


def _told(ended: TurnEnded, *, as_json: bool) -> int:
    if not as_json and (ended.text or not ended.fell_short):
        print_text(ended.text)
    if not ended.fell_short:
        return 0
    if as_json:
        print_line(error_json(ended.detail))
    err().print(f"[red]error:[/] {escape(ended.detail)}", soft_wrap=True)
    return 1


async def _print(events: asyncio.Queue[Event | None], host: Host, *, as_json: bool) -> None:
    """Print events as they come: all as JSON, or what a person wants to know on standard error.

    Of long waits for one reason the first alone is told.
    """
    waited = ""
    while (event := await events.get()) is not None:
        if as_json:
            print_line(await event_json(event, host.session))
        elif isinstance(event, CallStarted):
            given = ", ".join(str(value) for value in event.arguments.values())
            err().print(f"[dim]{escape(event.tool)} {escape(' '.join(given.split())[:100])}[/]")
        elif isinstance(event, CompactionDone | PruneDone):
            sizes = f"{event.receipt.tokens_before:,} → {event.receipt.tokens_after:,} tokens"
            err().print(f"[dim]folded, {event.receipt.reason}: {sizes}[/]")
        elif isinstance(event, ProviderCompacted):
            err().print(f"[dim]{provider_compaction_text(event)}[/]")
        elif isinstance(event, ReplyDelayed) and event.wait >= LONG and event.why != waited:
            waited = event.why
            err().print(f"[yellow]{escape(delay_text(event))}[/]", soft_wrap=True)
        elif isinstance(event, WarningGiven):
            err().print(f"[yellow]warning:[/] {escape(event.text)}", soft_wrap=True)
