"""LlamaIndex: one call, on a FunctionAgent that runs alone or in an AgentWorkflow.

    use_foldline(agent, "sqlite:///sessions.db", session="my-session")
    await agent.run("Fix the tests.", memory=memory)

The memory, and what an agent keeps of its running loop, stay whole; the model is sent the view at every step.
`WholeMemory` cuts nothing off; LlamaIndex's own memories leave out what is beyond their limit.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Unpack, cast

from llama_index.core.agent.workflow import AgentOutput, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.llms import LLM
from llama_index.core.memory.types import BaseChatStoreMemory, BaseMemory
from llama_index.core.tools import AsyncBaseTool

from foldline.adapters.forms import chat_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.stores import Store


class WholeMemory(BaseChatStoreMemory):
    """A memory that gives all that was put into it."""

    @classmethod
    def from_defaults(
        cls, chat_history: list[ChatMessage] | None = None, llm: LLM | None = None, **kwargs: Any
    ) -> WholeMemory:
        """Create a memory of these messages."""
        del llm
        memory = cls(**kwargs)
        memory.put_messages(chat_history or [])
        return memory

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002 - the framework's name
        """Return every message."""
        del input
        return self.get_all()


def chat_payload(message: ChatMessage) -> dict[str, Any]:
    """Write a message as one of Chat Completions."""
    beside = message.additional_kwargs
    role = {MessageRole.CHATBOT: "assistant", MessageRole.MODEL: "assistant"}.get(
        message.role, message.role.value
    )
    calls = [
        _call(block.tool_call_id, block.tool_name, block.tool_kwargs)
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    if not calls:  # as the models of some providers return them
        given = cast("list[Any]", beside.get("tool_calls") or [])
        listed = [cast("dict[str, Any]", one if isinstance(one, dict) else one.model_dump()) for one in given]
        calls = [_call(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in listed]
    images = [_image(block) for block in message.blocks if isinstance(block, ImageBlock)]
    content = [{"type": "text", "text": message.content or ""}, *images] if images else message.content or ""
    held: dict[str, Any] = {"tool_calls": calls} if calls else {}
    if role in ("tool", "function"):
        held["tool_call_id"] = beside.get("tool_call_id")
    return {"role": "tool" if role == "function" else role, "content": content, **held}


def _written(payload: dict[str, Any]) -> ChatMessage:
    content = payload.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    blocks: list[Any] = [TextBlock(text=text) for text in texts if text]
    for call in payload.get("tool_calls") or ():
        asked = call["function"]
        arguments = json.loads(asked["arguments"])
        blocks.append(ToolCallBlock(tool_call_id=call["id"], tool_name=asked["name"], tool_kwargs=arguments))
    beside = {key: payload[key] for key in ("tool_call_id",) if key in payload}
    return ChatMessage(role=MessageRole(payload["role"]), blocks=blocks, additional_kwargs=beside)


FORM = chat_form(lambda one: [chat_payload(one)], _written)


def _call(call_id: str | None, name: str, arguments: Any) -> dict[str, Any]:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written}}


def _image(block: ImageBlock) -> dict[str, Any]:
    data = block.resolve_image(as_base64=True).read().decode("ascii")
    url = f"data:{block.image_mimetype or 'image/png'};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url}}


def use_foldline(
    agent: FunctionAgent,
    store: str | Store | None = None,
    *,
    session: str = "default",
    **options: Unpack[AdapterOptions],
) -> FrameworkHistories[ChatMessage]:
    """Send an agent's model the view of a session instead of the whole history; returns what keeps it.

    `store` is where the session is kept (a URL or a Store; default: that of the settings); the options are
    those of `foldline.open`. Without `window` the window is that of the agent's model.
    """
    histories = FrameworkHistories(store, FORM, **options)
    take_step = agent.take_step

    async def viewed(
        ctx: Any, llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool], memory: BaseMemory
    ) -> AgentOutput:
        key = agent.scratchpad_key
        running = cast("list[ChatMessage]", await ctx.store.get(key, default=[]))
        head = [one for one in llm_input[:1] if one.role == MessageRole.SYSTEM]
        whole = [*llm_input[len(head) :], *running]
        view = await histories.aview(session, whole, lambda: _setup(agent, tools))
        await ctx.store.set(key, [])  # what runs is in the view
        try:
            return await take_step(ctx, [*head, *view], tools, memory)
        finally:
            await ctx.store.set(key, [*running, *await ctx.store.get(key, default=[])])

    object.__setattr__(agent, "take_step", viewed)  # the class of agents takes no other attribute
    return histories


def _setup(agent: FunctionAgent, tools: Sequence[AsyncBaseTool]) -> RequestSetup:
    """Return what is sent beside the messages, and the name of the model that they are sent to."""
    defined = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
    return RequestSetup(agent.system_prompt, defined or None, agent.llm.metadata.model_name)
