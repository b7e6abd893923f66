"""OpenAI Agents SDK: one session, which also makes the run's configuration.

    session = FoldlineSession("my-session", "sqlite:///sessions.db")
    await Runner.run(agent, "Hello", session=session, run_config=session.run_config())

The SDK reads a session once per run; the filter of `run_config` sends the model the view at every call.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Unpack

from agents import FunctionTool, RunConfig
from agents.items import TResponseInputItem
from agents.memory import SessionSettings
from agents.run import CallModelData, ModelInputData

from foldline.adapters.forms import native_form
from foldline.adapters.histories import AdapterOptions, FrameworkHistories, RequestSetup
from foldline.stores import Store


def _item(payload: dict[str, Any]) -> TResponseInputItem:
    return payload  # pyright: ignore[reportReturnType]  # a dict of that form


FORM = native_form("openai-responses", _item)


class FoldlineSession:
    """A session of the SDK that is stored whole by Foldline, and sent as its view.

    `store` is a URL or a Store (default: that of the settings); `policy`, `window` and `model` are as for
    `foldline.open`; without `window` the window is that of the agent's model.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        store: str | Store | None = None,
        **options: Unpack[AdapterOptions],
    ) -> None:
        self.session_id = session_id
        self.histories = FrameworkHistories(store, FORM, record=True, **options)

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a configuration (default: an empty one) in which the model is sent the view.

        A filter of `config` is applied to the view.
        """
        inner = config.call_model_input_filter if config is not None else None

        async def view_filter(data: CallModelData[Any]) -> ModelInputData:
            view = await self.filter(data)
            result = inner(dataclasses.replace(data, model_data=view)) if inner is not None else view
            return await result if inspect.isawaitable(result) else result

        return dataclasses.replace(config or RunConfig(), call_model_input_filter=view_filter)

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Replace the history of a call by the view."""
        request = data.model_data
        view = await self.histories.aview(self.session_id, request.input, lambda: _setup(data))
        return ModelInputData(input=view, instructions=request.instructions)

    def tools(self) -> list[FunctionTool]:
        """Return tools for the agent that search what was folded."""
        return [self._tool(tool) for tool in self.histories.tools()]

    def _tool(self, tool: dict[str, Any]) -> FunctionTool:
        async def call(_: Any, arguments: str) -> str:
            return await self.histories.acall_tool(self.session_id, tool["name"], arguments)

        return FunctionTool(
            tool["name"], tool["description"], tool["input_schema"], call, strict_json_schema=False
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return every item, or the newest `limit`."""
        items = await self.histories.arun(self.session_id, lambda history: history.whole())
        return items if limit is None else items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store the items of a run, except those that a call of the model has stored already."""
        await self.histories.arun(self.session_id, lambda history: history.add(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the newest item; it stays on a branch."""
        return await self.histories.arun(self.session_id, lambda history: history.pop())

    def close(self) -> None:
        """Close the store and end the session's thread; a later call opens them again."""
        self.histories.close()

    async def clear_session(self) -> None:
        """Start anew; the items stay as a branch."""
        await self.histories.arun(self.session_id, lambda history: history.clear())


def _setup(data: CallModelData[Any]) -> RequestSetup:
    """Return the system prompt, the tools and the model of a request."""
    model = data.agent.model
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
        for tool in data.agent.tools
        if isinstance(tool, FunctionTool)
    ]
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return RequestSetup(data.model_data.instructions, tools or None, name if isinstance(name, str) else None)
