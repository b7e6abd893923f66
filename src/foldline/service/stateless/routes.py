"""`POST /api/fold` and `POST /api/turn`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from sse_starlette import EventSourceResponse
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

import foldline
from foldline.config import ServeSettings
from foldline.core.log.codec import encode_utf8
from foldline.dialects import UI_MESSAGE
from foldline.errors import FoldlineError, InputError
from foldline.providers import Provider, Retrying
from foldline.service.bodies import decoded, read_body, while_there
from foldline.service.models import Models
from foldline.service.problems import Refused, needs_token, problem, problem_of, too_many
from foldline.service.stateless.fold import Folding
from foldline.service.stateless.fork import SESSION, Asking, asking_of, forked, to_send
from foldline.service.stateless.turn import StatelessTurn
from foldline.service.summaries import closing, written_by
from foldline.service.tenants import Tenants, bearer
from foldline.waiting import apart

POLICY: Final = "moldable"  # where neither the request nor the settings name one
MEDIA: Final = {"x-vercel-ai-ui-message-stream": "v1"}  # the protocol of the AI SDK's useChat


class Stateless:
    """The two routes for clients that keep their own history."""

    def __init__(self, serve: ServeSettings, models: Models, tenants: Tenants) -> None:
        self._serve = serve
        self._models = models
        self._tenants = tenants

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/fold", self._fold, methods=["POST"]),
            Route("/turn", self._turn, methods=["POST"]),
        ]

    async def _asked(self, request: Request) -> Asking | Response:
        tenant = self._tenants.find(request)
        if tenant is None:
            return needs_token()
        if seconds := tenant.rate.wait():
            return too_many(seconds)
        try:
            return await decoded(await read_body(request, self._serve), asking_of)
        except Refused as error:
            return problem_of(error)

    async def _fold(self, request: Request) -> Response:
        asking = await self._asked(request)
        if isinstance(asking, Response):
            return asking
        try:
            return await while_there(request, apart(self._folded(request, asking)))
        except FoldlineError as error:
            return problem_of(error)
        except ClientDisconnect:
            return problem(400, "the client has left")

    async def _folded(self, request: Request, asking: Asking) -> Response:
        """Fold a history, and return the answer."""
        provider, unasked = self._writer(request, asking)
        folding = await self._folding(asking, provider, UI_MESSAGE)
        async with folding.session:
            await folding.begin()
            messages = await folding.fitted()
            await folding.folded()
        if unasked and folding.changed:
            folding.warnings.append(f"the summary was written without a model: {unasked}")
        found = {
            "messages": to_send(folding.fork, folding.state, messages),
            "compactionState": folding.state,
            "compacted": folding.changed,
            "warnings": folding.warnings,
        }
        return Response(encode_utf8(found), media_type="application/json")

    async def _turn(self, request: Request) -> Response:
        asking = await self._asked(request)
        if isinstance(asking, Response):
            return asking
        try:
            model = asking.model or self._models.chosen(None)
            provider = self._provider(request, asking, model)
            folding = await while_there(request, apart(self._folding(asking, provider, provider.dialect)))
        except FoldlineError as error:
            return problem_of(error)
        except ClientDisconnect:
            return problem(400, "the client has left")
        return EventSourceResponse(_events(StatelessTurn(folding, Retrying(provider))), headers=MEDIA)

    async def _folding(self, asking: Asking, provider: Provider | None, dialect: str) -> Folding:
        """Return a history as a session in memory, its view in a dialect."""
        fork = await forked(asking)
        opened = foldline.open(
            fork.store,
            SESSION,
            model=asking.model or self._models.usual,
            policy=asking.policy or self._serve.policy or POLICY,
            window=asking.window or self._serve.window,
            dialect=dialect,
            system=fork.system_with(asking.system),
            tools=asking.tools,
            summarizer=written_by(self._serve, lambda: provider, None),
        )
        return Folding(fork, asking, closing(opened))

    def _writer(self, request: Request, asking: Asking) -> tuple[Provider | None, str]:
        """Return the model that may write a fold's summary, or why the one that is named cannot."""
        model = asking.model or self._models.usual
        try:
            return (None if model is None else self._provider(request, asking, model)), ""
        except InputError as error:
            return None, str(error)

    def _provider(self, request: Request, asking: Asking, model: str) -> Provider:
        """Return the model of a request: it may name one; where that is, the settings say."""
        given = bearer(request.headers.get("authorization", ""))
        own = None if self._tenants.closed else given or None
        return self._models.made_for(model, key=own, window=asking.window)


async def _events(turn: StatelessTurn) -> AsyncGenerator[dict[str, str]]:
    async with aclosing(turn.chunks()) as chunks:
        async for chunk in chunks:
            yield {"data": encode_utf8(chunk).decode()}
    yield {"data": "[DONE]"}
