"""What a tool is, what it needs permission for, and how the calls of a reply are run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from foldline.agent.permissions import PermissionRequest, Permissions
from foldline.agent.workspace import Touched, Workspace
from foldline.core.log.messages import Media, Text, ToolCall, ToolResult
from foldline.errors import FoldlineError, did_you_mean
from foldline.session.tools import Tool, arguments_of, definitions

Arguments = dict[str, Any]
MOST: Final = 64_000  # characters of an answer: what `read` shows at once, and a little more


class Output(msgspec.Struct, frozen=True):
    """What a tool answers: a text, pictures beside it, and whether it failed."""

    text: str
    media: tuple[Media, ...] = ()
    failed: bool = False


class AgentTool(msgspec.Struct, frozen=True):
    """A tool of the agent's.

    `run` gets checked arguments; it raises InputError with words for the model. `reads`: it changes nothing,
    so that it may run beside others. `asks` says what it needs permission for (None: nothing); where it needs
    none, `uses` says what a deny rule is compared with.
    """

    about: Tool
    run: Callable[[Arguments], Awaitable[Output | str]]
    reads: bool = False
    asks: Callable[[Arguments], PermissionRequest | None] = lambda _: None
    uses: Callable[[Arguments], str] = lambda _: ""


def in_part(begin: str, end: str, left_out: int) -> str:
    """Return the beginning and the end of a long text, and how much of it is left out."""
    return f"{begin}\n[… {left_out:,} characters left out …]\n{end}"


def bounded(text: str) -> str:
    """Return an answer, in part where it is longer than any may be."""
    return text if len(text) <= MOST else in_part(text[: MOST // 3], text[-MOST * 2 // 3 :], len(text) - MOST)


def text(description: str, *, empty: bool = False) -> dict[str, Any]:
    """Return the schema of a string, which may be `empty` where that says something."""
    return {"type": "string", "description": description, **({"minLength": 0} if empty else {})}


def number(description: str, least: int = 1) -> dict[str, Any]:
    """Return the schema of a whole number."""
    return {"type": "integer", "description": description, "minimum": least}


def flag(description: str) -> dict[str, Any]:
    """Return the schema of a switch."""
    return {"type": "boolean", "description": description}


class Toolbox:
    """Tools by name, and what they may do unasked.

    `workspace` notes the files that they touch. `settle` is awaited when the calls of a reply are answered.
    """

    def __init__(
        self,
        tools: Iterable[AgentTool],
        permissions: Permissions | None = None,
        *,
        workspace: Workspace | None = None,
        settle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.tools = {tool.about.name: tool for tool in tools}
        self.permissions = permissions or Permissions()
        self._workspace = workspace
        self._settle = settle

    def touched(self) -> dict[Touched, tuple[str, ...]]:
        """Return the files that were touched since the last time."""
        return self._workspace.take() if self._workspace is not None else {}

    async def settle(self) -> None:
        """Do what tools left to be done until every call has its result."""
        if self._settle is not None:
            await self._settle()

    def definitions(self, dialect: str) -> list[dict[str, object]]:
        """Return the tools as a model is told of them."""
        return definitions(dialect, [tool.about for tool in self.tools.values()])

    def batches(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        """Yield calls in order, those together that may run at the same time: tools that only read."""
        together: list[ToolCall] = []
        for call in calls:
            tool = self.tools.get(call.name)
            if tool is not None and not tool.reads:
                if together:
                    yield together
                yield [call]
                together = []
            else:
                together.append(call)
        if together:
            yield together

    async def run(self, call: ToolCall) -> ToolResult:
        """Run a call; whatever is wrong with it is answered in words for the model."""
        try:
            output = await self._output(call)
        except FoldlineError as error:
            output = Output(f"Error: {error}", failed=True)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a tool's bug must not end the session
            output = Output(f"Error in {call.name}: {type(error).__name__}: {error}", failed=True)
        told = Text(bounded(output.text) or "(nothing)")
        return ToolResult(call.id, (told, *output.media), is_error=output.failed)

    async def _output(self, call: ToolCall) -> Output:
        tool = self.tools.get(call.name)
        if tool is None:
            known = ", ".join(self.tools)
            return Output(
                f"Error: no tool {call.name!r}{did_you_mean(call.name, self.tools)}; there are {known}",
                failed=True,
            )
        given = arguments_of(tool.about, call.arguments)
        if request := tool.asks(given):
            why = await self.permissions.refused(request)
        else:
            why = self.permissions.denied(PermissionRequest(call.name, tool.uses(given)))
        if why is not None:
            return Output(why, failed=True)
        found = await tool.run(given)
        return found if isinstance(found, Output) else Output(found)
