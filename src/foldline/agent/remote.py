"""The agent for another program: requests in, responses and events out, one JSON object per line.

`foldline rpc --schema` prints the requests as JSON Schema. A response has the `id` of its request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from inspect import signature
from typing import Any, TypeVar, Union, get_type_hints

import msgspec

from foldline.agent.commands.command import Takes
from foldline.agent.commands.figures import figures
from foldline.agent.commands.places import find_prompt, rewind_to, user_prompts
from foldline.agent.commands.registry import parse_line, run
from foldline.agent.events import VERSION, TurnEnded, error_json, event_json
from foldline.agent.host import Host
from foldline.agent.options import HostOptions
from foldline.agent.permissions import Answer, PermissionRequest
from foldline.agent.spending import spent
from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Receipt
from foldline.errors import FoldlineError, InputError
from foldline.session.events import Event
from foldline.session.preview import Preview
from foldline.session.session import Session

log = logging.getLogger("foldline")

Data = dict[str, Any]
Send = Callable[[Data], None]
F = TypeVar("F", bound=Callable[..., Any])
_TAKES: dict[str, Takes] = {}  # every request, and what it runs


def request(takes: Takes = "") -> Callable[[F], F]:
    """Make a method of `Remote` a request."""

    def add(method: F) -> F:
        _TAKES[method.__name__] = takes
        return method

    return add


class Remote:
    """One client of one host: `send` gets every object in order, `take` every line of the client."""

    def __init__(self, send: Send) -> None:
        self.host: Host
        self._send: Send = send
        self._events: asyncio.Queue[tuple[Event, Session] | dict[str, Any] | None] = asyncio.Queue()
        self._permissions: dict[str, asyncio.Future[Answer]] = {}
        self._input_ended = False
        self._preview: Preview | None = None
        self._turns: set[asyncio.Task[None]] = set()
        self._fold: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None

    async def open(self, options: HostOptions) -> None:
        """Open the host and send the session."""
        early: list[Event] = []
        host = self.host = await Host.open(options, emit=early.append, ask=self._ask)
        host.emit = self._emit
        self._put({"type": "session", "version": VERSION, "id": host.session.id, "model": host.model})
        for event in early:
            self._emit(event)
        self._sending = asyncio.ensure_future(self._send_events())

    async def take(self, line: str) -> None:
        """Run the request of a line; an invalid one is answered with an error."""
        try:
            await self._start(msgspec.json.decode(line, type=AnyRequest))
        except Exception as error:
            self._put(error_json(_error_text(error)))

    async def _start(self, request: msgspec.Struct) -> None:
        """Run a request and respond; turns and compactions run in the background."""
        kind = str(request.__struct_config__.tag)
        arguments = msgspec.structs.asdict(request)
        request_id = arguments.pop("id")
        takes = _TAKES[kind]
        if kind == "command":
            command, _ = parse_line(arguments["line"])
            takes = command.takes
            if command.idle:
                self.host.check_idle()
                self._check_no_fold()

        async def respond() -> None:
            data = await getattr(self, kind)(**arguments)
            reference = {} if request_id is None else {"id": request_id}
            self._put({"type": "response", "command": kind, **reference, "data": data})

        if takes == "turn":
            await self._begin_turn(respond())
        elif takes == "summary":
            await self._begin_fold(respond)
        else:
            await respond()

    async def finish(self) -> None:
        """Finish the running turn and the queue, and send all events; open permissions are refused."""
        self._input_ended = True
        for answer in self._permissions.values():
            if not answer.done():
                answer.set_result("no")
        await self._wait_for_work()
        queue = self.host.agent.queue
        while queue:  # left by a turn that failed
            await self._report_errors(self.host.agent.run(*queue.popleft()))
        await self.host.session.settled()
        await self._flush()

    async def stop(self) -> None:
        """Stop the running work and drop the queue; complete messages are stored, and their events sent."""
        self.host.agent.queue.clear()
        await self.abort()
        await self._wait_for_work()
        await self._flush()

    async def _wait_for_work(self) -> None:
        while tasks := {task for task in (*self._turns, self._fold) if task is not None and not task.done()}:
            await asyncio.wait(tasks)

    async def _flush(self) -> None:
        self._events.put_nowait(None)
        if self._sending is not None:
            await self._sending

    # ---- events for the client

    def _emit(self, event: Event) -> None:
        self._events.put_nowait((event, self.host.session))
        if isinstance(event, TurnEnded) and event.how == "failed":
            self._put(error_json(event.detail))

    def _put(self, data: Data) -> None:
        self._events.put_nowait(data)

    async def _send_events(self) -> None:
        """Send events in order; a client that stops reading does not stop the work."""
        while (item := await self._events.get()) is not None:
            try:
                self._send(item if isinstance(item, dict) else await event_json(*item))
            except FoldlineError as error:
                self._send(error_json(str(error)))
            except BrokenPipeError:
                self._send = lambda _: None

    async def _ask(self, request: PermissionRequest) -> Answer:
        if self._input_ended:
            return "no"
        number = str(len(self._permissions) + 1)
        self._permissions[number] = asyncio.get_running_loop().create_future()
        self._put({"type": "permission", "request": number, **msgspec.structs.asdict(request)})
        return await self._permissions[number]

    # ---- work in the background

    async def _begin_turn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(self._report_errors(work))
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)
        await asyncio.sleep(0)  # its first step: from here on the agent is busy

    async def _report_errors(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:
            self._put(error_json(_error_text(error)))

    async def _begin_fold(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._check_no_fold()

        async def fold() -> None:
            try:
                await self._report_errors(work())
            except asyncio.CancelledError:
                self._put(error_json("aborted; the session is unchanged"))
                raise

        self._fold = asyncio.ensure_future(fold())
        await asyncio.sleep(0)  # its first step: from here on an abort is answered

    def _check_no_fold(self) -> None:
        if self._fold is not None and not self._fold.done():
            raise InputError("a compaction is running: wait for it, or abort it")

    # ---- requests: each is named like its method, with the parameters as fields

    @request()
    async def prompt(self, message: str) -> Data:
        """Send a prompt to the agent; during a turn it is queued."""
        if self.host.agent.busy:
            self.host.agent.queue.append((message,))
            return {"queued": True}
        await self._begin_turn(self.host.prompt(message))
        return {"queued": False}

    @request()
    async def abort(self) -> Data:
        """Stop the running turn or compaction; complete messages stay."""
        folding = self._fold is not None and self._fold.cancel()
        return {"stopped": self.host.interrupt() or folding}

    @request(takes="summary")
    async def compact(
        self,
        instructions: str | None = None,
        target: int | None = None,
        up_to: str | None = None,
        since: str | None = None,
    ) -> Data:
        """Fold now, to a `target` in tokens, or everything up to an entry or since one."""
        session = self.host.session
        return _outcome_json(await session.compact(instructions, target=target, up_to=up_to, since=since))

    @request(takes="summary")
    async def preview(self, instructions: str | None = None) -> Data:
        """Show what `compact` would do; `commit` does exactly that."""
        preview = await self.host.session.preview(instructions)
        if isinstance(preview, Nothing):
            return _outcome_json(preview)
        self._preview = preview
        return {"summary": preview.summary, "receipt": msgspec.to_builtins(preview.receipt)}

    @request(takes="summary")
    async def commit(self, summary: str | None = None) -> Data:
        """Commit the newest preview, with its summary as the user edited it."""
        if self._preview is None:
            raise InputError("there is no preview to commit: request one first")
        preview, self._preview = self._preview, None
        return _outcome_json(await self.host.session.commit(preview, summary=summary))

    @request()
    async def undo(self) -> Data:
        """Undo the newest compaction."""
        self.host.check_idle()
        return {"entry": await self.host.session.undo()}

    @request()
    async def redo(self) -> Data:
        """Revert the newest undo."""
        self.host.check_idle()
        return {"entry": await self.host.session.redo()}

    @request()
    async def prompts(self) -> Data:
        """List the user's messages, for `branch`."""
        return {"prompts": msgspec.to_builtins(await user_prompts(self.host))}

    @request()
    async def branch(self, entry: str) -> Data:
        """Continue from before a user message; returns its text."""
        outcome = await rewind_to(self.host, find_prompt(await user_prompts(self.host), entry))
        return {"text": outcome.editor, "told": outcome.text}

    @request()
    async def stats(self) -> Data:
        """Return messages, compactions, tokens by category, price and the state of the session."""
        session = self.host.session
        stats, money = await session.stats(), await spent(session)
        return {
            **figures(stats),
            "contextTokens": stats.context_tokens,
            "usableTokens": stats.usable,
            "window": stats.window.context,
            "byCategory": stats.by_category,
            "usd": round(money.usd + money.summaries_usd, 6),
            "usage": msgspec.to_builtins(money.usage),
            "session": session.id,
            "model": self.host.model,
            "standing": msgspec.to_builtins(await session.standing()),
            "busy": self.host.agent.busy,
        }

    @request()
    async def command(self, line: str) -> Data:
        """Run a line of `chat`, such as `/pin last`."""
        outcome = await run(self.host, line)
        return {"text": outcome.text, "editor": outcome.editor, "session": self.host.session.id}

    @request()
    async def permission(self, request: str, answer: Answer) -> Data:
        """Answer a `permission` event by its `request`."""
        pending = self._permissions.get(request)
        if pending is None or pending.done():
            raise InputError(f"there is no open permission {request!r}")
        pending.set_result(answer)
        return {}


def _request_struct(kind: str) -> type[msgspec.Struct]:
    """Return the struct of a request, made from the signature of its method."""
    method = getattr(Remote, kind)
    hints = get_type_hints(method)
    fields: list[Any] = [("id", str | int | None, None)]
    for parameter in [*signature(method).parameters.values()][1:]:
        default = () if parameter.default is parameter.empty else (parameter.default,)
        fields.append((parameter.name, hints[parameter.name], *default))
    return msgspec.defstruct(
        f"{kind.title()}Request",
        fields,
        tag_field="type",
        tag=kind,
        kw_only=True,
        forbid_unknown_fields=True,
        namespace={"__doc__": method.__doc__},
    )


AnyRequest: Any = Union[tuple(map(_request_struct, _TAKES))]  # noqa: UP007 - known only at run time


def _error_text(error: Exception) -> str:
    """Return the text of an error; an unexpected one is logged, too."""
    if isinstance(error, FoldlineError | msgspec.DecodeError):
        return str(error)
    log.error("a request failed", exc_info=error)
    return f"{type(error).__name__}: {error}"


def _outcome_json(outcome: Receipt | Nothing) -> Data:
    if isinstance(outcome, Nothing):
        return {"folded": False, "why": outcome.why, "detail": outcome.detail}
    return {"folded": True, "receipt": msgspec.to_builtins(outcome)}
