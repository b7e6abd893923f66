"""OpenAI Agents SDK: one session, which is the run's configuration too.

    session = FoldlineSession("my-session", "sqlite:///sessions.db")
    await Runner.run(agent, "Hello", session=session, run_config=session.run_config())

The SDK reads a session once a run; the filter of `run_config` gives the model the view at every call.
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
    """A session of the SDK that is kept whole in a Foldline store, and sent as its view.

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

        A filter that it has gets the view, and has the last word.
        """
        last = config.call_model_input_filter if config is not None else None

        async def both(data: CallModelData[Any]) -> ModelInputData:
            shown = await self.filter(data)
            found = last(dataclasses.replace(data, model_data=shown)) if last is not None else shown
            return await found if inspect.isawaitable(found) else found

        return dataclasses.replace(config or RunConfig(), call_model_input_filter=both)

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
            return await self.histories.acall_tool(self.session_id, tool["name"], arguments)

        return FunctionTool(
            tool["name"], tool["description"], tool["input_schema"], call, strict_json_schema=False
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return every item that was said, or the newest `limit`."""
        items = await self.histories.arun(self.session_id, lambda history: history.whole())
        return items if limit is None else items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep what a run said, but what a call of the model has kept already."""
        await self.histories.arun(self.session_id, lambda history: history.add(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take back the newest item and return it; it stays on a branch."""
        return await self.histories.arun(self.session_id, lambda history: history.pop())

    def close(self) -> None:
        """End the thread in which the session is used, and close the store; used again, they begin again."""
        self.histories.close()

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
