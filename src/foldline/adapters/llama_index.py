"""LlamaIndex: one call, on a FunctionAgent that runs alone or in an AgentWorkflow.

    use_foldline(agent, "sqlite:///sessions.db", session="my-session")
    await agent.run("Fix the tests.", memory=memory)

The memory and the agent's scratchpad stay whole; the model is sent the view at every step. `WholeMemory`
keeps everything; LlamaIndex's own memories leave out what exceeds their limit.
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
    """A memory that returns every message."""

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
    """Convert a message to Chat Completions."""
    extra = message.additional_kwargs
    role = {MessageRole.CHATBOT: "assistant", MessageRole.MODEL: "assistant"}.get(
        message.role, message.role.value
    )
    calls = [
        _call(block.tool_call_id, block.tool_name, block.tool_kwargs)
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    if not calls:  # some providers' models return them here
        for item in cast("list[Any]", extra.get("tool_calls") or []):
            call = cast("dict[str, Any]", item if isinstance(item, dict) else item.model_dump())
            calls.append(_call(call["id"], call["function"]["name"], call["function"]["arguments"]))
    images = [_image(block) for block in message.blocks if isinstance(block, ImageBlock)]
    content = [{"type": "text", "text": message.content or ""}, *images] if images else message.content or ""
    fields: dict[str, Any] = {"tool_calls": calls} if calls else {}
    if role in ("tool", "function"):
        fields["tool_call_id"] = extra.get("tool_call_id")
    return {"role": "tool" if role == "function" else role, "content": content, **fields}


def _from_chat(payload: dict[str, Any]) -> ChatMessage:
    content = payload.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    blocks: list[Any] = [TextBlock(text=text) for text in texts if text]
    for call in payload.get("tool_calls") or ():
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        blocks.append(ToolCallBlock(tool_call_id=call["id"], tool_name=name, tool_kwargs=arguments))
    extra = {key: payload[key] for key in ("tool_call_id",) if key in payload}
    return ChatMessage(role=MessageRole(payload["role"]), blocks=blocks, additional_kwargs=extra)


FORM = chat_form(lambda message: [chat_payload(message)], _from_chat)


def _call(call_id: str | None, name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


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
    """Send an agent's model the view of a session instead of the whole history; return the sessions.

    `store` is a URL or a Store (default: that of the settings); the options are
    those of `foldline.open`. Without `window` the window is that of the agent's model.
    """
    histories = FrameworkHistories(store, FORM, **options)
    take_step = agent.take_step

    async def take_step_with_view(
        ctx: Any, llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool], memory: BaseMemory
    ) -> AgentOutput:
        key = agent.scratchpad_key
        scratchpad = cast("list[ChatMessage]", await ctx.store.get(key, default=[]))
        system = [message for message in llm_input[:1] if message.role == MessageRole.SYSTEM]
        history = [*llm_input[len(system) :], *scratchpad]
        view = await histories.aview(session, history, lambda: _setup(agent, tools))
        await ctx.store.set(key, [])  # its messages are in the view
        try:
            return await take_step(ctx, [*system, *view], tools, memory)
        finally:
            await ctx.store.set(key, [*scratchpad, *await ctx.store.get(key, default=[])])

    object.__setattr__(agent, "take_step", take_step_with_view)  # the class refuses other attributes
    return histories


def _setup(agent: FunctionAgent, tools: Sequence[AsyncBaseTool]) -> RequestSetup:
    """Return the system prompt, the tools and the model of a request."""
    defined = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
    return RequestSetup(agent.system_prompt, defined or None, agent.llm.metadata.model_name)
