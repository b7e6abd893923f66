"""The gateway: passes requests under `/v1` to their provider, and the responses to the client.

A request for a reply takes these steps. If one of the second to fourth fails, it is sent unchanged:

    read -> find its session -> store new messages -> fold -> send -> pass the reply back and store it
"""

from __future__ import annotations

import logging
import re
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
from foldline.service.gateway.compaction_answer import Compaction, compact_response, response, response_events
from foldline.service.gateway.compaction_item import expand_body, make_item
from foldline.service.gateway.endpoint import Endpoint, Vendor, gemini_endpoint, refusal
from foldline.service.gateway.exchange import Exchange, Relayed, Send, relay_unchanged, to_response
from foldline.service.gateway.request import AgentRequest, continues_a_reply, read_request
from foldline.service.gateway.session_finder import SessionFinder, valid_name
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
from foldline.stores.tree import is_user
from foldline.summarizers import Summarizer

log = logging.getLogger("foldline")
T = TypeVar("T")

UNCHANGED: Final = "a request is sent unchanged"
NO_KEY: Final = "send your own provider key: the service's key could reach other tenants' data"
SESSION: Final = "foldline-session"  # the session's name
USER: Final = "foldline-user"  # the user's name
SUBAGENT: Final = (  # sent by a sub-agent of any client, Codex, Claude Code, OpenCode
    "foldline-subagent",
    "x-openai-subagent",
    "x-claude-code-agent-id",
    "x-parent-session-id",
)

_PRODUCT: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
NAMES: Final = {  # of agents whose user agent has another name
    "claude-cli": "claude-code",
    "codex_cli_rs": "codex",
    "codex_exec": "codex",
    "codex-tui": "codex",
    "codex_vscode": "codex",
    "geminicli": "gemini-cli",
}


class _Origin(msgspec.Struct, frozen=True):
    """The HTTP request of an agent and its tenant."""

    http_request: Request
    tenant: Tenant

    @property
    def user(self) -> str:
        """The user of the session, as the client names it."""
        named = self.http_request.headers.get(USER)
        return named if is_user(named) else ""

    @property
    def subagent(self) -> bool:
        """Whether a sub-agent sent it: its session is not folded by a threshold."""
        return any(self.http_request.headers.get(name, "0") not in ("", "0", "false") for name in SUBAGENT)


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
        vendor = endpoint.vendor
        tenant = await self._admit(request, vendor)
        if isinstance(tenant, Response):
            return tenant
        try:
            raw = await read_body(request, self._serve)
            agent_request, raw = await decoded(raw, partial(_read_request, endpoint))
            stateful = agent_request is None and continues_a_reply(raw)
            may_lend_key = not (stateful and self._tenants.several)
            query, headers = self._forwarded(request, vendor, may_lend_key=may_lend_key)
        except Refused as error:
            return refusal(vendor, error.status, str(error))
        use_for_summaries(headers)
        origin = _Origin(request, tenant)
        async with AsyncExitStack() as cleanup:
            try:
                if agent_request is not None and (compact or agent_request.wants_item):
                    return await self._answer_with_item(origin, agent_request, alone=compact)
                path = endpoint.path + ("/compact" if compact else "")
                send = partial(self._upstreams.send, vendor, "POST", path + query, headers)
                relayed = await self._send_folded(origin, agent_request, raw, send, cleanup)
            except httpx2.HTTPError as error:
                return self._refuse_unreachable(vendor, error)
            except ClientDisconnect:
                return refusal(vendor, 400, "the client closed the connection")
            return await to_response(relayed, cleanup.pop_all())

    async def generate(self, request: Request) -> Response:
        """Answer a request to a Gemini model; anything but a request for a reply is relayed."""
        endpoint = gemini_endpoint(request.path_params["named"])
        return await (self.ask(request, endpoint) if endpoint else self.relay(request, "google"))

    async def relay(self, request: Request, vendor: Vendor | None = None) -> Response:
        """Relay any other request: for models, files, batches, embeddings, token counts.

        Bodies are streamed both ways. Without `vendor`, the headers determine it.
        """
        vendor = vendor or vendor_of(request.headers)
        tenant = await self._admit(request, vendor)
        if isinstance(tenant, Response):
            return tenant
        path = request.scope["raw_path"].decode("ascii").removeprefix(ROOTS[vendor])
        decoded_path = unquote(path)
        if any(part.split(";")[0] == ".." for part in decoded_path.replace("\\", "/").split("/")):
            return refusal(vendor, 404, f"paths must stay below {ROOTS[vendor]}")
        if self._tenants.holds_token(decoded_path):
            return refusal(vendor, 400, "the URL contains a token of this service: remove it")
        may_lend_key = keeps_nothing(request.method, decoded_path) or not self._tenants.several
        try:
            query, headers = self._forwarded(request, vendor, may_lend_key=may_lend_key)
        except Refused as error:
            return refusal(vendor, error.status, str(error))
        length = request.headers.get("content-length")
        if length is not None:
            headers.append(("content-length", length))
        body = paced(request) if length or "transfer-encoding" in request.headers else None
        async with AsyncExitStack() as cleanup:
            try:
                upstream_response = await self._upstreams.send(
                    vendor, request.method, path + query, headers, body
                )
            except Refused as error:
                return refusal(vendor, error.status, str(error))
            except httpx2.HTTPError as error:
                return self._refuse_unreachable(vendor, error)
            return await to_response(relay_unchanged(upstream_response, cleanup), cleanup.pop_all())

    # ---- admission and forwarded headers

    async def _admit(self, request: Request, vendor: Vendor) -> Tenant | Response:
        """Return the tenant of a request, or a refusal."""
        tenant = self._tenants.find(request)
        if isinstance(tenant, Denied):
            if tenant.wait:
                return refusal(vendor, 429, TOO_MANY, wait=tenant.wait)
            return refusal(
                vendor, 401, "a token is needed: send it as the API key, or in the foldline-token header"
            )
        try:
            require("write")
        except Refused as error:
            return refusal(vendor, error.status, str(error))
        if seconds := await tenant.rate.wait():
            return refusal(vendor, 429, "too many requests", wait=seconds)
        return tenant

    def _forwarded(
        self, request: Request, vendor: Vendor, *, may_lend_key: bool = True
    ) -> tuple[str, Headers]:
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

    def _refuse_unreachable(self, vendor: Vendor, error: httpx2.HTTPError) -> Response:
        """Return an error for an unreachable provider; the details are only logged."""
        self._metrics.upstream_failed(vendor)
        host = urlsplit(self._upstreams.url(vendor)).netloc.rpartition("@")[2]
        log.warning("the model at %s cannot be reached: %s: %.200r", host, type(error).__name__, str(error))
        return refusal(vendor, 502, f"the model cannot be reached: {type(error).__name__}")

    # ---- a request for a reply

    async def _send_folded(
        self, origin: _Origin, request: AgentRequest | None, raw: bytes, send: Send, cleanup: AsyncExitStack
    ) -> Relayed:
        """Send a request, folded if needed; `cleanup` is closed after the reply is sent."""
        if request is None or not request.units:
            return relay_unchanged(await send(raw), cleanup)
        finding = while_there(origin.http_request, self._session_of(origin, request, cleanup))
        result = await _try_or_log(finding, UNCHANGED)
        if result is None:
            return relay_unchanged(await send(request.raw), cleanup)
        conversation, request = result
        self._use_request_summarizer(conversation, request)
        conversation.applies_template = not self._upstreams.is_vendors(request.endpoint.vendor)
        exchange = Exchange(conversation, request, self._metrics, cleanup)

        async def prepare() -> bytes:
            await self._use_model(conversation, request)
            return await exchange.prepare(origin.user)

        body = await _try_or_log(while_there(origin.http_request, prepare()), UNCHANGED)
        return await exchange.run(body or request.raw, send, origin.tenant.sessions)

    # ---- a compaction item

    async def _answer_with_item(self, origin: _Origin, request: AgentRequest, *, alone: bool) -> Response:
        """Answer with our compaction item: few providers can make one, and none reads another's."""
        if not request.units:
            return refusal(request.endpoint.vendor, 400, "there is nothing to compact")
        make = partial(self._compact, origin, request)
        if not alone and request.streamed:
            headers = [("content-type", "text/event-stream; charset=utf-8")]
            return await to_response(Relayed(200, headers, response_events(request, make)), AsyncExitStack())
        compaction = await while_there(origin.http_request, make())
        return JSONResponse(compact_response(compaction) if alone else response(request, compaction))

    async def _compact(self, origin: _Origin, request: AgentRequest) -> Compaction:
        """Fold the session of a request and return the item for its view."""
        folding = self._fold_session(origin, request)
        compaction = await _try_or_log(folding, "a history is folded without its session")
        return compaction or await self._fold_without_session(request)

    async def _fold_session(self, origin: _Origin, request: AgentRequest) -> Compaction | None:
        async with AsyncExitStack() as cleanup:
            conversation, request = await self._session_of(origin, request, cleanup)
            self._use_request_summarizer(conversation, request)
            await self._use_model(conversation, request)
            async with conversation.lock:
                if not await conversation.follow(request):
                    return None
                item = await conversation.compact(request)
                return Compaction(item, conversation.take_unreported())

    async def _fold_without_session(self, request: AgentRequest) -> Compaction:
        """Return the item of a history that could not be stored: it alone has the folded view."""
        history = [msgspec.json.decode(element) for element in request.elements[request.lead :]]
        name = f"{request.endpoint.vendor}:{request.model}"
        limit = self._settings.model_info(name, self._serve.window).window.input_limit
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
        self, origin: _Origin, request: AgentRequest, cleanup: AsyncExitStack
    ) -> tuple[AgentSession, AgentRequest]:
        """Return the session of a request and the request as the session has it."""
        finder = SessionFinder(origin.tenant.sessions, partial(self._open_session, origin, request), cleanup)
        resumed = await finder.resume(request)
        if resumed is not None:
            return resumed
        name = origin.http_request.headers.get(SESSION)
        conversation = await finder.find(request, name if name and valid_name(name) else None)
        agent = agent_of(origin.http_request.headers.get("user-agent", ""))
        if agent and conversation.tip is None:
            await origin.tenant.note_agent(conversation.session.id, agent)
        return conversation, request

    def _use_request_summarizer(self, conversation: AgentSession, request: AgentRequest) -> None:
        """Let the request's model write its summaries.

        It uses the key of the request, so it is set for the request, not on the session, which others share.
        """
        name = f"{request.endpoint.vendor}:{request.model}"
        if conversation.model is None or conversation.model.name != name:
            info = self._settings.model_info(name, self._serve.window)
            conversation.model = RequestModel(name, info.name, self._summarizer(request, info))
        if self._serve.summaries == UPSTREAM:
            summaries_by.set(conversation.model.summarizer)

    async def _use_model(self, conversation: AgentSession, request: AgentRequest) -> None:
        """Switch the session to the request's model if it has another one."""
        model = conversation.model
        if model is not None and conversation.session.setup.info.name != model.info_name:
            async with conversation.lock:
                await conversation.session.use_model(
                    model.name, window=self._serve.window, dialect=request.endpoint.dialect
                )

    def _open_session(self, origin: _Origin, request: AgentRequest, name: str) -> Session:
        session = foldline.open(
            origin.tenant.store,
            name,
            model=f"{request.endpoint.vendor}:{request.model}",
            policy=self._serve.policy,
            window=self._serve.window,
            dialect=request.endpoint.dialect,
            system=request.system,
            tools=request.value("tools"),
            subagent=origin.subagent,
            summarizer=written_by(self._serve, lambda: None, None),
        )
        session.make_drafts_by(origin.tenant.drafts)
        origin.tenant.feed.watch(session)
        return closing(session)

    def _summarizer(self, request: AgentRequest, info: ModelInfo) -> Summarizer:
        """Return the request's model as a summarizer that uses the key of each request."""
        if request.endpoint.vendor == "google":  # there is no provider for its API
            return written_by(self._serve, lambda: None, info)
        url = self._upstreams.url(request.endpoint.vendor)
        model = RequestKeyProvider(request.model, request.endpoint, url, info)
        missing = not request.model or providers.missing(f"{model.name}@{url}")
        return written_by(self._serve, lambda: None if missing else model, info)


def agent_of(user_agent: str) -> str:
    """Return the program of a user agent, by its first product; "" without one."""
    product = _PRODUCT.match(user_agent)
    return NAMES.get(product[0].lower(), product[0]) if product else ""


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
