"""An agent on the raw Anthropic SDK that never outgrows its window. Run it, and type a question a line."""

import asyncio
import sys
from pathlib import Path

import anthropic

import foldline

MODEL = "claude-sonnet-4-6"
SYSTEM = "You answer questions about the files in this folder."
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"name": "read", "description": "Read a file.", "input_schema": PATH}]
FIELDS = {"model": MODEL, "system": SYSTEM, "tools": TOOLS}


def read(arguments):
    """Return the text of the file that a call names, or why there is none: the model reads that too."""
    try:
        return Path(arguments["path"]).read_text(encoding="utf-8")
    except (OSError, ValueError, LookupError) as error:
        return f"error: {error}"


async def answer(client, session, question):
    """Answer a question, calling tools as long as the model asks for them."""
    await session.append({"role": "user", "content": question})
    while True:
        request = {"messages": await session.context(), "max_tokens": session.max_tokens or 3_000}
        try:
            reply = await client.messages.create(**FIELDS, **request)
        except anthropic.BadRequestError as error:
            await session.overflowed(error, view=request["messages"])  # folds, or raises it again
            continue
        await session.append(reply)
        if reply.stop_reason != "tool_use":
            return "".join(block.text for block in reply.content if block.type == "text")
        calls = [block for block in reply.content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": read(call.input)} for call in calls
        ]
        await session.append({"role": "user", "content": results})


async def main(questions, store="sqlite:///agent.db", window=None):
    """Answer each question; the session is kept in `store` and goes on at the next start."""
    setup = {"model": f"anthropic:{MODEL}", "window": window, "system": SYSTEM, "tools": TOOLS}
    async with anthropic.AsyncAnthropic() as client, foldline.open(store, "files", **setup) as session:
        for question in questions:
            print(await answer(client, session, question))


if __name__ == "__main__":
    asyncio.run(main(line.strip() for line in sys.stdin))
