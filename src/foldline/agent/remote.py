"""The agent for another program: requests in, responses and events out, both as JSON objects a line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from foldline.agent import requests as asked
from foldline.agent.commands.places import back_to, chosen, prompts
from foldline.agent.commands.registry import run
from foldline.agent.host import Host
from foldline.agent.permissions import Answer, PermissionRequest
from foldline.agent.record import failed, recorded
from foldline.agent.spending import spent
from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Receipt
from foldline.errors import FoldlineError, InputError
from foldline.session.events import Event
from foldline.session.preview import Preview

Send = Callable[[dict[str, Any]], None]


class Remote:
    """One client of one host: `send` gets every object in order, `take` each line that came."""

    def __init__(self, send: Send) -> None:
        self.host: Host
        self._send = send
        self._events: asyncio.Queue[Event | dict[str, Any] | None] = asyncio.Queue()
        self._asked: dict[str, asyncio.Future[Answer]] = {}
        self._preview: Preview | None = None
        self._turn: asyncio.Task[None] | None = None
        self._fold: asyncio.Task[None] | None = None
        self._sending = asyncio.ensure_future(self._pass_on())

    def emit(self, event: Event) -> None:
        """Pass an event of the host's on."""
        self._events.put_nowait(event)

    async def ask(self, request: PermissionRequest) -> Answer:
        """Ask the client for a permission, and wait for its answer."""
        number = str(len(self._asked) + 1)
        self._asked[number] = asyncio.get_running_loop().create_future()
        told = {"tool": request.tool, "detail": request.detail, "change": request.change}
        self._events.put_nowait({"type": "permission", "request": number, **told})
        return await self._asked[number]

    async def take(self, line: str) -> None:
        """Do what a line asks for; what is wrong with it is answered by an error, and no more."""
        try:
            request = msgspec.json.decode(line, type=asked.AnyRequest)
            data = await self._done(request)
        except (msgspec.DecodeError, FoldlineError) as error:
            self._put(failed(str(error)))
            return
        if data is not None:
            self._respond(request, data)

    async def finish(self) -> None:
        """Wait for the turn under way, and for all that is to be sent."""
        for task in (self._turn, self._fold):
            if task is not None:
                await asyncio.wait({task})
        await self.host.session.settled()
        self._events.put_nowait(None)
        await self._sending

    def _put(self, found: dict[str, Any]) -> None:
        self._events.put_nowait(found)

    def _respond(self, request: asked.Request, data: dict[str, Any]) -> None:
        kind = request.__struct_config__.tag
        known = {} if request.id is None else {"id": request.id}
        self._put({"type": "response", "command": kind, **known, "data": data})

    async def _pass_on(self) -> None:
        while (found := await self._events.get()) is not None:
            self._send(found if isinstance(found, dict) else await recorded(found, self.host.session))

    async def _done(self, request: asked.AnyRequest) -> dict[str, Any] | None:
        """Do what is asked; return the response's data, None where it comes later."""
        host = self.host
        match request:
            case asked.PromptRequest():
                return await self._prompted(request.message)
            case asked.AbortRequest():
                return {"stopped": self._abort()}
            case asked.CompactRequest():
                self._fold = self._later(request, self._compacted(request))
                return None
            case asked.PreviewRequest():
                self._fold = self._later(request, self._previewed(request))
                return None
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
                outcome = await run(host, request.line)
                return {"text": outcome.text, "editor": outcome.editor, "session": host.session.id}
            case asked.PermissionAnswer():
                return self._answered(request)

    async def _prompted(self, message: str) -> dict[str, Any]:
        if self.host.agent.busy or (self._turn is not None and not self._turn.done()):
            await self.host.queue(message)
            return {"queued": True}
        self._turn = asyncio.ensure_future(self._worked(message))
        return {"queued": False}

    async def _worked(self, message: str) -> None:
        try:
            ended = await self.host.prompt(message)
        except FoldlineError as error:
            self._put(failed(str(error)))
            return
        if ended.how == "failed":
            self._put(failed(ended.detail))

    def _abort(self) -> bool:
        folding = self._fold is not None and self._fold.cancel()
        return self.host.agent.interrupt() or folding

    def _later(self, request: asked.Request, work: Coroutine[Any, Any, dict[str, Any]]) -> asyncio.Task[None]:
        """Do what takes long beside what is asked next, and respond when it is done."""

        async def do() -> None:
            try:
                self._respond(request, await work)
            except FoldlineError as error:
                self._put(failed(str(error)))
            except asyncio.CancelledError:
                self._put(failed("aborted; the session is as it was"))
                raise

        if self._fold is not None and not self._fold.done():
            work.close()
            raise InputError("a compaction is under way: wait for it, or abort it")
        return asyncio.ensure_future(do())

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


def _folded(outcome: Receipt | Nothing) -> dict[str, Any]:
    if isinstance(outcome, Nothing):
        return {"folded": False, "why": outcome.why, "detail": outcome.detail}
    return {"folded": True, "receipt": msgspec.to_builtins(outcome)}
