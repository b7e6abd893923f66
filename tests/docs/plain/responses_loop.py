"""examples/agents/responses_loop.py without Foldline: what the example is measured against."""

import asyncio
import json
import sys
from pathlib import Path

import openai

MODEL = "gpt-5.2"
SYSTEM = "You answer questions about the files in this folder."
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [
    {"type": "function", "name": "read", "description": "Read a file.", "parameters": PATH, "strict": False}
]
REASONING = [
    "reasoning.encrypted_content"
]  # nothing is stored at OpenAI, so its reasoning comes back with us
FIELDS = {"model": MODEL, "instructions": SYSTEM, "tools": TOOLS, "store": False, "include": REASONING}


def read(arguments):
    """Return the text of the file that a call names, or why there is none: the model reads that too."""
    try:
        return Path(json.loads(arguments)["path"]).read_text(encoding="utf-8")
    except (OSError, ValueError, LookupError) as error:  # a reply may be cut off inside its arguments
        return f"error: {error}"


async def answer(client, items, question):
    """Answer a question, calling tools as long as the model asks for them."""
    items.append({"role": "user", "content": question})
    while True:
        reply = await client.responses.create(**FIELDS, input=items)
        items += [item.to_dict() for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return reply.output_text
        for call in calls:
            text = read(call.arguments)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})


async def main(questions):
    """Answer each question."""
    items = []
    async with openai.AsyncOpenAI() as client:
        for question in questions:
            print(await answer(client, items, question))


if __name__ == "__main__":
    asyncio.run(main(line.strip() for line in sys.stdin))
