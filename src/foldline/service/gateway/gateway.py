"""The gateway: passes requests under `/v1` to their provider, and the responses to the client.

A request for a reply takes these steps. If one of the second to fourth fails, it is sent unchanged:

    read -> find its session -> store new messages -> fold -> send -> pass the reply back and store it
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

import httpx2
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

import foldline
from foldline import providers
from foldline.catalogue import ModelInfo
from foldline.config import ServeSettings, Settings
from foldline.errors import FoldlineError
from foldline.service.access_log import REQUEST_ID
from foldline.service.at_hand import at_hand, require
from foldline.service.bodies import decoded, paced, read_body, while_there
from foldline.service.gateway.agent_session import AgentSession, RequestModel
from foldline.service.gateway.client import Client
from foldline.service.gateway.compaction_answer import Compaction, compact_response, response, response_events
from foldline.service.gateway.compaction_item import expand_body, make_item
from foldline.service.gateway.endpoint import Endpoint, Vendor, gemini_endpoint, refusal
from foldline.service.gateway.exchange import Exchange, Relayed, Send, relay_unchanged, to_response
from foldline.service.gateway.request import AgentRequest, continues_a_reply, read_request
from foldline.service.gateway.session_finder import SessionFinder
from foldline.service.gateway.upstream import (
    ROOTS,
    Headers,
    RequestKeyProvider,
    Upstreams,
    forwarded_headers,
    forwarded_query,
    keeps_nothing,
    lent_key,
    use_for_summaries,
    vendor_of,
)
from foldline.service.metrics import Metrics
from foldline.service.models import UPSTREAM, closing, written_by
from foldline.service.problems import Refused
from foldline.service.tenants import TOO_MANY, Denied, Tenant, Tenants
from foldline.session.session import Session
from foldline.session.shared import summaries_by
from foldline.summarizers import Summarizer

log = logging.getLogger("foldline")
T = TypeVar("T")

UNCHANGED: Final = "a request is sent unchanged"
NO_KEY: Final = "send your own provider key: the service's key could reach other tenants' data"


class Gateway:
    """Answers the requests of agents."""

    def __init__(self, serve: ServeSettings, settings: Settings, tenants: Tenants, metrics: Metrics) -> None:
        self._serve = serve
        self._settings = settings
        self._tenants = tenants
        self._metrics = metrics
        self._upstreams = Upstreams(
            {
                "openai": serve.openai_upstream,
                "anthropic": serve.anthropic_upstream,
                "google": serve.google_upstream,
            }
        )

    async def close(self) -> None:
        """Close the connections to the providers."""
        await self._upstreams.close()

    async def ask(self, request: Request, endpoint: Endpoint, *, compact: bool = False) -> Response:
        """Answer a request for a model's reply or, with `compact`, for a compaction item."""
        return await self._refusing(endpoint.vendor, self._ask(request, endpoint, compact=compact))

    async def generate(self, request: Request) -> Response:
        """Answer a request to a Gemini model; anything but a request for a reply is relayed."""
        endpoint = gemini_endpoint(request.path_params["named"])
        return await (self.ask(request, endpoint) if endpoint else self.relay(request, "google"))

    async def relay(self, request: Request, vendor: Vendor | None = None) -> Response:
        """Relay any other request: for models, files, batches, embeddings, token counts.

        Bodies are streamed both ways. Without `vendor`, the headers determine it.
        """
        vendor = vendor or vendor_of(request.headers)
        return await self._refusing(vendor, self._relay(request, vendor))

    async def _refusing(self, vendor: Vendor, work: Awaitable[Response]) -> Response:
        """Return a response, or an error in the format of the vendor's API."""
        try:
            return await work
        except Refused as error:
            return refusal(vendor, error.status, str(error), wait=error.more.get("wait"))
        except ClientDisconnect:
            return refusal(vendor, 400, "the client closed the connection")
        except httpx2.HTTPError as error:  # the details are only logged
            self._metrics.upstream_failed(vendor)
            host, kind = urlsplit(self._upstreams.url(vendor)).netloc.rpartition("@")[2], type(error).__name__
            log.warning("the model at %s cannot be reached: %s: %.200r", host, kind, str(error))
            return refusal(vendor, 502, f"the model cannot be reached: {kind}")

    async def _ask(self, request: Request, endpoint: Endpoint, *, compact: bool) -> Response:
        vendor, tenant = endpoint.vendor, await self._admit(request)
        raw = await read_body(request, self._serve)
        agent_request, raw = await decoded(raw, partial(_read_request, endpoint))
        stateful = agent_request is None and continues_a_reply(raw)
        may_lend_key = not (stateful and self._tenants.several)
        query, headers = self._forwarded(request, vendor, may_lend_key=may_lend_key)
        use_for_summaries(headers)
        client = Client(request, tenant)
        if agent_request is not None and (compact or agent_request.wants_item):
            return await self._answer_with_item(client, agent_request, alone=compact)
        path = endpoint.path + ("/compact" if compact else "")
        send = partial(self._upstreams.send, vendor, "POST", path + query, headers)
        async with AsyncExitStack() as cleanup:
            relayed = await self._send_folded(client, agent_request, raw, send, cleanup)
            return await to_response(relayed, cleanup.pop_all())

    async def _relay(self, request: Request, vendor: Vendor) -> Response:
        await self._admit(request)
        path = request.scope["raw_path"].decode("ascii").removeprefix(ROOTS[vendor])
        decoded_path = unquote(path)
        if any(part.split(";")[0] == ".." for part in decoded_path.replace("\\", "/").split("/")):
            raise Refused(404, "not found", f"paths must stay below {ROOTS[vendor]}")
        if self._tenants.holds_token(decoded_path):
            raise Refused(400, "the request is wrong", "the URL contains a token of this service: remove it")
        may_lend_key = keeps_nothing(request.method, decoded_path) or not self._tenants.several
        query, headers = self._forwarded(request, vendor, may_lend_key=may_lend_key)
        length = request.headers.get("content-length")
        if length is not None:
            headers.append(("content-length", length))
        body = paced(request) if length or "transfer-encoding" in request.headers else None
        response = await self._upstreams.send(vendor, request.method, path + query, headers, body)
        async with AsyncExitStack() as cleanup:
            return await to_response(relay_unchanged(response, cleanup), cleanup.pop_all())

    # ---- admission and forwarded headers

    async def _admit(self, request: Request) -> Tenant:
        """Return the tenant of a request; raises Refused."""
        tenant = self._tenants.find(request)
        if isinstance(tenant, Denied):
            if tenant.wait:
                raise Refused(429, "too many requests", TOO_MANY, wait=tenant.wait)
            how = "send it as the API key, or in the foldline-token header"
            raise Refused(401, "a token is needed", f"a token is needed: {how}")
        require("write")
        if seconds := await tenant.rate.wait():
            raise Refused(429, "too many requests", wait=seconds)
        return tenant

    def _forwarded(self, request: Request, vendor: Vendor, *, may_lend_key: bool) -> tuple[str, Headers]:
        """Return the query and headers to send to the provider.

        Raises Refused if the request has no key and may not use the service's.
        """
        secret = self._tenants.holds_token
        query = forwarded_query(request.scope["query_string"].decode("latin-1"), secret=secret)
        headers = forwarded_headers(request.headers.items(), secret=secret)
        key = lent_key(vendor, query, headers)
        if key and not may_lend_key:
            raise Refused(403, "a key is needed", NO_KEY)
        headers += key
        if not any(name == REQUEST_ID for name, _ in headers):
            headers.append((REQUEST_ID, at_hand().id))
        return query, headers

    # ---- a request for a reply

    async def _send_folded(
        self, client: Client, request: AgentRequest | None, raw: bytes, send: Send, cleanup: AsyncExitStack
    ) -> Relayed:
        """Send a request, folded if needed; `cleanup` is closed after the reply is sent."""
        if request is None or not request.units:
            return relay_unchanged(await send(raw), cleanup)
        finding = while_there(client.http, self._session_of(client, request, cleanup))
        result = await _try_or_log(finding, UNCHANGED)
        if result is None:
            return relay_unchanged(await send(request.raw), cleanup)
        conversation, request = result
        self._use_request_summarizer(conversation, request)
        conversation.applies_template = not self._upstreams.is_vendors(request.endpoint.vendor)
        exchange = Exchange(conversation, request, self._metrics, cleanup)

        async def prepare() -> bytes:
            await self._use_model(conversation, request)
            return await exchange.prepare(client.user)

        body = await _try_or_log(while_there(client.http, prepare()), UNCHANGED)
        return await exchange.run(body or request.raw, send, client.tenant.sessions)

    # ---- a compaction item

    async def _answer_with_item(self, client: Client, request: AgentRequest, *, alone: bool) -> Response:
        """Answer with our compaction item: few providers can make one, and none reads another's."""
        if not request.units:
            raise Refused(400, "the request is wrong", "there is nothing to compact")
        make = partial(self._compact, client, request)
        if not alone and request.streamed:
            headers = [("content-type", "text/event-stream; charset=utf-8")]
            return await to_response(Relayed(200, headers, response_events(request, make)), AsyncExitStack())
        compaction = await while_there(client.http, make())
        return JSONResponse(compact_response(compaction) if alone else response(request, compaction))

    async def _compact(self, client: Client, request: AgentRequest) -> Compaction:
        """Fold the session of a request and return the item for its view."""
        folding = self._fold_session(client, request)
        compaction = await _try_or_log(folding, "a history is folded without its session")
        return compaction or await self._fold_without_session(request)

    async def _fold_session(self, client: Client, request: AgentRequest) -> Compaction | None:
        async with AsyncExitStack() as cleanup:
            conversation, request = await self._session_of(client, request, cleanup)
            self._use_request_summarizer(conversation, request)
            await self._use_model(conversation, request)
            async with conversation.lock:
                if not await conversation.follow(request):
                    return None
                tip = conversation.tip
                item = await conversation.compact(request)
                if not await conversation.is_at(tip):  # the item is of another request's history
                    return None
                return Compaction(item, conversation.take_unreported())

    async def _fold_without_session(self, request: AgentRequest) -> Compaction:
        """Return the item of a history that could not be stored: it alone has the folded view."""
        history = [msgspec.json.decode(element) for element in request.elements[request.lead :]]
        limit = self._settings.model_info(request.full_model, self._serve.window).window.input_limit
        try:
            result = await foldline.acompact(
                history, target=limit * 2 // 5, policy=self._serve.policy, dialect=request.endpoint.dialect
            )
        except FoldlineError as error:
            log.warning("a history could not be folded: %s", error)
            return Compaction(make_item("", "", history))
        return Compaction(make_item("", "", result.messages), [result.receipt])

    # ---- the session of a request

    async def _session_of(
        self, client: Client, request: AgentRequest, cleanup: AsyncExitStack
    ) -> tuple[AgentSession, AgentRequest]:
        """Return the session of a request and the request as the session has it."""
        finder = SessionFinder(client.tenant.sessions, partial(self._open_session, client, request), cleanup)
        resumed = await finder.resume(request)
        if resumed is not None:
            return resumed
        conversation = await finder.find(request, client.session)
        if client.agent and conversation.tip is None:
            await client.tenant.note_agent(conversation.session.id, client.agent)
        return conversation, request

    def _use_request_summarizer(self, conversation: AgentSession, request: AgentRequest) -> None:
        """Let the request's model write its summaries.

        It uses the key of the request, so it is set for the request, not on the session, which others share.
        """
        name = request.full_model
        if conversation.model is None or conversation.model.name != name:
            info = self._settings.model_info(name, self._serve.window)
            conversation.model = RequestModel(name, info, self._summarizer(request, info))
        if self._serve.summaries == UPSTREAM:
            summaries_by.set(conversation.model.summarizer)

    async def _use_model(self, conversation: AgentSession, request: AgentRequest) -> None:
        """Switch the session to the request's model if it has another one."""
        model = conversation.model
        if model is not None and conversation.session.setup.info.name != model.info.name:
            async with conversation.lock:
                await conversation.session.use_model(
                    model.name, window=self._serve.window, dialect=request.endpoint.dialect
                )

    def _open_session(self, client: Client, request: AgentRequest, name: str) -> Session:
        session = foldline.open(
            client.tenant.store,
            name,
            model=request.full_model,
            policy=self._serve.policy,
            window=self._serve.window,
            dialect=request.endpoint.dialect,
            system=request.system,
            tools=request.value("tools"),
            subagent=client.subagent,
            summarizer=written_by(self._serve, lambda: None, None),
        )
        session.make_drafts_by(client.tenant.drafts)
        client.tenant.feed.watch(session)
        return closing(session)

    def _summarizer(self, request: AgentRequest, info: ModelInfo) -> Summarizer:
        """Return the request's model as a summarizer that uses the key of each request."""
        if request.endpoint.vendor == "google":  # there is no provider for its API
            return written_by(self._serve, lambda: None, info)
        url = self._upstreams.url(request.endpoint.vendor)
        model = RequestKeyProvider(request.model, request.endpoint, url, info)
        missing = not request.model or providers.missing(f"{model.name}@{url}")
        return written_by(self._serve, lambda: None if missing else model, info)


def _read_request(endpoint: Endpoint, body: bytes) -> tuple[AgentRequest | None, bytes]:
    """Decode a request; return it, or None if that fails, and the body to send then."""
    try:
        return read_request(endpoint, body), expand_body(body)
    except Exception as error:  # a bug here must not stop an agent
        log.warning("%s: it cannot be read: %s", UNCHANGED, type(error).__name__)
        return None, body


async def _try_or_log(work: Awaitable[T], fallback: str) -> T | None:
    """Return the result of some work; if it fails, log `fallback` with the error and return None.

    A bug here must not stop an agent.
    """
    try:
        return await work
    except ClientDisconnect:
        raise
    except FoldlineError as error:
        log.warning("%s: %s", fallback, error)
    except Exception:
        log.exception(fallback)
    return None
