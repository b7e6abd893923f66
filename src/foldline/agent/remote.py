"""The agent for another program: requests in, responses and events out, both as JSON objects a line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from foldline.agent import requests as asked
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

Send = Callable[[dict[str, Any]], None]


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
            request = msgspec.json.decode(line, type=asked.AnyRequest)
            data = await self._done(request)
        except Exception as error:
            self._put(failed(_words(error)))
            return
        if data is not None:
            self._respond(request, data)

    async def finish(self) -> None:
        """Finish the turn under way and those that are queued, and send all that is to be sent.

        What nobody can allow any more is refused.
        """
        self._gone = True
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_result("no")
        while tasks := {one for one in (*self._turns, self._fold) if one is not None and not one.done()}:
            await asyncio.wait(tasks)
        queue = self.host.agent.queue
        while queue:  # left by a turn that failed
            await self._worked(self.host.agent.run(*queue.popleft()))
        await self.host.session.settled()
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

    def _respond(self, request: asked.Request, data: dict[str, Any]) -> None:
        kind = request.__struct_config__.tag
        known = {} if request.id is None else {"id": request.id}
        self._put({"type": "response", "command": kind, **known, "data": data})

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

    # ---- what it asks for

    async def _done(self, request: asked.AnyRequest) -> dict[str, Any] | None:
        """Do what is asked; return the response's data, None where it comes later."""
        host = self.host
        match request:
            case asked.PromptRequest():
                return await self._prompted(request.message)
            case asked.AbortRequest():
                return {"stopped": self._abort()}
            case asked.CompactRequest():
                return await self._beside(request, self._compacted(request))
            case asked.PreviewRequest():
                return await self._beside(request, self._previewed(request))
            case asked.CommitRequest():
                return await self._committed(request.summary)
            case asked.UndoRequest():
                host.check_idle()
                return {"entry": await host.session.undo()}
            case asked.RedoRequest():
                host.check_idle()
                return {"entry": await host.session.redo()}
            case asked.PromptsRequest():
                return {"prompts": msgspec.to_builtins(await prompts(host))}
            case asked.BranchRequest():
                outcome = await back_to(host, chosen(await prompts(host), request.entry))
                return {"text": outcome.editor, "told": outcome.text}
            case asked.StatsRequest():
                return await self._stats()
            case asked.CommandRequest():
                return await self._commanded(request)
            case asked.PermissionAnswer():
                return self._answered(request)

    async def _prompted(self, message: str) -> dict[str, Any]:
        if self.host.agent.busy:
            await self.host.queue(message)
            return {"queued": True}
        await self._turn(self.host.prompt(message))
        return {"queued": False}

    async def _turn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(self._worked(work))
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)
        await asyncio.sleep(0)  # its first step: from here on the agent is at work

    async def _worked(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:
            self._put(failed(_words(error)))

    async def _commanded(self, request: asked.CommandRequest) -> dict[str, Any] | None:
        """Run a command; one that takes long beside what is asked next."""
        command = parsed(request.line)[0]
        if command.idle:
            self.host.check_idle()
            self._check_no_fold()
        if command.takes == "summary":
            return await self._beside(request, self._ran(request.line))
        if command.takes == "turn":
            await self._turn(self._ran_as_turn(request))
            return None
        return await self._ran(request.line)

    async def _ran(self, line: str) -> dict[str, Any]:
        outcome = await run(self.host, line)
        return {"text": outcome.text, "editor": outcome.editor, "session": self.host.session.id}

    async def _ran_as_turn(self, request: asked.CommandRequest) -> None:
        self._respond(request, await self._ran(request.line))

    def _abort(self) -> bool:
        folding = self._fold is not None and self._fold.cancel()
        return self.host.interrupt() or folding

    def _check_no_fold(self) -> None:
        if self._fold is not None and not self._fold.done():
            raise InputError("a compaction is under way: wait for it, or abort it")

    async def _beside(self, request: asked.Request, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        """Do what takes long beside what is asked next, and respond when it is done."""

        async def do() -> None:
            try:
                self._respond(request, await work)
            except Exception as error:
                self._put(failed(_words(error)))
            except asyncio.CancelledError:
                self._put(failed("aborted; the session is as it was"))
                raise

        try:
            self._check_no_fold()
        except InputError:
            work.close()
            raise
        self._fold = asyncio.ensure_future(do())
        await asyncio.sleep(0)  # its first step: from here on an abort is answered

    async def _compacted(self, request: asked.CompactRequest) -> dict[str, Any]:
        return _folded(await self.host.session.compact(request.instructions, target=request.target))

    async def _previewed(self, request: asked.PreviewRequest) -> dict[str, Any]:
        found = await self.host.session.preview(request.instructions)
        if isinstance(found, Nothing):
            return _folded(found)
        self._preview = found
        return {"summary": found.summary, "receipt": msgspec.to_builtins(found.receipt)}

    async def _committed(self, summary: str | None) -> dict[str, Any]:
        if self._preview is None:
            raise InputError("there is no preview to commit: ask for one first")
        preview, self._preview = self._preview, None
        return _folded(await self.host.session.commit(preview, summary=summary))

    async def _stats(self) -> dict[str, Any]:
        session = self.host.session
        stats, money = await session.stats(), await spent(session)
        return {
            "totalMessages": stats.total_messages,
            "activeMessages": stats.active_messages,
            "summaryCount": stats.summaries,
            "compressionRatio": stats.compression_ratio,
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

    def _answered(self, request: asked.PermissionAnswer) -> dict[str, Any]:
        waiting = self._asked.get(request.request)
        if waiting is None or waiting.done():
            raise InputError(f"no permission {request.request!r} is asked for")
        waiting.set_result(request.answer)
        return {}


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
