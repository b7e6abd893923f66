"""Tools, their permissions, and how the calls of a reply are run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from foldline.agent.permissions import PermissionRequest, Permissions
from foldline.agent.workspace import Touched, Workspace
from foldline.core.log.messages import Media, Text, ToolCall, ToolResult
from foldline.errors import FoldlineError, did_you_mean
from foldline.session.definitions import Tool, arguments_of, definitions

Arguments = dict[str, Any]
Deferred = Callable[[], Awaitable[None]]
MAX_ANSWER: Final = 64_000  # characters; a little more than `read` returns


class Output(msgspec.Struct, frozen=True):
    """The answer of a tool: a text, pictures, and whether it failed."""

    text: str
    media: tuple[Media, ...] = ()
    failed: bool = False


class AgentTool(msgspec.Struct, frozen=True):
    """A tool of the agent.

    `run` gets checked arguments and raises InputError with a text for the model. A tool that only `reads` may
    run in parallel with others. `asks` returns the permission it needs (None: none); without one, `uses`
    returns what deny rules are compared with.
    """

    about: Tool
    run: Callable[[Arguments], Awaitable[Output | str]]
    reads: bool = False
    asks: Callable[[Arguments], PermissionRequest | None] = lambda _: None
    uses: Callable[[Arguments], str] = lambda _: ""


def in_part(begin: str, end: str, left_out: int) -> str:
    """Return the beginning and the end of a long text, with a mark for what is left out."""
    return f"{begin}\n[… {left_out:,} characters left out …]\n{end}"


def bounded(text: str) -> str:
    """Return an answer, only in part if it is longer than MAX_ANSWER."""
    if len(text) <= MAX_ANSWER:
        return text
    return in_part(text[: MAX_ANSWER // 3], text[-MAX_ANSWER * 2 // 3 :], len(text) - MAX_ANSWER)


def text(description: str, *, empty: bool = False) -> dict[str, Any]:
    """Return the schema of a string, which may be `empty`."""
    return {"type": "string", "description": description, **({"minLength": 0} if empty else {})}


def number(description: str) -> dict[str, Any]:
    """Return the schema of a positive integer."""
    return {"type": "integer", "description": description, "minimum": 1}


def flag(description: str) -> dict[str, Any]:
    """Return the schema of a boolean."""
    return {"type": "boolean", "description": description}


class Toolbox:
    """Tools by name, and their permissions.

    `workspace` records the files that they touch. `deferred` is work that tools put off until all calls of
    the reply have results.
    """

    def __init__(
        self,
        tools: Iterable[AgentTool],
        permissions: Permissions | None = None,
        *,
        workspace: Workspace | None = None,
        deferred: list[Deferred] | None = None,
    ) -> None:
        self.tools = {tool.about.name: tool for tool in tools}
        self.permissions = permissions or Permissions()
        self._workspace = workspace
        self._deferred = deferred if deferred is not None else []

    def touched(self) -> dict[Touched, tuple[str, ...]]:
        """Return the files touched since the last call."""
        return self._workspace.take() if self._workspace is not None else {}

    async def settle(self) -> None:
        """Do the deferred work, now that every call has its result."""
        while self._deferred:
            await self._deferred.pop(0)()

    def definitions(self, dialect: str) -> list[dict[str, object]]:
        """Return the tool definitions for a request."""
        return definitions(dialect, [tool.about for tool in self.tools.values()])

    def batches(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        """Yield calls in order, in batches that may run in parallel: calls of tools that only read.

        Work that calls of an earlier reply deferred is dropped: the user stopped them.
        """
        self._deferred.clear()
        batch: list[ToolCall] = []
        for call in calls:
            tool = self.tools.get(call.name)
            if tool is not None and not tool.reads:
                if batch:
                    yield batch
                yield [call]
                batch = []
            else:
                batch.append(call)
        if batch:
            yield batch

    async def run(self, call: ToolCall) -> ToolResult:
        """Run a call; any error becomes a result for the model."""
        try:
            output = await self._output(call)
        except FoldlineError as error:
            output = Output(f"Error: {error}", failed=True)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a tool's bug must not end the session
            output = Output(f"Error in {call.name}: {type(error).__name__}: {error}", failed=True)
        text = Text(bounded(output.text) or "(nothing)")
        return ToolResult(call.id, (text, *output.media), is_error=output.failed)

    async def _output(self, call: ToolCall) -> Output:
        tool = self.tools.get(call.name)
        if tool is None:
            hint = did_you_mean(call.name, self.tools)
            names = ", ".join(self.tools)
            return Output(f"Error: no tool {call.name!r}{hint}; there are {names}", failed=True)
        arguments = arguments_of(tool.about, call.arguments)
        if request := tool.asks(arguments):
            refusal = await self.permissions.refused(request)
        else:
            refusal = self.permissions.denied(PermissionRequest(call.name, tool.uses(arguments)))
        if refusal is not None:
            return Output(refusal, failed=True)
        answer = await tool.run(arguments)
        return answer if isinstance(answer, Output) else Output(answer)
