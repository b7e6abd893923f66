"""OpenAI Agents SDK: one session, which is the run's configuration too.

    session = FoldlineSession("my-session", "sqlite:///sessions.db")
    await Runner.run(agent, "Hello", session=session, run_config=session.run_config())

The SDK reads a session once a run; the filter of `run_config` gives the model the view at every call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Unpack

from agents import FunctionTool, RunConfig
from agents.items import TResponseInputItem
from agents.memory import SessionSettings
from agents.run import CallModelData, ModelInputData

from foldline.adapters.history import AdapterOptions, FrameworkHistories, RequestSetup, read_list
from foldline.core.log.messages import Message
from foldline.stores import Store


class ResponsesForm:
    """Items of the Responses API, as the SDK has them."""

    dialect = "openai-responses"

    def decode(self, messages: Sequence[TResponseInputItem]) -> list[list[Message]]:
        """Read items; a reply's reasoning, text and calls are one message, told by the first of them."""
        return read_list(messages, self.dialect)

    def encode(self, payloads: Sequence[dict[str, Any]]) -> list[TResponseInputItem]:
        """Return items as they are."""
        return list(payloads)  # pyright: ignore[reportReturnType]  # dicts of that form


class FoldlineSession:
    """A session of the SDK that is kept whole in a Foldline store, and sent as its view.

    `store` is a URL or a Store (default: that of the settings); `policy`, `window` and `model` are as for
    `foldline.open`; without `window` and `model` the window is that of the agent's model.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        store: str | Store | None = None,
        **options: Unpack[AdapterOptions],
    ) -> None:
        self.session_id = session_id
        self.histories = FrameworkHistories(store, ResponsesForm(), **options)

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a configuration (default: an empty one) in which the model is sent the view."""
        return dataclasses.replace(config or RunConfig(), call_model_input_filter=self.filter)

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Give a call of the model the view in place of the history."""
        asked = data.model_data
        view = await self.histories.aview(self.session_id, asked.input, lambda: _setup(data))
        return ModelInputData(input=view, instructions=asked.instructions)

    def tools(self) -> list[FunctionTool]:
        """Return the tools that search what was folded away, to be given to the agent."""
        return [self._tool(one) for one in self.histories.tools()]

    def _tool(self, tool: dict[str, Any]) -> FunctionTool:
        async def call(_: Any, arguments: str) -> str:
            return await self.histories.arun(
                self.session_id, lambda history: history.session.call_tool(tool["name"], arguments)
            )

        return FunctionTool(
            tool["name"], tool["description"], tool["input_schema"], call, strict_json_schema=False
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return every item that was said, or the newest `limit`."""
        items = await self.histories.arun(self.session_id, lambda history: history.whole())
        return items if limit is None else items[len(items) - limit :] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep what a run said, but what a call of the model has kept already."""
        await self.histories.arun(self.session_id, lambda history: history.add(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take back the newest item and return it; it stays on a branch."""
        return await self.histories.arun(self.session_id, lambda history: history.pop())

    async def clear_session(self) -> None:
        """Begin anew; what was said stays as a branch."""
        await self.histories.arun(self.session_id, lambda history: history.clear())


def _setup(data: CallModelData[Any]) -> RequestSetup:
    """Return what is sent beside the items, and the name of the model that they are sent to."""
    model = data.agent.model
    tools = [
        {"name": one.name, "description": one.description, "parameters": one.params_json_schema}
        for one in data.agent.tools
        if isinstance(one, FunctionTool)
    ]
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return RequestSetup(data.model_data.instructions, tools or None, name if isinstance(name, str) else None)
