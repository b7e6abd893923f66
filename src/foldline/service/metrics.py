"""Metrics of the service in Prometheus's format.

Tokens, prices and times are counted by tenant and model. The tenant is that of the current request.
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

SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"  # the folder in which processes keep their metrics
MEDIA = "text/plain; version=0.0.4; charset=utf-8"
MODELS: Final = 200  # with a label of their own: clients may send any name
OTHER: Final = "other"


class Metrics:
    """The metrics of one process; with several workers, `text` covers all of them."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._requests = counter("foldline_requests", "Requests answered", ["face", "status"])
        self._seconds = histogram(
            "foldline_added_seconds",
            "Time that the gateway adds before it sends a request",
            buckets=(0.001, 0.002, 0.003, 0.005, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60),
        )
        self._folds = counter("foldline_folds", "Folds made", ["reason"])
        self._saved = counter("foldline_folded_tokens", "Tokens that folds removed from views")
        self._failed = counter("foldline_upstream_failures", "Failures to reach a provider", ["vendor"])
        self._refused = counter("foldline_refused", "Requests refused because too many were running")
        labels = ["tenant", "model"]
        self._tokens = counter(
            "foldline_tokens",
            "Tokens reported by models, by kind: input, cache_read, cache_write, output",
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
        """Count a response."""
        self._requests.labels(face, str(status)).inc()

    def refused(self) -> None:
        """Count a request refused because too many were running."""
        self._refused.inc()

    def added(self, seconds: float) -> None:
        """Count the time that the gateway took before it sent a request."""
        self._seconds.observe(seconds)

    def folded(self, receipt: Receipt, tenant: str) -> None:
        """Count a fold of a tenant."""
        self._folds.labels(receipt.reason).inc()
        self._saved.inc(max(0, receipt.tokens_before - receipt.tokens_after))
        if receipt.usage is not None:
            self._used(tenant, receipt.summarizer, receipt.usage, receipt.price)

    def replied(self, model: str, usage: Usage | None, usd: float | None, seconds: float) -> None:
        """Count a reply: its usage and price where known, and its time in seconds."""
        self._replies.labels(at_hand().tenant, self._label_of(model)).observe(seconds)
        if usage is not None:
            self._used(at_hand().tenant, model, usage, usd)

    def _used(self, tenant: str, model: str, usage: Usage, usd: float | None) -> None:
        labels = (tenant, self._label_of(model))
        for kind in ("input", "cache_read", "cache_write", "output"):
            self._tokens.labels(*labels, kind).inc(getattr(usage, kind))
        self._usd.labels(*labels).inc(usd or 0.0)

    def _label_of(self, model: str) -> str:
        if len(self._models) < MODELS:
            self._models.add(model)
        return model if model in self._models else OTHER

    def upstream_failed(self, vendor: str) -> None:
        """Count a failure to reach a provider."""
        self._failed.labels(vendor).inc()

    def text(self, tenant: str | None = None) -> bytes:
        """Return the metrics in Prometheus's text format; for a `tenant`, without those of others."""
        registry = self.registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)
        return generate_latest(registry if tenant is None else _TenantRegistry(registry, tenant))


class _TenantRegistry:
    """A registry without the samples of other tenants."""

    def __init__(self, registry: CollectorRegistry, tenant: str) -> None:
        self._registry = registry
        self._tenant = tenant

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        for metric in self._registry.collect():
            metric.samples = [
                sample for sample in metric.samples if sample.labels.get("tenant") in (None, self._tenant)
            ]
            yield metric
