"""Figures of the service, as Prometheus reads them."""

from __future__ import annotations

import os
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

from foldline.core.log.entries import Receipt

SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"  # names the folder in which processes keep their figures
MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The figures of one process; where several serve, their text is that of all."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "foldline_requests", "Requests answered", ["face", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "foldline_added_seconds",
            "Time that the gateway adds before a request goes on",
            registry=self.registry,
            buckets=(0.001, 0.002, 0.003, 0.005, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60),
        )
        self._folds = Counter("foldline_folds", "Boundaries made", ["reason"], registry=self.registry)
        self._saved = Counter(
            "foldline_folded_tokens", "Tokens that boundaries took out of views", registry=self.registry
        )
        self._failed = Counter(
            "foldline_upstream_failures",
            "Requests that no provider answered",
            ["vendor"],
            registry=self.registry,
        )
        self._refused = Counter(
            "foldline_refused", "Requests refused because too many were under way", registry=self.registry
        )
        self.sessions = Gauge(
            "foldline_open_sessions",
            "Sessions that are open",
            registry=self.registry,
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

    def folded(self, receipt: Receipt) -> None:
        """Count a boundary."""
        self._folds.labels(receipt.reason).inc()
        self._saved.inc(max(0, receipt.tokens_before - receipt.tokens_after))

    def upstream_failed(self, vendor: str) -> None:
        """Count a provider that could not be reached."""
        self._failed.labels(vendor).inc()

    def text(self) -> bytes:
        """Return all figures in Prometheus's text form."""
        registry = self.registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)
        return generate_latest(registry)
