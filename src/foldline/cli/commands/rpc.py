"""`foldline rpc`: the agent for another program, JSON lines both ways."""

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
def rpc(given: AgentOptions, schema: bool = option("Print the requests as JSON Schema, and leave.")) -> None:
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
        asyncio.run(_serve(given.demonstrated()))


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
        await remote.stop()  # after an interrupt there may be work under way
        await remote.host.close()


def _read(lines: asyncio.Queue[str | None]) -> None:
    """Read standard input in a thread: a pipe, a file or a terminal, on every system."""
    loop = asyncio.get_running_loop()
    # a stream of its own: the interpreter cannot end while a thread reads its standard input
    stream = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115

    def read() -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            try:
                for line in stream:
                    loop.call_soon_threadsafe(lines.put_nowait, line.decode("utf-8", "replace"))
            finally:
                loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="foldline-rpc", daemon=True).start()
