"""The providers' own clients, pointed at a server of ours, their retries off."""

from contextlib import asynccontextmanager

import anthropic
import openai

MODEL = "scripted"


@asynccontextmanager
async def anthropic_client(url, **options):
    plain = anthropic.DefaultAsyncHttpxClient(verify=False)  # no TLS here: its certificates take long to load
    fields = {"base_url": url, "api_key": "test", "max_retries": 0, "http_client": plain, "timeout": 60}
    async with anthropic.AsyncAnthropic(**{**fields, **options}) as client:
        yield client


@asynccontextmanager
async def openai_client(url, **options):
    plain = openai.DefaultAsyncHttpx2Client(verify=False)
    fields = {"base_url": url, "api_key": "test", "max_retries": 0, "http_client": plain, "timeout": 60}
    async with openai.AsyncOpenAI(**{**fields, **options}) as client:
        yield client


async def ask(url, dialect, messages=None, *, stream=False, patience=60.0, **more):
    """Ask by the SDK of a dialect, whole or as a stream read to its end; return the text of the reply."""
    messages = messages or [{"role": "user", "content": "Hello"}]
    if dialect == "anthropic":
        async with anthropic_client(url, timeout=patience) as client:
            fields = {"model": MODEL, "max_tokens": 1000, "messages": messages, **more}
            if not stream:
                reply = await client.messages.create(**fields)
                return "".join(block.text for block in reply.content if block.type == "text")
            async with client.messages.stream(**fields) as events:
                return await events.get_final_text()
    async with openai_client(url, timeout=patience) as client:
        if dialect == "openai-chat":
            fields = {"model": MODEL, "messages": messages, **more}
            if not stream:
                return (await client.chat.completions.create(**fields)).choices[0].message.content
            async with client.chat.completions.stream(**fields) as events:
                return (await events.get_final_completion()).choices[0].message.content
        fields = {"model": MODEL, "input": messages, **more}
        if not stream:
            return (await client.responses.create(**fields)).output_text
        async with client.responses.stream(**fields) as events:
            return (await events.get_final_response()).output_text
