"""What happens to the sessions of a tenant, told to whoever should know: figures, the audit log, webhooks.

Each session is watched where the service opens it, so a boundary is told once: by the process that made it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Final

from foldline.core.log.entries import Receipt
from foldline.errors import StoreError
from foldline.service.at_hand import at_hand
from foldline.service.metrics import Metrics
from foldline.service.webhooks import Webhooks
from foldline.session.events import CompactionDone, PruneDone, Redone, Undone
from foldline.session.session import Session
from foldline.stores.audit_log import AuditLog, AuditRecord
from foldline.stores.base import Store

log = logging.getLogger("foldline")

WATCHED: Final = (CompactionDone, PruneDone, Undone, Redone)


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
