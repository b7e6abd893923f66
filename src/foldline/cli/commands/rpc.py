"""`foldline rpc`: the agent for another program, JSON lines both ways."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from typing import Any

import click
import msgspec

from foldline.agent.host import Host
from foldline.agent.options import HostOptions
from foldline.agent.record import VERSION
from foldline.agent.remote import Remote
from foldline.agent.requests import AnyRequest
from foldline.cli.agent_options import agent_options, options_of
from foldline.cli.output import print_json
from foldline.cli.tracing import traced

EPILOG = """
\b
Examples:
  echo '{"type": "prompt", "message": "Hello."}' | foldline rpc --model openai:gpt-5.2
  foldline rpc --schema | jq '."$defs" | keys'
"""


@click.command(epilog=EPILOG)
@click.option("--schema", is_flag=True, help="Print the requests as JSON Schema, and leave.")
@agent_options
def command(schema: bool, **given: Any) -> None:
    """Serve the agent on standard input and output: one JSON object a line, both ways.

    Requests: prompt, abort, compact, preview, commit, undo, redo, prompts, branch, stats, command and
    permission.
    Whatever is wrong is answered by {"type": "error", "error": "message"}, and the next line is read. It ends
    at the end of the input, when the turn under way has ended. docs/chat.md has all of it.
    """
    if schema:
        print_json({"version": VERSION, **msgspec.json.schema(AnyRequest)})
        return
    with traced():
        asyncio.run(_serve(options_of(given)))


async def _serve(options: HostOptions) -> None:
    remote = Remote(_send)
    remote.host = await Host.open(options, emit=remote.emit, ask=remote.ask)
    host = remote.host
    try:
        _send({"type": "session", "version": VERSION, "id": host.session.id, "model": host.model})
        lines: asyncio.Queue[str | None] = asyncio.Queue()
        _read(lines)
        while (line := await lines.get()) is not None:
            if line.strip():
                await remote.take(line)
        await remote.finish()
    finally:
        await host.close()


def _read(lines: asyncio.Queue[str | None]) -> None:
    """Read standard input in a thread: a pipe, a file or a terminal, on every system."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(lines.put_nowait, line.decode("utf-8", "replace"))
        finally:
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="foldline-rpc", daemon=True).start()


def _send(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
    sys.stdout.flush()
