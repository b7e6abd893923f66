"""`foldline run -p TEXT`: send one prompt to the agent; print the answer, or the events as JSON lines."""

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
LONG_WAIT = 5.0  # seconds; shorter waits for the model are not reported


@command(
    'foldline run -p "Why does test_login fail?" --model anthropic:claude-sonnet-4-5',
    """git diff | foldline run -p "Review this." --json | jq -r 'select(.type == "reply").text'""",
    """foldline run --continue -p "Now mend it." --allow edit --allow 'bash:pytest *'""",
    'foldline run --continue -p "/compact the login"',
    'foldline run --demo -p "What is in loans?"',
    json=False,
)
def run(
    agent: AgentOptions,
    prompt: str | None = option("The prompt; piped standard input is appended.", "-p", "--prompt"),
    as_json: bool = option("Print events, one JSON object on each line.", "--json"),
) -> None:
    """Send one prompt to the agent and print its answer.

    The session is stored: --continue continues it. Tools that change something need --allow, because there
    is no user to ask. A prompt that starts with / is a command, as in `foldline chat`. Exit code 1: there was
    no complete answer (a failure, a refusal, an empty or cut-off reply).
    """
    text = read_prompt(prompt)
    with traced():
        sys.exit(asyncio.run(_run(agent.host_or_demo(), text, as_json=as_json)))


def read_prompt(prompt: str | None) -> str:
    """Return the prompt, followed by piped input; raises UsageError if there is neither."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read(CHARACTERS + 1)
    if len(piped) > CHARACTERS:
        limit = f"standard input has more than {CHARACTERS:,} characters"
        raise click.UsageError(f"{limit}: save it to a file, and write @FILE in the prompt")
    text = "\n\n".join(part for part in (prompt or "", piped.strip()) if part)
    if not text.strip():
        raise click.UsageError('give a prompt: foldline run -p "..."')
    return text


async def _run(options: HostOptions, text: str, *, as_json: bool) -> int:
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    host = await Host.open(options, emit=events.put_nowait)
    try:
        if as_json:
            print_line({"type": "session", "version": VERSION, "id": host.session.id, "model": host.model})
        printing = asyncio.ensure_future(_print_events(events, host, as_json=as_json))
        try:
            ended = await _prompt(host, text)
            await host.session.settled()
        finally:
            events.put_nowait(None)
            await printing
    finally:
        await host.close()
    return _print_end(ended, as_json=as_json)


async def _prompt(host: Host, text: str) -> TurnEnded:
    if not text.startswith("/"):
        return await host.prompt(text)
    outcome = await run_command(host, text)
    if outcome.ended is not None:
        return outcome.ended
    ended = TurnEnded(how="done", text=outcome.text)
    host.emit(ended)
    return ended


def _print_end(ended: TurnEnded, *, as_json: bool) -> int:
    if not as_json and (ended.text or not ended.fell_short):
        print_text(ended.text)
    if not ended.fell_short:
        return 0
    if as_json:
        print_line(error_json(ended.detail))
    err().print(f"[red]error:[/] {escape(ended.detail)}", soft_wrap=True)
    return 1


async def _print_events(events: asyncio.Queue[Event | None], host: Host, *, as_json: bool) -> None:
    """Print events as they come: all as JSON, or the important ones as text on standard error.

    Repeated waits for the same reason are reported once.
    """
    reported = ""
    while (event := await events.get()) is not None:
        if as_json:
            print_line(await event_json(event, host.session))
        elif isinstance(event, CallStarted):
            arguments = ", ".join(str(value) for value in event.arguments.values())
            err().print(f"[dim]{escape(event.tool)} {escape(' '.join(arguments.split())[:100])}[/]")
        elif isinstance(event, CompactionDone | PruneDone):
            sizes = f"{event.receipt.tokens_before:,} → {event.receipt.tokens_after:,} tokens"
            err().print(f"[dim]folded, {event.receipt.reason}: {sizes}[/]")
        elif isinstance(event, ProviderCompacted):
            err().print(f"[dim]{provider_compaction_text(event)}[/]")
        elif isinstance(event, ReplyDelayed) and event.wait >= LONG_WAIT and event.why != reported:
            reported = event.why
            err().print(f"[yellow]{escape(delay_text(event))}[/]", soft_wrap=True)
        elif isinstance(event, WarningGiven):
            err().print(f"[yellow]warning:[/] {escape(event.text)}", soft_wrap=True)
