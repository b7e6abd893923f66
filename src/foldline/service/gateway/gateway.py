"""The gateway: what comes in under `/v1` goes to its provider, and what comes back goes to the client."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from functools import partial
from typing import Final
from urllib.parse import unquote

import httpx2
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope
from starlette.types import Send as ASGISend

import foldline
from foldline import providers
from foldline.catalogue import ModelInfo
from foldline.config import ServeSettings, Settings
from foldline.errors import FoldlineError
from foldline.service.bodies import decoded, read_body, while_there
from foldline.service.gateway.agent_session import AgentSession, AskedModel
from foldline.service.gateway.compaction_answer import MadeItem, compacted, response, streamed
from foldline.service.gateway.compaction_item import readable, sealed
from foldline.service.gateway.endpoint import Endpoint, Vendor
from foldline.service.gateway.exchange import Exchange, Relayed, Send
from foldline.service.gateway.payer import PaidByRequest, pays
from foldline.service.gateway.refusals import denial, refusal
from foldline.service.gateway.request import AgentRequest, read_request
from foldline.service.gateway.session_finder import SessionFinder, valid_name
from foldline.service.gateway.upstream import Headers, Upstreams, asked_on, passed_back, sent_on, vendor_of
from foldline.service.guesses import Denied
from foldline.service.metrics import Metrics
from foldline.service.problems import Refused
from foldline.service.summaries import BY_RULE, UPSTREAM, closing, written_by
from foldline.service.tenants import Tenant, Tenants
from foldline.session.session import Session
from foldline.session.shared import summaries_by
from foldline.summarizers import Summarizer

log = logging.getLogger("foldline")

SESSION: Final = "foldline-session"  # names the session of a request
SUBAGENT: Final = (  # say that a sub-agent asks: any client, Codex, Claude Code, OpenCode
    "foldline-subagent",
    "x-openai-subagent",
    "x-claude-code-agent-id",
    "x-parent-session-id",
)


class _From(msgspec.Struct, frozen=True):
    """Where a request comes from, and the headers with which it goes on."""

    request: Request
    tenant: Tenant
    headers: Headers

    @property
    def subagent(self) -> bool:
        """Whether a sub-agent asks: no threshold folds its session."""
        return any(self.request.headers.get(name, "0") not in ("", "0", "false") for name in SUBAGENT)


class Gateway:
    """Answers the requests of agents."""

    def __init__(self, serve: ServeSettings, settings: Settings, tenants: Tenants, metrics: Metrics) -> None:
        self._serve = serve
        self._settings = settings
        self._tenants = tenants
        self._metrics = metrics
        self._finders: dict[str, SessionFinder] = {}
        self._upstreams = Upstreams({"openai": serve.openai_upstream, "anthropic": serve.anthropic_upstream})

    async def close(self) -> None:
        """Close the connections to the providers."""
        await self._upstreams.close()

    async def ask(self, request: Request, endpoint: Endpoint, *, compact: bool = False) -> Response:
        """Answer a request for a reply of a model; with `compact`, for a compaction item alone."""
        tenant = self._tenants.find(request)
        if isinstance(tenant, Denied):
            return denial(endpoint.vendor, tenant)
        if (seconds := await tenant.wait()) > 0:
            return refusal(endpoint.vendor, 429, "too many requests", wait=seconds)
        try:
            raw = await read_body(request, self._serve)
        except Refused as error:
            return refusal(endpoint.vendor, error.status, str(error))
        secret = self._tenants.holds_token
        headers = sent_on(request.headers.items(), endpoint.vendor, secret=secret)
        pays(headers)
        path = endpoint.path + ("/compact" if compact else "")
        query = asked_on(request.scope["query_string"].decode("latin-1"), secret=secret)
        asked, raw = await decoded(raw, partial(_read, endpoint))

        async def send(body: bytes) -> httpx2.Response:
            return await self._upstreams.send(
                endpoint.vendor, "POST", path, query=query, headers=headers, body=body
            )

        try:
            if asked is not None and (compact or asked.wants_item):
                return await self._item(_From(request, tenant, headers), asked, alone=compact)
            relayed = await self._relayed(_From(request, tenant, headers), asked, raw, send)
        except httpx2.HTTPError as error:
            self._metrics.upstream_failed(endpoint.vendor)
            return _unreached(endpoint.vendor, error)
        except ClientDisconnect:
            return refusal(endpoint.vendor, 400, "the client has left")
        return _response(relayed)

    async def _relayed(self, origin: _From, asked: AgentRequest | None, raw: bytes, send: Send) -> Relayed:
        if asked is None or not asked.units:
            return _untouched(await send(raw))
        try:
            talk, asked = await while_there(origin.request, self._session_of(origin, asked))
            self._bring_summarizer(talk, asked)
        except ClientDisconnect:
            raise
        except FoldlineError as error:
            log.warning("a request goes on as it came: %s", error)
            return _untouched(await send(asked.raw))
        except Exception:  # an agent must not stand still for a defect of ours
            log.exception("a request goes on as it came")
            return _untouched(await send(asked.raw))
        talk.users += 1
        talk.applies_template = not self._upstreams.is_vendors(asked.endpoint.vendor)
        try:
            exchange = Exchange(talk, asked, self._metrics)
            body = await while_there(origin.request, self._prepared(exchange, talk, asked))
            relayed = await exchange.run(body, send)
            if isinstance(relayed.body, bytes):
                return relayed
            talk.users += 1  # until its stream has ended
            return msgspec.structs.replace(relayed, talk=talk)
        finally:
            talk.users -= 1

    async def _prepared(self, exchange: Exchange, talk: AgentSession, asked: AgentRequest) -> bytes:
        """Return the bytes to send; whatever fails here, the request goes on as it came."""
        try:
            await self._use_model(talk, asked)
            return await exchange.prepare()
        except FoldlineError as error:
            log.warning("a request goes on as it came: %s", error)
        except Exception:  # an agent must not stand still for a defect of ours
            log.exception("a request goes on as it came")
        return asked.raw

    async def _item(self, origin: _From, asked: AgentRequest, *, alone: bool) -> Response:
        """Answer with a compaction item of our own: few upstreams can make one, and none reads another's."""
        if not asked.units:
            return refusal(asked.endpoint.vendor, 400, "there is nothing to compact")
        make = partial(self._compacted, origin, asked)
        if not alone and asked.streamed:
            return StreamingResponse(streamed(asked, make), media_type="text/event-stream")
        made = await while_there(origin.request, make())
        return JSONResponse(compacted(made) if alone else response(asked, made))

    async def _compacted(self, origin: _From, asked: AgentRequest) -> MadeItem:
        """Fold the session of a request, and return the item that stands for its view."""
        try:
            talk, asked = await self._session_of(origin, asked)
            self._bring_summarizer(talk, asked)
            talk.users += 1
            try:
                await self._use_model(talk, asked)
                async with talk.lock:
                    if await talk.follow(asked):
                        item = await talk.compact(asked)
                        return MadeItem(item, talk.take_untold(self._metrics))
            finally:
                talk.users -= 1
        except FoldlineError as error:
            log.warning("a history is folded without its session: %s", error)
        except Exception:  # an agent must not stand still for a defect of ours
            log.exception("a history is folded without its session")
        return await self._stateless(asked)

    async def _stateless(self, asked: AgentRequest) -> MadeItem:
        """Return the item of a history that cannot be stored: what is folded is in it alone."""
        messages = [msgspec.json.decode(one) for one in asked.elements[asked.lead :]]
        name = f"{asked.endpoint.vendor}:{asked.model}"
        limit = self._settings.model_info(name, self._serve.window).window.input_limit
        try:
            done = await foldline.acompact(
                messages, target=limit * 2 // 5, policy=self._serve.policy, dialect=asked.endpoint.dialect
            )
        except FoldlineError as error:
            log.warning("a history is not folded: %s", error)
            return MadeItem(sealed("", "", messages))
        return MadeItem(sealed("", "", done.messages), [done.receipt])

    async def _session_of(self, origin: _From, asked: AgentRequest) -> tuple[AgentSession, AgentRequest]:
        """Return the session of a request, and the request as the session has it."""
        request, tenant = origin.request, origin.tenant
        known = self._finders.get(tenant.name)
        if known is None:
            known = SessionFinder(tenant.sessions, self._serve.open_sessions)
            self._finders[tenant.name] = known
        name = request.headers.get(SESSION)
        opener = partial(self._opened, origin, asked)
        resumed = await known.resume(asked, opener)
        if resumed is not None:
            talk, asked = resumed
        else:
            talk = await known.find(asked, name if name and valid_name(name) else None, opener)
        return talk, asked

    def _bring_summarizer(self, talk: AgentSession, asked: AgentRequest) -> None:
        """Have this request's summaries written by the model that it asks.

        That is paid with the key of the request, so it comes with that, and is not set on the session, which
        others share.
        """
        name = f"{asked.endpoint.vendor}:{asked.model}"
        if talk.model is None or talk.model.asked != name:
            info = self._settings.model_info(name, self._serve.window)
            talk.model = AskedModel(name, info.name, self._summarizer(asked, info))
        if self._serve.summaries == UPSTREAM:
            summaries_by.set(talk.model.summarizer)

    async def _use_model(self, talk: AgentSession, asked: AgentRequest) -> None:
        """Have the session continue with the model that is asked, where it does not already."""
        model = talk.model
        if model is not None and talk.session.setup.info.name != model.known:
            async with talk.lock:
                await talk.session.use_model(
                    model.asked, window=self._serve.window, dialect=asked.endpoint.dialect
                )

    def _opened(self, origin: _From, asked: AgentRequest, session: str) -> Session:
        opened = foldline.open(
            origin.tenant.store,
            session,
            model=f"{asked.endpoint.vendor}:{asked.model}",
            policy=self._serve.policy,
            window=self._serve.window,
            dialect=asked.endpoint.dialect,
            system=asked.system,
            tools=asked.value("tools"),
            subagent=origin.subagent,
            summarizer=written_by(self._serve, lambda: None, None),
        )
        drafts, paid = origin.tenant.drafts, self._serve.summaries not in BY_RULE  # by the service
        opened.make_drafts_by(drafts.durable(None) if paid else drafts)
        return closing(opened)

    def _summarizer(self, asked: AgentRequest, info: ModelInfo) -> Summarizer:
        """Return the model that is asked as a summariser, which is paid with the key of each request."""
        url = self._upstreams.url(asked.endpoint.vendor)
        model = PaidByRequest(asked.model, asked.endpoint, url, info)
        missing = not asked.model or providers.missing(f"{model.name}@{url}")
        return written_by(self._serve, lambda: None if missing else model, info)

    async def relay(self, request: Request) -> Response:
        """Pass on a request that asks for no reply of a model: models, files, batches, embeddings, counts.

        Bodies stream through both ways; headers say whose it is.
        """
        vendor = vendor_of(request.headers)
        tenant = self._tenants.find(request)
        if isinstance(tenant, Denied):
            return denial(vendor, tenant)
        if (seconds := await tenant.wait()) > 0:
            return refusal(vendor, 429, "too many requests", wait=seconds)
        path = request.scope["raw_path"].decode("ascii").removeprefix("/v1")
        if any(part.split(";")[0] == ".." for part in unquote(path).replace("\\", "/").split("/")):
            return refusal(vendor, 404, "there is nothing above /v1")
        if self._tenants.holds_token(path):
            return refusal(vendor, 400, "the address holds a token of this service: leave it out")
        secret = self._tenants.holds_token
        headers = sent_on(request.headers.items(), vendor, secret=secret)
        query = asked_on(request.scope["query_string"].decode("latin-1"), secret=secret)
        length = request.headers.get("content-length")
        if length is not None:
            headers.append(("content-length", length))
        body = request.stream() if length or "transfer-encoding" in request.headers else None
        try:
            response = await self._upstreams.send(
                vendor, request.method, path, query=query, headers=headers, body=body
            )
        except httpx2.HTTPError as error:
            self._metrics.upstream_failed(vendor)
            return _unreached(vendor, error)
        return _response(_untouched(response))


def _read(endpoint: Endpoint, raw: bytes) -> tuple[AgentRequest | None, bytes]:
    """Read a request, and return the bytes to send where that fails: then it goes on as it came."""
    try:
        return read_request(endpoint, raw), readable(raw)
    except Exception as error:  # an agent must not stand still for a defect of ours
        log.warning("a request goes on as it came: it cannot be read: %s", type(error).__name__)
        return None, raw


def _unreached(vendor: Vendor, error: httpx2.HTTPError) -> Response:
    """Say that there is no answer, and how that shows; what the upstream sent is only in the log."""
    log.warning("the model cannot be reached: %s: %.200r", type(error).__name__, str(error))
    return refusal(vendor, 502, f"the model cannot be reached: {type(error).__name__}")


def _untouched(response: httpx2.Response) -> Relayed:
    async def pieces() -> AsyncGenerator[bytes]:
        async for piece in response.aiter_raw():
            yield piece

    return Relayed(response.status_code, passed_back(response), pieces(), close=response.aclose)


class _Streamed(StreamingResponse):
    """A stream on its way back; its connection is closed also where the client has left before it began."""

    def __init__(self, relayed: Relayed, pieces: AsyncGenerator[bytes]) -> None:
        super().__init__(pieces, status_code=relayed.status)
        self._pieces = pieces
        self._relayed = relayed

    async def __call__(self, scope: Scope, receive: Receive, send: ASGISend) -> None:
        try:
            await super().__call__(scope, receive, send)
        except httpx2.HTTPError as error:  # the answer stays without its end, and the connection is closed
            log.warning("an answer broke off: %s: %.200r", type(error).__name__, str(error))
        finally:
            if self._relayed.talk is not None:
                self._relayed.talk.users -= 1
            await self._pieces.aclose()
            if self._relayed.close is not None:
                await self._relayed.close()


def _response(relayed: Relayed) -> Response:
    body = relayed.body
    response = Response(body, relayed.status) if isinstance(body, bytes) else _Streamed(relayed, body)
    response.raw_headers = [
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in relayed.headers
    ]
    return response
