"""`foldline rpc`: the agent for another program, by JSON lines on standard input and output."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress

import msgspec

from foldline.agent.events import VERSION
from foldline.agent.options import HostOptions
from foldline.agent.remote import AnyRequest, Remote
from foldline.cli.agent_options import AgentOptions
from foldline.cli.options import command, option
from foldline.cli.output import print_json, print_line
from foldline.cli.tracing import traced


@command(
    """echo '{"type": "prompt", "message": "Hello."}' | foldline rpc --model openai:gpt-5.2""",
    """echo '{"type": "prompt", "message": "What is in loans?"}' | foldline rpc --demo""",
    """foldline rpc --schema | jq '."$defs" | keys'""",
    json=False,
)
def rpc(agent: AgentOptions, schema: bool = option("Print the requests as JSON Schema, and exit.")) -> None:
    """Serve the agent on standard input and output: one JSON object on each line, both ways.

    Requests: prompt, abort, compact, preview, commit, undo, redo, prompts, branch, stats, command and
    permission. The answer to an invalid request is {"type": "error", "error": "message"}. At the end of the
    input the running turn is finished first. See docs/chat.md.
    """
    if schema:
        print_json({"version": VERSION, **msgspec.json.schema(AnyRequest)})
        return
    with traced():
        asyncio.run(_serve(agent.host_or_demo()))


async def _serve(options: HostOptions) -> None:
    remote = Remote(print_line)
    await remote.open(options)
    try:
        lines: asyncio.Queue[str | None] = asyncio.Queue()
        _read(lines)
        while (line := await lines.get()) is not None:
            if line.strip():
                await remote.take(line)
        await remote.finish()
    finally:
        await remote.stop()  # after an interrupt, a turn may still run
        await remote.host.close()


def _read(lines: asyncio.Queue[str | None]) -> None:
    """Read standard input in a thread: this works for pipes, files and terminals on every system."""
    loop = asyncio.get_running_loop()
    # not sys.stdin: the interpreter cannot exit while a thread reads it
    stream = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115

    def read() -> None:
        with suppress(RuntimeError):  # the loop is closed
            try:
                for line in stream:
                    loop.call_soon_threadsafe(lines.put_nowait, line.decode("utf-8", "replace"))
            finally:
                loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="foldline-rpc", daemon=True).start()
