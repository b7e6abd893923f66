"""What happens to the sessions of a tenant, told to whoever should know: figures, the audit log, webhooks.

Each session is watched where the service opens it, so a boundary is told once: by the process that made it.

Webhooks are posted to the addresses that are set, signed as Standard Webhooks say: an HMAC-SHA256 of
`id.timestamp.body`, whose id stays the same when a delivery is tried again. What cannot be delivered in the
end is logged, and lost: the audit log has it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from foldline.config import Webhook
from foldline.core.log.entries import Receipt
from foldline.errors import InputError, StoreError
from foldline.service.at_hand import at_hand
from foldline.service.metrics import Metrics
from foldline.session.events import CompactionDone, PruneDone, Redone, Undone
from foldline.session.session import Session
from foldline.stores.audit_log import AuditLog, AuditRecord
from foldline.stores.base import Store

log = logging.getLogger("foldline")

WATCHED: Final = (CompactionDone, PruneDone, Undone, Redone)
WAITS: Final = (0.0, 5.0, 30.0, 120.0)  # seconds before each try
SECONDS: Final = 10.0  # that a receiver may take to answer
MOST: Final = 1_000  # deliveries under way; more are dropped
GONE: Final = 410  # the receiver wants no more of this: it is not tried again
PREFIX: Final = "whsec_"


class Feed:
    """Tells of one tenant's sessions; a store of another kind may have no audit log."""

    def __init__(self, tenant: str, store: Store, metrics: Metrics, webhooks: Webhooks) -> None:
        self._tenant = tenant
        self._metrics = metrics
        self._webhooks = webhooks
        self.audit_log: AuditLog | None = getattr(store, "audit_log", None)

    def watch(self, session: Session) -> None:
        """Tell of the boundaries of a session that was opened."""
        for kind in WATCHED:
            session.on(kind.name, partial(self._heard, session.id))

    async def _heard(self, session: str, event: CompactionDone | PruneDone | Undone | Redone) -> None:
        data: dict[str, Any] = {}
        if isinstance(event, CompactionDone | PruneDone):
            self._metrics.folded(event.receipt, self._tenant)
            data = figures(event.receipt)
        await self.tell(event.name, session, event.entry, **data)

    async def tell(self, action: str, session: str, entry: str | None = None, **data: Any) -> None:
        """Tell what was done to a session; the audit log says with which token and request."""
        told = {"session": session, **({"entry": entry} if entry else {}), **data}
        self._webhooks.post(self._tenant, f"session.{action}", told)
        if self.audit_log is None:
            return
        request = at_hand()
        try:
            await self.audit_log.add(action, session, AuditRecord(entry, request.token, request.id, data))
        except StoreError as error:
            log.warning("session %s was %s, which is not in the audit log: %s", session, action, error)


def figures(receipt: Receipt) -> dict[str, Any]:
    """Return what a receipt says without a word of the session."""
    found = {
        "reason": receipt.reason,
        "policy": receipt.policy,
        "tokens_before": receipt.tokens_before,
        "tokens_after": receipt.tokens_after,
        "summarizer": receipt.summarizer,
        "usd": receipt.price,
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


# ---- webhooks


class Webhooks:
    """Posts to the webhooks that are set; `secret` finds what must not leave the service."""

    def __init__(self, given: Sequence[Webhook], secret: Callable[[str], bool]) -> None:
        self._hooks = [(one, _key(one)) for one in given]
        self._secret = secret
        self._client: httpx2.AsyncClient | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def post(self, tenant: str, name: str, data: dict[str, Any]) -> None:
        """Post an event of a tenant beside what goes on."""
        wanted = [
            (one, key)
            for one, key in self._hooks
            if one.tenant in ("", tenant) and (not one.events or name in one.events)
        ]
        if not wanted:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        body = json.dumps({"type": name, "timestamp": now, "data": {"tenant": tenant, **data}})
        if self._secret(body) or len(self._sending) >= MOST:
            log.warning("a webhook for %s is not sent", name)
            return
        for one, key in wanted:
            task = asyncio.ensure_future(
                self._send(one.url, key, f"msg_{secrets.token_hex(12)}", body.encode())
            )
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, url: str, key: bytes, name: str, body: bytes) -> None:
        why = ""
        for wait in WAITS:
            await asyncio.sleep(wait)
            at = str(int(time.time()))
            headers = {"webhook-id": name, "webhook-timestamp": at, "content-type": "application/json"}
            headers["webhook-signature"] = signature(key, name, at, body)
            try:
                found = await self._connected().post(url, content=body, headers=headers)
            except httpx2.HTTPError as error:
                why = type(error).__name__
                continue
            if found.is_success:
                return
            why = str(found.status_code)
            if found.status_code == GONE:
                break
        log.warning("a webhook to %s is lost: %s", urlsplit(url).hostname, why)

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=SECONDS, follow_redirects=False, trust_env=False)
        return self._client

    async def close(self, seconds: float) -> None:
        """Let deliveries end, that long at most."""
        if self._sending:
            _, left = await asyncio.wait(self._sending, timeout=seconds)
            for task in left:
                task.cancel()
            if left:
                log.warning("%d webhooks are lost: the service stops", len(left))
        if self._client is not None:
            await self._client.aclose()


def signature(key: bytes, name: str, at: str, body: bytes) -> str:
    """Return the signature of a delivery."""
    signed = hmac.new(key, f"{name}.{at}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def _key(one: Webhook) -> bytes:
    """Return the key of a webhook; raises InputError where it, or the address, is none."""
    parts = urlsplit(one.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"[[serve.webhooks]] url: {one.url!r} is no address with http:// or https://")
    try:
        key = base64.b64decode(one.secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not one.secret.startswith(PREFIX) or not 24 <= len(key) <= 64:
        raise InputError(
            f"[[serve.webhooks]] secret: use {PREFIX} and 24 to 64 random bytes in base64, as "
            f'`echo "{PREFIX}$(openssl rand -base64 32)"` prints'
        )
    return key
