"""examples/agents/anthropic_loop.py without Foldline: what the example is measured against."""

import asyncio
import sys
from pathlib import Path

import anthropic

MODEL = "claude-sonnet-4-6"
SYSTEM = "You answer questions about the files in this folder."
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"name": "read", "description": "Read a file.", "input_schema": PATH}]
FIELDS = {"model": MODEL, "max_tokens": 3_000, "system": SYSTEM, "tools": TOOLS}


def read(arguments):
    """Return the text of the file that a call names, or why there is none: the model reads that too."""
    try:
        return Path(arguments["path"]).read_text(encoding="utf-8")
    except (OSError, ValueError, LookupError) as error:
        return f"error: {error}"


async def answer(client, messages, question):
    """Answer a question, calling tools as long as the model asks for them."""
    messages.append({"role": "user", "content": question})
    while True:
        reply = await client.messages.create(**FIELDS, messages=messages)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        if reply.stop_reason != "tool_use":
            return "".join(block.text for block in reply.content if block.type == "text")
        calls = [block for block in reply.content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": read(call.input)} for call in calls
        ]
        messages.append({"role": "user", "content": results})


async def main(questions):
    """Answer each question."""
    messages = []
    async with anthropic.AsyncAnthropic() as client:
        for question in questions:
            print(await answer(client, messages, question))


if __name__ == "__main__":
    asyncio.run(main(line.strip() for line in sys.stdin))
