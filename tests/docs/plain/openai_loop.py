"""examples/agents/openai_loop.py without Foldline: what the example is measured against."""

import asyncio
import json
import sys
from pathlib import Path

import openai

MODEL = "gpt-5.2"
SYSTEM = {"role": "system", "content": "You answer questions about the files in this folder."}
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [
    {"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": PATH}}
]


def read(arguments):
    """Return the text of the file that a call names, or why there is none: the model reads that too."""
    try:
        return Path(json.loads(arguments)["path"]).read_text(encoding="utf-8")
    except (OSError, ValueError, LookupError) as error:  # a reply may be cut off inside its arguments
        return f"error: {error}"


async def answer(client, messages, question):
    """Answer a question, calling tools as long as the model asks for them."""
    messages.append({"role": "user", "content": question})
    while True:
        reply = await client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
        said = reply.choices[0].message
        messages.append(said.to_dict())
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            text = read(call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


async def main(questions):
    """Answer each question."""
    messages = [SYSTEM]
    async with openai.AsyncOpenAI() as client:
        for question in questions:
            print(await answer(client, messages, question))


if __name__ == "__main__":
    asyncio.run(main(line.strip() for line in sys.stdin))
