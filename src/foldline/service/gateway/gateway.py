"""The gateway: what comes in under `/v1` goes to its provider, and what comes back goes to the client.

A request for a reply takes these steps. If one of the second to fourth fails, it passes unchanged:

    read -> find its session -> store what is new -> fold -> send -> pass the reply back, and store it
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
from foldline.service.gateway.agent_session import AgentSession, AskedModel
from foldline.service.gateway.compaction_answer import MadeItem, compacted, response, streamed
from foldline.service.gateway.compaction_item import readable, sealed
from foldline.service.gateway.endpoint import Endpoint, Vendor, generating, refusal
from foldline.service.gateway.exchange import Exchange, Relayed, Send, answer_of, untouched
from foldline.service.gateway.request import AgentRequest, continues_a_reply, read_request
from foldline.service.gateway.session_finder import SessionFinder, valid_name
from foldline.service.gateway.upstream import (
    ROOTS,
    Headers,
    PaidByRequest,
    Upstreams,
    asked_on,
    keeps_nothing,
    lent_key,
    pays,
    sent_on,
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

UNCHANGED: Final = "a request passes unchanged"
NO_KEY: Final = "this needs a provider's key of your own: the service's would reach what other tenants keep"
SESSION: Final = "foldline-session"  # names the session of a request
USER: Final = "foldline-user"  # names the user of a request
SUBAGENT: Final = (  # say that a sub-agent asks: any client, Codex, Claude Code, OpenCode
    "foldline-subagent",
    "x-openai-subagent",
    "x-claude-code-agent-id",
    "x-parent-session-id",
)

_PRODUCT: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
NAMES: Final = {  # of products by which agents call themselves otherwise
    "claude-cli": "claude-code",
    "codex_cli_rs": "codex",
    "codex_exec": "codex",
    "codex-tui": "codex",
    "codex_vscode": "codex",
    "geminicli": "gemini-cli",
}


class _From(msgspec.Struct, frozen=True):
    """Where a request comes from."""

    request: Request
    tenant: Tenant

    @property
    def user(self) -> str:
        """Whose the session is, among the client's users."""
        named = self.request.headers.get(USER)
        return named if is_user(named) else ""

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
        """Answer a request for a reply of a model; with `compact`, for a compaction item alone."""
        vendor = endpoint.vendor
        tenant = await self._admitted(request, vendor)
        if isinstance(tenant, Response):
            return tenant
        try:
            raw = await read_body(request, self._serve)
        except Refused as error:
            return refusal(vendor, error.status, str(error))
        asked, raw = await decoded(raw, partial(_read, endpoint))
        lent = asked is not None or not self._tenants.several or not continues_a_reply(raw)
        try:
            query, headers = self._sent_on(request, vendor, lent=lent)
        except Refused as error:
            return refusal(vendor, error.status, str(error))
        pays(headers)
        origin = _From(request, tenant)
        async with AsyncExitStack() as ends:
            try:
                if asked is not None and (compact or asked.wants_item):
                    return await self._item(origin, asked, alone=compact)
                path = endpoint.path + ("/compact" if compact else "")
                send = partial(self._upstreams.send, vendor, "POST", path + query, headers)
                relayed = await self._relayed(origin, asked, raw, send, ends)
            except httpx2.HTTPError as error:
                return self._unreached(vendor, error)
            except ClientDisconnect:
                return refusal(vendor, 400, "the client has left")
            return await answer_of(relayed, ends.pop_all())

    async def generate(self, request: Request) -> Response:
        """Answer a request to a Gemini model: for a reply, or for anything else, which is passed on."""
        endpoint = generating(request.path_params["named"])
        return await (self.ask(request, endpoint) if endpoint else self.relay(request, "google"))

    async def relay(self, request: Request, vendor: Vendor | None = None) -> Response:
        """Pass on a request that asks for no reply of a model: models, files, batches, embeddings, counts.

        Bodies stream through both ways; headers say whose it is, where `vendor` does not.
        """
        vendor = vendor or vendor_of(request.headers)
        tenant = await self._admitted(request, vendor)
        if isinstance(tenant, Response):
            return tenant
        path = request.scope["raw_path"].decode("ascii").removeprefix(ROOTS[vendor])
        plain = unquote(path)
        if any(part.split(";")[0] == ".." for part in plain.replace("\\", "/").split("/")):
            return refusal(vendor, 404, f"there is nothing above {ROOTS[vendor]}")
        if self._tenants.holds_token(plain):
            return refusal(vendor, 400, "the address holds a token of this service: leave it out")
        lent = keeps_nothing(request.method, plain) or not self._tenants.several
        try:
            query, headers = self._sent_on(request, vendor, lent=lent)
        except Refused as error:
            return refusal(vendor, error.status, str(error))
        length = request.headers.get("content-length")
        if length is not None:
            headers.append(("content-length", length))
        body = paced(request) if length or "transfer-encoding" in request.headers else None
        async with AsyncExitStack() as ends:
            try:
                found = await self._upstreams.send(vendor, request.method, path + query, headers, body)
            except Refused as error:
                return refusal(vendor, error.status, str(error))
            except httpx2.HTTPError as error:
                return self._unreached(vendor, error)
            return await answer_of(untouched(found, ends), ends.pop_all())

    # ---- who asks, and what is passed on

    async def _admitted(self, request: Request, vendor: Vendor) -> Tenant | Response:
        """Return whose a request is, or why it is not answered."""
        tenant = self._tenants.find(request)
        if isinstance(tenant, Denied):
            if tenant.wait:
                return refusal(vendor, 429, TOO_MANY, wait=tenant.wait)
            return refusal(vendor, 401, "a token is needed: send it as the key, or as foldline-token")
        try:
            require("write")
        except Refused as error:
            return refusal(vendor, error.status, str(error))
        if seconds := await tenant.rate.wait():
            return refusal(vendor, 429, "too many requests", wait=seconds)
        return tenant

    def _sent_on(self, request: Request, vendor: Vendor, *, lent: bool = True) -> tuple[str, Headers]:
        """Return the query and the headers of a request as they are passed on.

        Raises Refused where it has no key, and the service's own is not `lent` to it.
        """
        secret = self._tenants.holds_token
        query = asked_on(request.scope["query_string"].decode("latin-1"), secret=secret)
        headers = sent_on(request.headers.items(), secret=secret)
        key = lent_key(vendor, query, headers)
        if key and not lent:
            raise Refused(403, "a key is needed", NO_KEY)
        headers += key
        if not any(name == REQUEST_ID for name, _ in headers):
            headers.append((REQUEST_ID, at_hand().id))
        return query, headers

    def _unreached(self, vendor: Vendor, error: httpx2.HTTPError) -> Response:
        """Say that there is no answer, and how that shows; what the upstream sent is only in the log."""
        self._metrics.upstream_failed(vendor)
        where = urlsplit(self._upstreams.url(vendor)).netloc.rpartition("@")[2]
        log.warning("the model at %s cannot be reached: %s: %.200r", where, type(error).__name__, str(error))
        return refusal(vendor, 502, f"the model cannot be reached: {type(error).__name__}")

    # ---- a request for a reply

    async def _relayed(
        self, origin: _From, asked: AgentRequest | None, raw: bytes, send: Send, ends: AsyncExitStack
    ) -> Relayed:
        """Send a request, folded where it must be; `ends` is closed when the reply has gone back."""
        if asked is None or not asked.units:
            return untouched(await send(raw), ends)
        finding = while_there(origin.request, self._session_of(origin, asked, ends))
        found = await _tried(finding, UNCHANGED)
        if found is None:
            return untouched(await send(asked.raw), ends)
        talk, asked = found
        self._bring_summarizer(talk, asked)
        talk.applies_template = not self._upstreams.is_vendors(asked.endpoint.vendor)
        exchange = Exchange(talk, asked, origin.tenant.sessions, self._metrics, ends)
        preparing = while_there(origin.request, self._prepared(exchange, talk, asked, origin.user))
        return await exchange.run(await _tried(preparing, UNCHANGED) or asked.raw, send)

    async def _prepared(
        self, exchange: Exchange, talk: AgentSession, asked: AgentRequest, user: str
    ) -> bytes:
        await self._use_model(talk, asked)
        return await exchange.prepare(user)

    # ---- a compaction item

    async def _item(self, origin: _From, asked: AgentRequest, *, alone: bool) -> Response:
        """Answer with a compaction item of our own: few upstreams can make one, and none reads another's."""
        if not asked.units:
            return refusal(asked.endpoint.vendor, 400, "there is nothing to compact")
        make = partial(self._compacted, origin, asked)
        if not alone and asked.streamed:
            events = Relayed(
                200, [("content-type", "text/event-stream; charset=utf-8")], streamed(asked, make)
            )
            return await answer_of(events, AsyncExitStack())
        made = await while_there(origin.request, make())
        return JSONResponse(compacted(made) if alone else response(asked, made))

    async def _compacted(self, origin: _From, asked: AgentRequest) -> MadeItem:
        """Fold the session of a request, and return the item that stands for its view."""
        made = await _tried(self._folded(origin, asked), "a history is folded without its session")
        return made or await self._stateless(asked)

    async def _folded(self, origin: _From, asked: AgentRequest) -> MadeItem | None:
        async with AsyncExitStack() as ends:
            talk, asked = await self._session_of(origin, asked, ends)
            self._bring_summarizer(talk, asked)
            await self._use_model(talk, asked)
            async with talk.lock:
                if not await talk.follow(asked):
                    return None
                item = await talk.compact(asked)
                return MadeItem(item, talk.take_untold())

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

    # ---- the session of a request

    async def _session_of(
        self, origin: _From, asked: AgentRequest, ends: AsyncExitStack
    ) -> tuple[AgentSession, AgentRequest]:
        """Return the session of a request, and the request as the session has it."""
        finder = SessionFinder(origin.tenant.sessions, partial(self._opened, origin, asked), ends)
        resumed = await finder.resume(asked)
        if resumed is not None:
            return resumed
        name = origin.request.headers.get(SESSION)
        found = await finder.find(asked, name if name and valid_name(name) else None)
        if found.tip is None and (agent := agent_of(origin.request.headers.get("user-agent", ""))):
            await origin.tenant.note_agent(found.session.id, agent)
        return found, asked

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
        opened.make_drafts_by(origin.tenant.drafts)
        origin.tenant.feed.watch(opened)
        return closing(opened)

    def _summarizer(self, asked: AgentRequest, info: ModelInfo) -> Summarizer:
        """Return the model that is asked as a summariser, which is paid with the key of each request."""
        if asked.endpoint.vendor == "google":  # no provider of ours speaks its API
            return written_by(self._serve, lambda: None, info)
        url = self._upstreams.url(asked.endpoint.vendor)
        model = PaidByRequest(asked.model, asked.endpoint, url, info)
        missing = not asked.model or providers.missing(f"{model.name}@{url}")
        return written_by(self._serve, lambda: None if missing else model, info)


def agent_of(user_agent: str) -> str:
    """Return the program that asks, by the first product that it names; "" where it names none."""
    name = _PRODUCT.match(user_agent)
    return NAMES.get(name[0].lower(), name[0]) if name else ""


def _read(endpoint: Endpoint, raw: bytes) -> tuple[AgentRequest | None, bytes]:
    """Read a request, and return the bytes to send if that fails: then it passes unchanged."""
    try:
        return read_request(endpoint, raw), readable(raw)
    except Exception as error:  # a defect of ours must not stop an agent
        log.warning("a request passes unchanged: it cannot be read: %s", type(error).__name__)
        return None, raw


async def _tried(work: Awaitable[T], otherwise: str) -> T | None:
    """Return the result of some work; if it fails, log why and what is done instead, and return None.

    A defect of ours must not stop an agent.
    """
    try:
        return await work
    except ClientDisconnect:
        raise
    except FoldlineError as error:
        log.warning("%s: %s", otherwise, error)
    except Exception:
        log.exception(otherwise)
    return None
