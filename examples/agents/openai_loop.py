"""An agent on the raw OpenAI SDK that never outgrows its window. Run it, and type a question a line."""

import asyncio
import json
import sys
from pathlib import Path

import openai

import foldline

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


async def answer(client, session, question):
    """Answer a question, calling tools as long as the model asks for them."""
    await session.append({"role": "user", "content": question})
    while True:
        view = await session.context()
        try:
            reply = await client.chat.completions.create(model=MODEL, messages=[SYSTEM, *view], tools=TOOLS)
        except openai.BadRequestError as error:
            await session.overflowed(error, view=view)  # folds if it did not fit, else raises it again
            continue
        await session.append(reply)
        said = reply.choices[0].message
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            text = read(call.function.arguments)
            await session.append({"role": "tool", "tool_call_id": call.id, "content": text})


async def main(questions, store="sqlite:///agent.db", window=None):
    """Answer each question; the session is kept in `store` and goes on at the next start."""
    setup = {"model": f"openai:{MODEL}", "window": window, "system": SYSTEM["content"], "tools": TOOLS}
    async with openai.AsyncOpenAI() as client, foldline.open(store, "files", **setup) as session:
        for question in questions:
            print(await answer(client, session, question))


if __name__ == "__main__":
    asyncio.run(main(line.strip() for line in sys.stdin))
