"""`POST /api/fold` and `POST /api/turn`."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, cast

import msgspec
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import foldline
from foldline import providers
from foldline.config import ServeSettings, Settings
from foldline.dialects import UI_MESSAGE
from foldline.errors import FoldlineError, InputError
from foldline.providers import Call, Delta, Provider, Reply
from foldline.service.bodies import BodyError, read_body
from foldline.service.problems import problem, problem_of
from foldline.service.stateless.fork import SESSION, Asking, Fork, asking_of, forked, new_state
from foldline.service.summaries import closing, written_by
from foldline.service.tenants import Tenants
from foldline.session.session import Session

log = logging.getLogger("foldline")

POLICY: Final = "moldable"  # where neither the request nor the settings name one
MEDIA: Final = {"x-vercel-ai-ui-message-stream": "v1"}  # the protocol of the AI SDK's useChat


class Stateless:
    """The two routes for clients that keep their own history."""

    def __init__(self, serve: ServeSettings, known: Settings, tenants: Tenants) -> None:
        self._serve = serve
        self._known = known
        self._tenants = tenants

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/fold", self._fold, methods=["POST"]),
            Route("/turn", self._turn, methods=["POST"]),
        ]

    async def _asked(self, request: Request) -> Asking | Response:
        tenant, _ = self._tenants.find(request.headers)
        if tenant is None:
            return problem(401, "a token is needed", "send it as the key, or as foldline-token")
        if (seconds := await tenant.wait()) > 0:
            return problem(429, "too many requests", f"try again in {seconds:.0f} s")
        try:
            return asking_of(await read_body(request, self._serve.max_body))
        except BodyError as error:
            return problem(error.status, error.title, str(error))

    async def _fold(self, request: Request) -> Response:
        asking = await self._asked(request)
        if isinstance(asking, Response):
            return asking
        try:
            fork = await forked(asking)
            provider = self._provider(request, asking) if asking.model or self._serve.model else None
            async with self._session(fork, asking, provider) as session:
                state, changed = await folded(session, fork, asking)
                messages = list(await session.context())
        except FoldlineError as error:
            return problem_of(error)
        found = {
            "messages": messages,
            "compactionState": state,
            "compacted": changed,
            "warnings": fork.warnings,
        }
        return JSONResponse(msgspec.to_builtins(found))

    async def _turn(self, request: Request) -> Response:
        asking = await self._asked(request)
        if isinstance(asking, Response):
            return asking
        try:
            fork = await forked(asking)
            provider = self._provider(request, asking)
        except FoldlineError as error:
            return problem_of(error)
        return EventSourceResponse(self._events(fork, asking, provider), headers=MEDIA)

    async def _events(self, fork: Fork, asking: Asking, provider: Provider) -> AsyncGenerator[dict[str, str]]:
        try:
            async with self._session(fork, asking, provider) as session:
                state, changed = await folded(session, fork, asking)
                if changed:
                    yield _event(type="compaction", compaction=state)
                await session.use_model(asking.model or self._serve.model, dialect=provider.dialect)
                messages = list(await session.context())
                call = Call(messages=messages, system=session.system, tools=asking.tools)
                async with aclosing(_reply(provider, call)) as events:
                    async for event in events:
                        yield event
        except FoldlineError as error:
            log.warning("a turn failed: %s", error)
            yield _event(type="error", errorText=str(error))
        finally:
            await provider.close()
        yield {"data": "[DONE]"}

    # ---- a session in memory

    def _session(self, fork: Fork, asking: Asking, provider: Provider | None) -> Session:
        opened = foldline.open(
            fork.store,
            SESSION,
            model=asking.model or self._serve.model,
            policy=asking.policy or self._serve.policy or POLICY,
            window=asking.window or self._serve.window,
            dialect=UI_MESSAGE,
            system=asking.system,
            tools=asking.tools,
            summarizer=written_by(self._serve.summaries, lambda: provider, None),
        )
        return closing(opened)

    def _provider(self, request: Request, asking: Asking) -> Provider:
        """Return the model of a turn: a request names it, the settings say where it is."""
        name = asking.model or self._serve.model
        if not name:
            raise InputError("no model: name one as `model`, or set [serve] model")
        if asking.model and asking.model != self._serve.model:
            kind, _, model = asking.model.partition(":")
            if kind not in ("openai", "anthropic") or "@" in model or not model:
                raise InputError(
                    "model: write openai:NAME or anthropic:NAME; where they are is the service's setting"
                )
            own = (
                ""
                if self._tenants.closed
                else request.headers.get("authorization", "").removeprefix("Bearer ")
            )
            url = self._serve.openai_upstream if kind == "openai" else self._serve.anthropic_upstream
            info = self._known.model_info(asking.model, asking.window or self._serve.window)
            return providers.get(asking.model, base_url=url, api_key=own or None, info=info)
        return providers.get(name)


async def folded(session: Session, fork: Fork, asking: Asking) -> tuple[dict[str, Any] | None, bool]:
    """Fold what must be folded; return the state that counts from now on, and whether it is new."""
    before = (await session.stats()).summaries
    await session.append(*fork.newest)
    if asking.compact:
        await session.compact(asking.instructions)
    else:
        await session.context()
    if (await session.stats()).summaries == before:
        return fork.state, False
    return new_state(fork, await session.export("moldable")), True


async def _reply(provider: Provider, call: Call) -> AsyncGenerator[dict[str, str]]:
    """Yield a reply as the AI SDK's stream of a UI message."""
    opened: dict[str, str] = {}  # kind -> the id of its part that is open
    count = 0
    yield _event(type="start")
    stream = cast("AsyncGenerator[Delta | Reply]", provider.stream(call))
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reply):
                for kind, part in opened.items():
                    yield _event(type=f"{kind}-end", id=part)
                for call_ in _calls(piece, provider):
                    yield call_
                usage = msgspec.to_builtins(piece.usage)
                yield _event(type="finish", messageMetadata={"usage": usage, "finishReason": piece.stop})
                return
            kind = {"text": "text", "thinking": "reasoning"}.get(piece.kind)
            if kind is None:
                continue
            if kind not in opened:
                for other, part in opened.items():
                    yield _event(type=f"{other}-end", id=part)
                count += 1
                opened = {kind: f"{kind}-{count}"}
                yield _event(type=f"{kind}-start", id=opened[kind])
            yield _event(type=f"{kind}-delta", id=opened[kind], delta=piece.text)


def _calls(reply: Reply, provider: Provider) -> list[dict[str, str]]:
    message = foldline.dialects.get(provider.dialect).decode_reply(reply.native)
    return [
        _event(type="tool-input-available", toolCallId=one.id, toolName=one.name, input=one.arguments)
        for one in message.calls
    ]


def _event(**fields: Any) -> dict[str, str]:
    return {"data": msgspec.json.encode(fields).decode()}
