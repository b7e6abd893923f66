"""The agent for another program: requests in, responses and events out, both as JSON objects a line.

`foldline rpc --schema` prints the requests as JSON Schema. A request's `id` is handed back with the response.
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
from foldline.agent.commands.places import back_to, chosen, prompts
from foldline.agent.commands.registry import parsed, run
from foldline.agent.events import VERSION, TurnEnded, failed, recorded
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
_TAKES: dict[str, Takes] = {}  # every request, and what it takes the time of


def request(takes: Takes = "") -> Callable[[F], F]:
    """Make a method of `Remote` a request."""

    def add(method: F) -> F:
        _TAKES[method.__name__] = takes
        return method

    return add


class Remote:
    """One client of one host: `send` gets every object in order, `take` each line that came."""

    def __init__(self, send: Send) -> None:
        self.host: Host
        self._send: Send = send
        self._events: asyncio.Queue[tuple[Event, Session] | dict[str, Any] | None] = asyncio.Queue()
        self._asked: dict[str, asyncio.Future[Answer]] = {}
        self._gone = False  # the input has ended: nobody answers any more
        self._preview: Preview | None = None
        self._turns: set[asyncio.Task[None]] = set()
        self._fold: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None

    async def open(self, options: HostOptions) -> None:
        """Open the host and say which session it is at."""
        early: list[Event] = []
        host = self.host = await Host.open(options, emit=early.append, ask=self._ask)
        host.emit = self._emit
        self._put({"type": "session", "version": VERSION, "id": host.session.id, "model": host.model})
        for event in early:
            self._emit(event)
        self._sending = asyncio.ensure_future(self._pass_on())

    async def take(self, line: str) -> None:
        """Do what a line asks for; what is wrong with it is answered by an error, and no more."""
        try:
            await self._start(msgspec.json.decode(line, type=AnyRequest))
        except Exception as error:
            self._put(failed(_words(error)))

    async def _start(self, request: msgspec.Struct) -> None:
        """Do what is asked and respond; a turn, or a compaction, goes on beside what is asked next."""
        kind = str(request.__struct_config__.tag)
        given = msgspec.structs.asdict(request)
        number = given.pop("id")
        takes = _TAKES[kind]
        if kind == "command":
            command, _ = parsed(given["line"])
            takes = command.takes
            if command.idle:
                self.host.check_idle()
                self._check_no_fold()

        async def respond() -> None:
            data = await getattr(self, kind)(**given)
            known = {} if number is None else {"id": number}
            self._put({"type": "response", "command": kind, **known, "data": data})

        if takes == "turn":
            await self._begin_turn(respond())
        elif takes == "summary":
            await self._begin_fold(respond)
        else:
            await respond()

    async def finish(self) -> None:
        """Finish the turn under way and those that are queued, and send all that is to be sent.

        What nobody can allow any more is refused.
        """
        self._gone = True
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_result("no")
        await self._at_rest()
        queue = self.host.agent.queue
        while queue:  # left by a turn that failed
            await self._worked(self.host.agent.run(*queue.popleft()))
        await self.host.session.settled()
        await self._all_sent()

    async def stop(self) -> None:
        """Stop the work under way and what is queued; what is whole is stored, and told."""
        self.host.agent.queue.clear()
        await self.abort()
        await self._at_rest()
        await self._all_sent()

    async def _at_rest(self) -> None:
        while tasks := {one for one in (*self._turns, self._fold) if one is not None and not one.done()}:
            await asyncio.wait(tasks)

    async def _all_sent(self) -> None:
        self._events.put_nowait(None)
        if self._sending is not None:
            await self._sending

    # ---- what the client is sent

    def _emit(self, event: Event) -> None:
        self._events.put_nowait((event, self.host.session))
        if isinstance(event, TurnEnded) and event.how == "failed":
            self._put(failed(event.detail))

    def _put(self, found: dict[str, Any]) -> None:
        self._events.put_nowait(found)

    async def _pass_on(self) -> None:
        """Send what there is, in order; a client that reads no more does not stop the work."""
        while (found := await self._events.get()) is not None:
            try:
                self._send(found if isinstance(found, dict) else await recorded(*found))
            except FoldlineError as error:
                self._send(failed(str(error)))
            except BrokenPipeError:
                self._send = _nowhere

    async def _ask(self, request: PermissionRequest) -> Answer:
        """Ask the client for a permission, and wait for its answer."""
        if self._gone:
            return "no"
        number = str(len(self._asked) + 1)
        self._asked[number] = asyncio.get_running_loop().create_future()
        told = {"tool": request.tool, "detail": request.detail, "change": request.change}
        self._put({"type": "permission", "request": number, **told})
        return await self._asked[number]

    # ---- work that goes on beside what is asked next

    async def _begin_turn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(self._worked(work))
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)
        await asyncio.sleep(0)  # its first step: from here on the agent is at work

    async def _worked(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:
            self._put(failed(_words(error)))

    async def _begin_fold(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._check_no_fold()

        async def do() -> None:
            try:
                await self._worked(work())
            except asyncio.CancelledError:
                self._put(failed("aborted; the session is as it was"))
                raise

        self._fold = asyncio.ensure_future(do())
        await asyncio.sleep(0)  # its first step: from here on an abort is answered

    def _check_no_fold(self) -> None:
        if self._fold is not None and not self._fold.done():
            raise InputError("a compaction is under way: wait for it, or abort it")

    # ---- what it may ask for: a request has a method's name, and its parameters as fields

    @request()
    async def prompt(self, message: str) -> Data:
        """Say something to the agent; while it works, the prompt is queued."""
        if self.host.agent.busy:
            await self.host.queue(message)
            return {"queued": True}
        await self._begin_turn(self.host.prompt(message))
        return {"queued": False}

    @request()
    async def abort(self) -> Data:
        """Stop the turn or the compaction under way; what is whole stays."""
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
        """Fold now; `target` is a budget in tokens. Or fold all up to an entry, or since one."""
        session = self.host.session
        return _folded(await session.compact(instructions, target=target, up_to=up_to, since=since))

    @request(takes="summary")
    async def preview(self, instructions: str | None = None) -> Data:
        """Show what `compact` would do; `commit` does that very thing."""
        found = await self.host.session.preview(instructions)
        if isinstance(found, Nothing):
            return _folded(found)
        self._preview = found
        return {"summary": found.summary, "receipt": msgspec.to_builtins(found.receipt)}

    @request()
    async def commit(self, summary: str | None = None) -> Data:
        """Commit the newest preview, with its summary as the user edited it."""
        if self._preview is None:
            raise InputError("there is no preview to commit: ask for one first")
        preview, self._preview = self._preview, None
        return _folded(await self.host.session.commit(preview, summary=summary))

    @request()
    async def undo(self) -> Data:
        """Take the newest compaction back."""
        self.host.check_idle()
        return {"entry": await self.host.session.undo()}

    @request()
    async def redo(self) -> Data:
        """Take the newest undo back."""
        self.host.check_idle()
        return {"entry": await self.host.session.redo()}

    @request()
    async def prompts(self) -> Data:
        """List the user's messages, for `branch`."""
        return {"prompts": msgspec.to_builtins(await prompts(self.host))}

    @request()
    async def branch(self, entry: str) -> Data:
        """Go on from before a message of the user's; its words come back."""
        outcome = await back_to(self.host, chosen(await prompts(self.host), entry))
        return {"text": outcome.editor, "told": outcome.text}

    @request()
    async def stats(self) -> Data:
        """Return messages, compactions, tokens by category, price and where the session stands."""
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
        waiting = self._asked.get(request)
        if waiting is None or waiting.done():
            raise InputError(f"no permission {request!r} is asked for")
        waiting.set_result(answer)
        return {}


def _struct(kind: str) -> type[msgspec.Struct]:
    """Return the form of a request, as the signature of its method says."""
    method = getattr(Remote, kind)
    hints = get_type_hints(method)
    fields: list[Any] = [("id", str | int | None, None)]
    for one in [*signature(method).parameters.values()][1:]:
        default = () if one.default is one.empty else (one.default,)
        fields.append((one.name, hints[one.name], *default))
    return msgspec.defstruct(
        f"{kind.title()}Request",
        fields,
        tag_field="type",
        tag=kind,
        kw_only=True,
        forbid_unknown_fields=True,
        namespace={"__doc__": method.__doc__},
    )


AnyRequest: Any = Union[tuple(map(_struct, _TAKES))]  # noqa: UP007 - they are found while it runs


def _nowhere(_found: dict[str, Any]) -> None:
    """Send nothing: nobody reads any more."""


def _words(error: Exception) -> str:
    """Return what went wrong, in words; what nobody foresaw goes to the log, too."""
    if isinstance(error, FoldlineError | msgspec.DecodeError):
        return str(error)
    log.error("a request failed", exc_info=error)
    return f"{type(error).__name__}: {error}"


def _folded(outcome: Receipt | Nothing) -> dict[str, Any]:
    if isinstance(outcome, Nothing):
        return {"folded": False, "why": outcome.why, "detail": outcome.detail}
    return {"folded": True, "receipt": msgspec.to_builtins(outcome)}
