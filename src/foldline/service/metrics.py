"""Figures of the service, as Prometheus reads them.

What replies and summaries took is told by tenant and model. The tenant is that of the request at hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    generate_latest,
    multiprocess,
)

from foldline.core.log.entries import Receipt
from foldline.core.log.messages import Usage
from foldline.service.at_hand import at_hand

SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"  # names the folder in which processes keep their figures
MEDIA = "text/plain; version=0.0.4; charset=utf-8"
MODELS: Final = 200  # that are told apart: a client may name any
OTHER: Final = "other"


class Metrics:
    """The figures of one process; where several serve, their text is that of all."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._requests = counter("foldline_requests", "Requests answered", ["face", "status"])
        self._seconds = histogram(
            "foldline_added_seconds",
            "Time that the gateway adds before a request goes on",
            buckets=(0.001, 0.002, 0.003, 0.005, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60),
        )
        self._folds = counter("foldline_folds", "Boundaries made", ["reason"])
        self._saved = counter("foldline_folded_tokens", "Tokens that boundaries took out of views")
        self._failed = counter("foldline_upstream_failures", "Requests that no provider answered", ["vendor"])
        self._refused = counter("foldline_refused", "Requests refused because too many were under way")
        labels = ["tenant", "model"]
        self._tokens = counter(
            "foldline_tokens",
            "Tokens that models counted, by kind: input, cache_read, cache_write, output",
            [*labels, "kind"],
        )
        self._usd = counter("foldline_usd", "Price of replies and summaries, where known", labels)
        self._replies = histogram(
            "foldline_reply_seconds",
            "Time from a request to a model to the end of its reply",
            labels,
            buckets=(0.1, 0.3, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600),
        )
        self._models: set[str] = set()
        self.sessions = Gauge(
            "foldline_open_sessions",
            "Sessions that are open",
            registry=registry,
            multiprocess_mode="livesum",
        )

    def answered(self, face: str, status: int) -> None:
        """Count an answer."""
        self._requests.labels(face, str(status)).inc()

    def refused(self) -> None:
        """Count a request that was too much at once."""
        self._refused.inc()

    def added(self, seconds: float) -> None:
        """Count what the gateway took before a request went on."""
        self._seconds.observe(seconds)

    def folded(self, receipt: Receipt, tenant: str) -> None:
        """Count a boundary of a tenant."""
        self._folds.labels(receipt.reason).inc()
        self._saved.inc(max(0, receipt.tokens_before - receipt.tokens_after))
        if receipt.usage is not None:
            self._used(tenant, receipt.summarizer, receipt.usage, receipt.price)

    def replied(self, model: str, usage: Usage | None, usd: float | None, seconds: float) -> None:
        """Count a reply: what it took, where the model says so, its price, where that is known, its time."""
        self._replies.labels(at_hand().tenant, self._told_apart(model)).observe(seconds)
        if usage is not None:
            self._used(at_hand().tenant, model, usage, usd)

    def _used(self, tenant: str, model: str, usage: Usage, usd: float | None) -> None:
        labels = (tenant, self._told_apart(model))
        for kind in ("input", "cache_read", "cache_write", "output"):
            self._tokens.labels(*labels, kind).inc(getattr(usage, kind))
        self._usd.labels(*labels).inc(usd or 0.0)

    def _told_apart(self, model: str) -> str:
        if len(self._models) < MODELS:
            self._models.add(model)
        return model if model in self._models else OTHER

    def upstream_failed(self, vendor: str) -> None:
        """Count a provider that could not be reached."""
        self._failed.labels(vendor).inc()

    def text(self, tenant: str | None = None) -> bytes:
        """Return all figures in Prometheus's text form; for a `tenant` without those of others."""
        registry = self.registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)
        return generate_latest(registry if tenant is None else _Without(registry, tenant))


class _Without:
    """A registry without what belongs to other tenants than one."""

    def __init__(self, registry: CollectorRegistry, tenant: str) -> None:
        self._registry = registry
        self._tenant = tenant

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        for metric in self._registry.collect():
            theirs = (one for one in metric.samples if one.labels.get("tenant", self._tenant) == self._tenant)
            metric.samples = list(theirs)
            yield metric
